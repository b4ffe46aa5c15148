"""What is known of a record that its stored details leave out, by the version of the extractor that made it.

Details leave out what is empty, and an older extractor did not look for all of it.
"""

from pypi_assets.catalog.reads.read_outcomes import Outcome

ENTRY_POINTS_SINCE = 2
"""The first extractor version whose details are sure to have summary, entry points and notes."""
LICENSES_SINCE = 3
"""The first extractor version that reads licences, project URLs, import names and start-up paths, and that has null for
unknown entry points."""
GRADES_SINCE = 4
"""The first extractor version that grades modules."""
_REFUSALS_SINCE = 8
"""The first extractor version that knows what installers do not take."""


def without_refusals(outcome: str, extractor_version: int | None) -> list[str] | None:
    """Return the refusals of a record that has none stored: an empty list, or None if they are not known."""
    return [] if outcome == Outcome.DATA and (extractor_version or 0) >= _REFUSALS_SINCE else None
