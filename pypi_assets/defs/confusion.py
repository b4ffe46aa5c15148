"""The check of a private index that none of its names appears on a public index later, with its job and schedule.

A code location has it if the file of indexes marks its index as private. `confusion.py` of the parent package compares
the names.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import dagster as dg

from pypi_assets.catalog.reports.moments import answerable_serial
from pypi_assets.confusion import HadFirst, OpenIndex, PublicName, open_indexes, public_names, require_indexes
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.factories import AssetJob, check, check_result
from pypi_assets.defs.jobs import Schedule
from pypi_assets.defs.policy import NOTICE_OF
from pypi_assets.defs.resources import CatalogResource, SettingsResource

_MOST_NAMES = 10


@check("changed_distribution_data", additional_deps=["crawled_distribution_data"])
def no_name_became_public(settings: SettingsResource, catalog: CatalogResource) -> dg.AssetCheckResult:
    """No name of this private index has appeared on a public index later. Otherwise, other people could upload files
    there that installers take instead of yours.

    Fails if the private index had the name first, or if both have it since the same second. Warns if a time is not
    known, or if a public index could not be compared. List accepted names in `also_public` in the file of indexes.
    """
    with expected_errors_as_failures():
        tables = require_indexes()
        [table] = [one for one in tables if one.name == settings.get().index]
        private = OpenIndex(table.name, True, catalog.get(), answerable_serial(catalog.get()))
        with open_indexes(one for one in tables if not one.is_private) as publics:
            found = list(public_names(private, publics.opened, table.also_public))
    first = [one for one in found if one.private_had_first is HadFirst.YES]
    same_second = [one for one in found if one.is_same_second]
    unknown = [one for one in found if one.private_had_first is HadFirst.UNKNOWN and not one.is_same_second]
    new = [one for one in found if one.may_be_new]
    texts = _texts("this index had it first", first)
    texts += _texts("both indexes have it since that second, so it is unknown which had it first", same_second)
    texts += _texts("it is unknown which index had it first", unknown)
    texts += [f"{name} was not compared: {problem}" for name, problem in publics.problems.items()]
    partly = [
        f"of {one.name}, only the {one.followed} followed projects were compared"
        for one in publics.opened
        if one.followed is not None
    ]
    result = check_result(
        passed=not texts,
        severity=dg.AssetCheckSeverity.ERROR if new else dg.AssetCheckSeverity.WARN,
        description="; ".join((texts or ["no name has appeared on a public index after it was here"]) + partly),
        metadata={
            "new": len(first),
            "same_second": len(same_second),
            "unknown": len(unknown),
            "public_first": len(found) - len(new) - len(unknown),
            "public_indexes": len(publics.opened),
        },
    )
    notice = dg.MetadataValue.text(", ".join(sorted({f"{one.public.index}: {_name(one)}" for one in new})))
    return result._replace(metadata={**result.metadata, NOTICE_OF: notice})


def _texts(what: str, found: Sequence[PublicName]) -> list[str]:
    """Return a sentence for each of the first names, and one that counts the others."""
    texts = [f"{_name(one)} is on {one.public.index} since {_date(one.public.project.since)}: {what}" for one in found]
    more = len(texts) - _MOST_NAMES
    return texts[:_MOST_NAMES] + ([f"and {more} more: `pypi-assets lookup confusion` lists them"] if more > 0 else [])


def _name(one: PublicName) -> str:
    return one.public.project.normalized


def _date(since: float | None) -> str:
    return "an unknown time" if since is None else datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


confusion_job = AssetJob(
    "confusion",
    checks=[no_name_became_public],
    description="Compares the names of this private index with public indexes, and fails a check if one of them has"
    " newly appeared there. Reads only stored data.",
)
CONFUSION_SCHEDULE = Schedule(
    "quarter_hourly_confusion",
    confusion_job,
    "*/15 * * * *",
    "Compares names with public indexes four times an hour.",
)
