"""The page of the changes on the newest day of the journal, by kind."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from pypi_assets.catalog.reports.journal_format import JournalStream, Record
from pypi_assets.catalog.reports.release_comparisons import NEW_PROVIDER, RELEASE_COMPARED
from pypi_assets.journal.filters import KINDS, RecordFilter
from pypi_assets.journal.journal_errors import NoJournalError
from pypi_assets.journal.tailing import look_back
from pypi_assets.service.changes import NO_JOURNAL, GainedFacts, KindNames, ProjectNames, journal_problems
from pypi_assets.service.pages.page import Content, View, page, page_operations
from pypi_assets.service.pages.rendering import page_address
from pypi_assets.service.parameters import OperationParameters
from pypi_assets.service.problems import bad_parameter
from pypi_assets.service.service import Service
from pypi_assets.times import utc_text

MOST_OF_A_KIND = 25
MOST_OF_ONE_KIND = 500
"""The limit if only one kind is selected."""
_MOST_NAMES = 20
_SHOWN = frozenset({*KINDS[JournalStream.OBSERVED], RELEASE_COMPARED, NEW_PROVIDER})
"""The kinds that are shown by default. Announcements of the index are omitted, because these kinds follow from them."""


class ChangesPageParameters(OperationParameters, frozen=True):
    """The projects, kinds and gains to show."""

    project: ProjectNames | None = None
    kind: KindNames | None = None
    gained: GainedFacts | None = None


@dataclass
class _DayCounts:
    """Counts and newest records of one day, by kind."""

    day: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    newest: dict[str, deque[Record]] = field(default_factory=dict)

    def add(self, record: Record, most: int) -> None:
        kind = record["kind"]
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.newest.setdefault(kind, deque(maxlen=most)).append(record)


@page("/changes", "changed_today.html", "Show what changed on the newest day, by kind", at_serial=False)
def _changes(view: View, parameters: ChangesPageParameters) -> Content:
    kinds = parameters.kind.split(",") if parameters.kind else ()
    projects = parameters.project.split(",") if parameters.project else ()
    gained = parameters.gained.split(",") if parameters.gained else ()
    wanted = RecordFilter.parse(projects, kinds or _SHOWN, gained=gained)
    if not wanted.projects and projects:
        raise bad_parameter("project", "the list of projects is empty")
    most = MOST_OF_ONE_KIND if len(wanted.kinds) == 1 else MOST_OF_A_KIND
    with journal_problems():
        try:
            found = view.service.changes.remembered(
                ("page", wanted.question), lambda: _newest_day(view.service, wanted, most)
            )
        except NoJournalError:
            return Content("Changes", {"changes": None, "hints": [NO_JOURNAL]}, {"found": None})
    shown = {
        "found": found,
        "projects": sorted(wanted.projects),
        "project": parameters.project,
        "kind": parameters.kind,
        "gained": parameters.gained,
        "is_every_kind": not kinds,
    }
    return Content(f"Changes on {found['day']}" if found["day"] else "Changes", {"changes": found, "hints": []}, shown)


def _newest_day(service: Service, wanted: RecordFilter, most: int) -> dict[str, Any]:
    """Return the changes on the newest day that has any. Each stream is searched as far back as `look_back` goes."""
    journal, streams = service.changes.journal, []
    for stream in wanted.read_streams:
        found = look_back(journal, stream, wanted)
        streams.append((found, _last_day(map(orjson.loads, found.lines), most)))
    day = max((of.day for _, of in streams), default="")
    kinds = [
        {
            "kind": kind,
            "count": count,
            "since": found.since,
            "newest": [_entry(one) for one in reversed(of.newest[kind])],
        }
        for found, of in streams
        if of.day == day
        for kind, count in of.counts.items()
    ]
    return {
        "day": day or None,
        "since": max((found.since for found, _ in streams), default=0),
        "through": min((found.through for found, _ in streams), default=0),
        "kinds": sorted(kinds, key=lambda one: (-one["count"], one["kind"])),
    }


def _last_day(records: Iterable[Record], most: int) -> _DayCounts:
    """Return the records of the last day.

    A record without a time, or with an earlier time, belongs to the day of the records before it, because it was
    published together with them.
    """
    found = _DayCounts()
    for record in records:
        day = "" if record["at"] is None else str(datetime.fromtimestamp(record["at"], UTC).date())
        if day > found.day:
            found = _DayCounts(day)
        found.add(record, most)
    return found


def _entry(record: Record) -> dict[str, Any]:
    return {
        "serial": record["serial"],
        "of_serial": record["of_serial"],
        "at": utc_text(record["at"]),
        "project": record["project"],
        "normalized": record["normalized"],
        "version": record.get("version"),
        "what": record.get("filename") or record.get("module"),
        "more": change_summary(record),
        "page": change_page(record),
    }


def change_summary(record: Record) -> str:
    """Return the details of a change as text."""
    parts = [f"at serial {record['of_serial']}"]
    if record["serial"] != record["of_serial"]:
        parts.append(f"published at serial {record['serial']}")
    if record.get("cause"):
        parts.append(f"cause: {record['cause']}")
    if record.get("yanked_reason"):
        parts.append(f"reason: {record['yanked_reason']}")
    if record["kind"] == RELEASE_COMPARED:
        parts.append(f"compared with {record['against']}")
        parts += [f"{what} {_named(record[what])}" for what in ("gained", "lost") if record[what]]
    if record["kind"] == NEW_PROVIDER and record["is_first"]:
        parts.append("the first project with this module")
    return "; ".join(parts)


def _named(difference: Mapping[str, list[str]]) -> str:
    return ", ".join(
        f"{fact.replace('_', ' ')}: {', '.join(names[:_MOST_NAMES])}{' ...' if len(names) > _MOST_NAMES else ''}"
        for fact, names in difference.items()
    )


def change_page(record: Record) -> str | None:
    """Return the address of the page about a change, or None."""
    name, version = record["normalized"], record.get("version")
    if not name:
        return None
    if version and record["stream"] != JournalStream.INDEX:
        return page_address("", "release", name, version) or page_address("", "project", name)
    return page_address("", "project", name)


OPERATIONS = page_operations(_changes)
