"""Entries of an index's answers that break its protocol: how many are kept aside before the whole answer is refused.

Where they are kept is in `catalog/observed/index_state.py`.
"""

import json

from pypi_assets.index.errors import RefusedError
from pypi_assets.index.models import LONGEST_NAME, BrokenEntry

LONGEST_TEXT = 4_000
"""The most characters that are kept of an entry. A row of the changelog that is cut cannot be read again later."""
_ALWAYS = 10
_ONE_IN = 100


def broken_entry(
    problem: str, entry: object, *, name: object = None, serial: int | None = None, after: int | None = None
) -> BrokenEntry:
    """`entry`, a value of an answer, to be kept aside. A `name` that is no text is left out."""
    usable = name[:LONGEST_NAME] if isinstance(name, str) and name else None
    return BrokenEntry(problem, _text(entry), usable, serial, after)


def _text(entry: object) -> str:
    try:
        return json.dumps(entry, default=str)[:LONGEST_TEXT]
    except (RecursionError, ValueError):  # it nests too deep, or has a number that is too long to be written
        return json.dumps("an entry that nests too deep to be shown")


def require_few(broken: int, good: int, what: str, url: str) -> None:
    """Raises RefusedError where more than ten entries of `what` are broken, plus one for each hundred good ones: it
    speaks another protocol then."""
    if broken > _ALWAYS + good // _ONE_IN:
        raise RefusedError(f"{what} breaks the protocol: {broken} of {broken + good} entries are broken", url)
