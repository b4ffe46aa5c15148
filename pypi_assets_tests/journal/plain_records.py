"""Computes the records of a journal from whole tables in memory, file by file, without the code that makes segments.

It is an oracle for the bytes of all streams, after the stored takedowns. Names and values of fields are written out
here, so that a change of the records is a change of this file too. Only stored snapshots are read by the code that
stores them.
"""

import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from packaging.utils import canonicalize_name, canonicalize_version
from packaging.version import InvalidVersion, Version
from sqlalchemy import Table, select

from pypi_assets.catalog import tables
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.snapshots import read_entries
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.index.actions import Action, file_change
from pypi_assets.index.models import ChangelogEvent

TableRow = dict[str, Any]
PlainRecord = dict[str, Any]
Facts = dict[str, set[str]]

_EVENT_CAUSES = {action.value for action in Action}
_OBSERVED_FACTS = (
    *("url", "sha256", "size", "uploaded_at", "requires_python", "yanked_reason", "core_metadata_sha256"),
    "first_seen_at",
)
_CONTENT_FIELDS = (
    *("sha256", "outcome", "error_kind", "extractor_version", "metadata_version", "requires_python", "requires_dist"),
    *("provides_extra", "modules", "modules_by", "modules_grade", "requires_by", "stubs", "left_out", "summary"),
    *("license_expression", "license", "license_classifiers", "console_scripts", "gui_scripts", "entry_point_groups"),
    *("project_urls", "import_names", "notes", "start_up_paths", "refusals", "installed_metadata"),
)
_EMPTY_IF_READ = ("license_classifiers", "project_urls", "start_up_paths", "refusals", "notes")
"""Lists that are empty if the file was read and its details do not have them, and null if it was not read."""
_ALWAYS_EMPTY: dict[str, Any] = {"provides_extra": [], "stubs": [], "left_out": 0}
_COMPARED_FACTS = ("modules", "requirements", "commands", "license", "requires_python", "start_up")


class PlainJournal:
    """The rows of a catalog, and the records that they result in."""

    def __init__(self, catalog: Catalog) -> None:
        with catalog.read() as connection:

            def rows(table: Table) -> list[TableRow]:
                return [dict(row._mapping) for row in connection.execute(select(table))]

            [self.state] = rows(tables.catalog_state)
            self.projects = _by_id(rows(tables.projects))
            self.releases = _by_id(rows(tables.releases))
            self.files = _by_id(rows(tables.distributions))
            self.data = {row["distribution_id"]: row for row in rows(tables.distribution_data)}
            self.lists = {row["id"]: json.loads(zlib.decompress(row["content"])) for row in rows(tables.name_lists)}
            self.shared = {
                row["id"]: json.loads(zlib.decompress(row["content"])) for row in rows(tables.shared_details)
            }
            self.changes = rows(tables.changes)
            self.events = {row["serial"]: row for row in rows(tables.events)}
            self.live = _spans(rows(tables.live_intervals))
            self.yanked = _spans(rows(tables.yanked_intervals))
            self.past = rows(tables.past_generations)
            self.followed = sorted(rows(tables.followed_intervals), key=lambda row: row["start"])
            self.ranges = sorted(rows(tables.serial_ranges), key=lambda row: row["start"])
            self.sightings = sorted(rows(tables.sightings), key=lambda row: (row["at"], row["id"]))
            self.notices = rows(tables.journal_notices)
            self.broken = rows(tables.broken_entries)
            self.visits_of = _by_id(rows(tables.visits))
            self.statuses = sorted(rows(tables.visit_statuses), key=lambda row: int(row["id"]))
            self.snapshots = _by_id(rows(tables.snapshots))
            self.entries = read_entries(connection, self.snapshots)
            self.takedowns = sorted(rows(tables.journal_takedowns), key=lambda row: int(row["id"]))
        for row in self.takedowns:
            row["release"] = next(
                (
                    self.releases[file["release_id"]]["version"]
                    for file in self.files.values()
                    if file["filename"] == row["filename"]
                    and self.projects[file["project_id"]]["normalized"] == row["project"]
                ),
                None,
            )

    def lines(self, stream: str, serials: SerialRange) -> list[bytes]:
        """Return the lines of a stream for some serials."""
        records = {"index": self.index, "observed": self.observed, "content": self.content, "visits": self.visits}
        found, last, ordinal = [], None, 0
        for record in records[stream](serials):
            ordinal = ordinal + 1 if record["serial"] == last else 0
            last = record["serial"]
            record["ordinal"], record["stream"] = ordinal, stream
            text = json.dumps(self._taken_down(record), ensure_ascii=False, separators=(",", ":"))
            found.append(text.encode(errors="replace"))
        return found

    def index(self, serials: SerialRange) -> list[PlainRecord]:
        """Return the records of the changelog."""
        of_events = []
        for serial, row in sorted(self.events.items()):
            if serial in serials:
                event = ChangelogEvent(row["name"], row["version"], row["timestamp"], row["action"], serial)
                change = file_change(event)
                record = _record(serial, serial, change.action.value, event.timestamp)
                record |= {"project": event.name, "normalized": canonicalize_name(event.name)}
                record |= {} if event.version is None else {"version": event.version}
                record |= {} if change.filename is None else {"filename": change.filename}
                of_events.append(record | {"action": event.action})
        unreadable = [
            _record(row["after_serial"], row["after_serial"], "unreadable", None)
            | {"problem": row["problem"], "content": row["content"], "digest": row["digest"]}
            for row in sorted(self.broken, key=lambda row: row["digest"])
            if row["source"] == "changelog" and row["after_serial"] is not None and row["after_serial"] in serials
        ]
        return _in_order([*self._gaps(serials), *of_events, *unreadable])

    def observed(self, serials: SerialRange) -> list[PlainRecord]:
        """Return the records of changed files, and announcements before the files of their serial."""
        unanswered = []
        if 1 in serials and self.state["exact_from"] > 1:
            unanswered = [_record(1, 1, "gap", None) | {"until": self.state["exact_from"]}]
        notices = [
            _record(row["logged_serial"], row["of_serial"], str(row["kind"]), None)
            for row in sorted(self.notices, key=lambda row: (row["logged_serial"], row["kind"]))
            if row["logged_serial"] in serials
        ]
        files = [self._observed_file(row) for row in self._logged(serials) if row["cause"] != "read late"]
        return _in_order([*unanswered, *self._gaps(serials, with_times=True), *notices, *files])

    def content(self, serials: SerialRange) -> list[PlainRecord]:
        """Return the records of contents, and after them the changes of releases at the same serial."""
        found: list[PlainRecord] = []
        for serial, logged in groupby(self._logged(serials), key=lambda row: row["logged_serial"]):
            files: dict[int, TableRow] = {}
            for row in logged:
                if self._has_content_here(row):
                    files.setdefault(row["distribution_id"], row)
            for row in files.values():
                content = self._content_at(row["distribution_id"], serial)
                if content is not None:
                    kind = "file read" if content["outcome"] == "data" else "file not read"
                    found.append(self._file_record(row, kind) | content)
            found += self._changed_releases(serial, list(files.values()))
        return found

    def visits(self, serials: SerialRange) -> list[PlainRecord]:
        """Return the records of visits, each with the difference from the page of an earlier record."""
        logged = sorted({(row["logged_serial"], row["visit_id"]) for row in self.statuses if row["logged_serial"]})
        return [self._visit(serial, id_) for serial, id_ in logged if serial in serials]

    def _visit(self, serial: int, id_: int) -> PlainRecord:
        visit, statuses = self.visits_of[id_], [row for row in self.statuses if row["visit_id"] == id_]
        project, seen = self.projects[visit["project_id"]], self._seen(id_)
        of_serial = serial
        if seen is not None:
            of_serial = seen["seen_through"] if seen["page_serial"] is None else seen["page_serial"]
        kind = "visit " + statuses[-1]["status"].replace("_", " ")
        record = _record(serial, of_serial, kind, int(statuses[-1]["at"]))
        record |= {"project": project["name"], "normalized": project["normalized"], "visit": visit["visit"]}
        record |= {"workload": visit["workload"], "visit_kind": visit["kind"], "started_at": visit["started_at"]}
        record |= {"rulesets": visit["rulesets"], "statuses": []}
        for row in statuses:
            names = ("page_serial", "seen_through", "page_status", "text")
            shown = {name: row[name] for name in names if row[name] is not None}
            record["statuses"].append({"at": row["at"], "status": row["status"]} | shown)
        record |= {"snapshot": None, "files": None, "base": None, "gone": [], "changed": []}
        if seen is not None:
            page, earlier = self.snapshots[seen["snapshot_id"]], self._page_before(visit, seen)
            own, base = self.entries[page["id"]], {} if earlier is None else self.entries[earlier["id"]]
            record |= {"snapshot": page["sha256"], "files": page["files"]}
            record["base"] = None if earlier is None else earlier["sha256"]
            record["gone"] = sorted(name for name in base if name not in own)
            record["changed"] = [[name, *own[name]] for name in sorted(own) if base.get(name) != own[name]]
        return record

    def _seen(self, visit_id: int) -> TableRow | None:
        """Return the last status of a visit that saw a page."""
        found = [row for row in self.statuses if row["visit_id"] == visit_id and row["snapshot_id"] is not None]
        return found[-1] if found else None

    def _page_before(self, visit: TableRow, seen: TableRow) -> TableRow | None:
        """Return the page of the project's newest earlier visit whose record comes before that of `visit`."""
        for number in range(visit["visit"] - 1, 0, -1):
            for other in self.visits_of.values():
                if (other["project_id"], other["visit"]) == (visit["project_id"], number):
                    page = self._seen(other["id"])
                    if page is not None and (page["logged_serial"] or math.inf) <= seen["logged_serial"]:
                        return self.snapshots[page["snapshot_id"]]
        return None

    def _taken_down(self, record: PlainRecord) -> PlainRecord:
        """Return the record, or what the takedowns leave of it."""
        for row in self.takedowns:
            if _names(row, record):
                left = _record(record["serial"], record["of_serial"], "taken down", record["at"])
                left |= {"ordinal": record["ordinal"], "stream": record["stream"]}
                if not row["hides_name"]:
                    left |= {"project": record["project"], "normalized": record["normalized"]}
                record = left | {"reason": row["reason"], "taken_down_at": int(row["added_at"])}
        return record

    def _logged(self, serials: SerialRange) -> list[TableRow]:
        """Return the changes that are logged at these serials, in order."""

        def place(row: TableRow) -> tuple[Any, ...]:
            file = self.files[row["distribution_id"]]
            normalized = self.projects[file["project_id"]]["normalized"]
            return row["logged_serial"], row["serial"], normalized, file["filename"], row["cause"]

        return sorted((row for row in self.changes if row["logged_serial"] in serials), key=place)

    def _file_record(self, row: TableRow, kind: str) -> PlainRecord:
        file = self.files[row["distribution_id"]]
        project = self.projects[file["project_id"]]
        record = _record(row["logged_serial"], row["serial"], kind, self._seconds(row["serial"]))
        record |= {"project": project["name"], "normalized": project["normalized"]}
        record["version"] = self.releases[file["release_id"]]["version"]
        return record | {"filename": file["filename"], "cause": row["cause"]}

    def _seconds(self, serial: int) -> int | None:
        """Return the time of the last event up to `serial`."""
        before = [known for known in self.events if known <= serial]
        return self.events[max(before)]["timestamp"] if before else None

    def _gaps(self, serials: SerialRange, *, with_times: bool = False) -> list[PlainRecord]:
        found = []
        for row in self.ranges:
            start, until = row["start"], row["exact_from"]
            if until is None or start + 1 not in serials or until <= start + 1:
                continue
            at = None
            if with_times and row["lister"] == "simple":
                at = int(row["completed_at"] if until > row["end"] else row["requested_at"])
            found.append(_record(start + 1, start + 1, "gap", at) | {"until": until})
        return found

    def _observed_file(self, row: TableRow) -> PlainRecord:
        file, serial, own = self.files[row["distribution_id"]], row["logged_serial"], row["serial"]
        project = self.projects[file["project_id"]]
        live, yanked = (_until(spans.get(file["id"], []), serial) for spans in (self.live, self.yanked))
        kind = self._kind(row, live, yanked)
        record = self._file_record(row, kind)
        if row["cause"] == "listed" and (seen := self._sighting(project["id"], own)) is not None:
            record["at"] = int(seen["at"])
            record["not_before"] = None if seen["not_before"] is None else int(seen["not_before"])
        event = self.events.get(own)
        if event is not None and event["project_id"] == project["id"]:
            record["event"] = {"serial": own, "action": event["action"]}
        if kind == "file corrected":
            record["corrects"] = own
        facts = self._past(file["id"], serial) or file
        record |= {"distribution_kind": file["kind"], "generation": facts["generation"]}
        record |= {name: facts.get(name) for name in _OBSERVED_FACTS}
        record["project_status"] = None if project["status"] == "quarantined" else project["status"]
        record |= {"live": live, "yanked": yanked}
        if self.state["follows_all"] is False:
            record["followed"] = [
                [one["start"], one["end"], one["exact_from"]]
                for one in self.followed
                if one["project_id"] == project["id"] and one["exact_from"] is not None
            ]
        return record

    def _sighting(self, project_id: int, serial: int) -> TableRow | None:
        """Return the first page of a project that showed the state at `serial`."""
        for row in self.sightings:
            if row["project_id"] == project_id and serial in {row["page_serial"], row["seen_through"]}:
                return row
        return None

    def _is_repeated(self, row: TableRow) -> bool:
        """Check whether the change is also logged at its own serial."""
        return row["logged_serial"] != row["serial"] and any(
            other["distribution_id"] == row["distribution_id"]
            and other["serial"] == other["logged_serial"] == row["serial"]
            for other in self.changes
        )

    def _kind(self, row: TableRow, live: list[list[int | None]], yanked: list[list[int | None]]) -> str:
        cause, own = row["cause"], row["serial"]
        if self._is_repeated(row) or cause == "corrected":
            return "file corrected"
        if cause in {"replaced", "followed", "unfollowed"}:
            return f"file {cause}"
        if any(start == own for start, _ in live):
            return "file shown" if cause in {"unquarantine project", "unquarantine release"} else "file added"
        if any(end == own for _, end in live):
            return "file hidden" if cause in {"quarantine project", "quarantine release"} else "file removed"
        if any(start == own for start, _ in yanked):
            return "file yanked"
        if any(end == own for _, end in yanked):
            return "file unyanked"
        return "file corrected"

    def _has_content_here(self, row: TableRow) -> bool:
        """Check whether the record of the file's content is at this change, and not at a later one."""
        id_, cause, own = row["distribution_id"], row["cause"], row["logged_serial"]
        if cause == "read late":
            return True
        is_begun = not self._is_repeated(row) and [row["serial"]] in [one[:1] for one in self.live.get(id_, [])]
        if not is_begun and cause not in {"replaced", "followed"}:
            return False
        later = [  # at the same serial, a late read comes before a replacement
            (other["logged_serial"], other["cause"] == "replaced")
            for other in self.changes
            if other["distribution_id"] == id_ and other["cause"] in {"read late", "replaced"}
        ]
        later = [one for one in later if one > (own, True) or one == (own, False)]
        return not later or min(later)[1]

    def _past(self, id_: int, serial: int) -> TableRow | None:
        """Return the facts of the content that counted at `serial`, if the file has another content now."""
        past = [row for row in self.past if row["distribution_id"] == id_ and row["until"] > serial]
        if not past:
            return None
        row = min(past, key=lambda row: int(row["until"]))
        facts: TableRow = json.loads(zlib.decompress(row["content"]))
        return facts | {"sha256": row["sha256"], "generation": row["generation"]}

    def _content_at(self, id_: int, serial: int) -> PlainRecord | None:
        """Return the content that counted at `serial`, or None if the file is not read yet."""
        data, kind, past = self.data[id_], self.files[id_]["kind"], self._past(id_, serial)
        if past is None:
            if data["outcome"] == "pending":
                return None
            lists = {name: self._list(data[f"{name}_id"]) for name in ("requires_dist", "modules")}
            return _content(self.files[id_]["sha256"], kind, data | lists, self._details(data))
        read = past | {"requires_python": past["read_requires_python"]}
        if past["outcome"] == "pending":  # it was replaced before it was read
            read["outcome"] = "vanished"
        return _content(past["sha256"], kind, read, past["details"])

    def _details(self, data: TableRow) -> TableRow:
        shared = {} if data["shared_details_id"] is None else self.shared[data["shared_details_id"]]
        return {**json.loads(data["details"] or "{}"), **shared}

    def _list(self, id_: int | None) -> list[str] | None:
        return None if id_ is None else self.lists[id_]

    def _changed_releases(self, serial: int, files: list[TableRow]) -> Iterator[PlainRecord]:
        """Yield the changes of the releases that have these new files at a serial."""
        releases: dict[tuple[str, str], list[TableRow]] = {}
        for row in files:
            if row["cause"] in _EVENT_CAUSES or row["cause"] == "read late":
                file = self.files[row["distribution_id"]]
                place = self.projects[file["project_id"]]["normalized"], self.releases[file["release_id"]]["version"]
                releases.setdefault(place, []).append(row)
        for (_, version), rows in sorted(releases.items()):
            new = {row["distribution_id"] for row in rows}
            project_id = self.files[rows[0]["distribution_id"]]["project_id"]
            for kind, facts in self._release_changes(serial, project_id, version, new):
                record = self._file_record(rows[0], kind)
                del record["filename"], record["cause"]
                yield record | facts

    def _release_changes(
        self, serial: int, project_id: int, version: str, new: set[int]
    ) -> Iterator[tuple[str, PlainRecord]]:
        live: dict[str, list[int]] = {}
        for file in self.files.values():
            is_read = file["project_id"] == project_id and self.data[file["id"]]["outcome"] == "data"
            if is_read and self._is_live(file["id"], serial):
                live.setdefault(self.releases[file["release_id"]]["version"], []).append(file["id"])
        files = live.get(version, [])
        before = [id_ for id_ in files if id_ not in new]
        if len(before) == len(files):
            return
        earlier = [other for other in live if _version_key(other) < _version_key(version)]
        if earlier:
            base = max(earlier, key=_version_key)
            against = self._facts(live[base])
            gained, lost = _difference(self._facts(files), against)
            is_new = not before or _difference(self._facts(before), against) != (gained, lost)
            if (gained or lost) and is_new:
                yield "release compared", {"against": base, "gained": gained, "lost": lost}
        others = [id_ for of_version in live.values() for id_ in of_version if id_ not in new]
        roots = set().union(*map(self._roots, files)) - set().union(*map(self._roots, others))
        for root in sorted(roots)[:50]:
            yield "new provider", {"module": root, "is_first": not self._is_provided(root, project_id, serial)}

    def _facts(self, ids: Iterable[int]) -> Facts:
        """Return the facts of files that releases can gain or lose."""
        found: Facts = {name: set() for name in _COMPARED_FACTS}
        for id_ in ids:
            data = self.data[id_]
            content = _content(None, self.files[id_]["kind"], data, self._details(data))
            found["modules"] |= set(self._list(data["modules_id"]) or ())
            found["requirements"] |= set(self._list(data["requires_dist_id"]) or ())
            scripts = (content["console_scripts"] or []) + (content["gui_scripts"] or [])
            found["commands"] |= {line.split(" = ")[0] for line in scripts}
            found["license"] |= {content["license_expression"] or content["license"]} - {None, ""}
            found["requires_python"] |= {data["requires_python"]} - {None, ""}
            marks = [note for note in content["notes"] or [] if note.startswith("start-up code:")]
            found["start_up"] |= {note.split(":", 1)[1].strip() for note in marks}
        return found

    def _roots(self, id_: int) -> set[str]:
        return {module.split(".")[0] for module in self._list(self.data[id_]["modules_id"]) or ()}

    def _is_live(self, id_: int, serial: int) -> bool:
        return any(start <= serial and (end is None or end > serial) for start, end in self.live.get(id_, []))

    def _is_provided(self, root: str, project_id: int, serial: int) -> bool:
        """Check whether another project has the top-level name at `serial`."""
        return any(
            file["project_id"] != project_id
            and root in self._roots(file["id"])
            and self._is_live(file["id"], serial)
            and self._is_answered(file["project_id"], serial)
            for file in self.files.values()
        )

    def _is_answered(self, project_id: int, serial: int) -> bool:
        return self.state["follows_all"] is not False or any(
            one["project_id"] == project_id
            and one["exact_from"] is not None
            and one["exact_from"] <= serial
            and (one["end"] is None or one["end"] > serial)
            for one in self.followed
        )


def _names(takedown: TableRow, record: PlainRecord) -> bool:
    """Check whether a takedown names a record."""
    place = (takedown["stream"], takedown["serial"], takedown["ordinal"])
    is_whole = takedown["version"] is None and takedown["filename"] is None
    is_of_project = takedown["project"] is not None and record["normalized"] == takedown["project"]
    if record["kind"] == "taken down":
        return is_of_project and is_whole and bool(takedown["hides_name"])
    if not is_of_project:
        is_announcement = record["normalized"] is None and record["kind"] != "unreadable"
        return place == (record["stream"], record["serial"], record["ordinal"]) and not is_announcement
    if is_whole:
        return True
    if record["kind"] in {"release compared", "new provider"}:  # of two releases, or of one
        wanted = takedown["version"] or takedown["release"]
        wanted = wanted or parse_filename(takedown["filename"], takedown["project"]).version
        return wanted is None or any(_is_version(record.get(name), wanted, False) for name in ("version", "against"))
    files = [(record.get("filename"), record.get("version"))]
    if record["stream"] == "visits":
        names = [*record["gone"], *(name for name, *_ in record["changed"])]
        files = [(name, parse_filename(name, takedown["project"]).version) for name in names]
    return any(
        takedown["filename"] in {None, name}
        and (takedown["version"] is None or _is_version(version, takedown["version"], record["stream"] == "visits"))
        for name, version in files
    )


def _is_version(found: str | None, wanted: str, unknown: bool) -> bool:
    """Check whether two versions are equal. If the first is not known, return `unknown`."""
    return unknown if found is None else canonicalize_version(found) == canonicalize_version(wanted)


def _by_id(rows: Iterable[TableRow]) -> dict[int, TableRow]:
    return {row["id"]: row for row in rows}


def _spans(rows: Iterable[TableRow]) -> dict[int, list[list[int | None]]]:
    """Return the intervals of each file, in order."""
    found: dict[int, list[list[int | None]]] = {}
    for row in sorted(rows, key=lambda row: int(row["start"])):
        found.setdefault(row["distribution_id"], []).append([row["start"], row["end"]])
    return found


def _until(spans: Iterable[list[int | None]], serial: int) -> list[list[int | None]]:
    """Return the intervals as they were known at `serial`."""
    begun = [(start, end) for start, end in spans if start is not None and start <= serial]
    return [[start, end if end is not None and end <= serial else None] for start, end in begun]


def _record(serial: int, of_serial: int, kind: str, at: int | None) -> PlainRecord:
    place = {"serial": serial, "of_serial": of_serial, "ordinal": 0, "stream": ""}
    return place | {"kind": kind, "at": at, "project": None, "normalized": None}


def _in_order(records: Iterable[PlainRecord]) -> list[PlainRecord]:
    return sorted(records, key=lambda record: int(record["serial"]))


def _content(sha256: str | None, kind: str, read: Mapping[str, Any], details: Mapping[str, Any]) -> PlainRecord:
    """Return the content of a file, from the columns of its read and its details."""
    is_read = read["outcome"] == "data"
    found: PlainRecord = {name: details.get(name) for name in _CONTENT_FIELDS}
    found |= {name: details.get(name, empty) for name, empty in _ALWAYS_EMPTY.items()}
    found |= {name: details.get(name, [] if is_read else None) for name in _EMPTY_IF_READ}
    if kind == "sdist":
        found["start_up_paths"] = details.get("start_up_paths")
    found |= {name: read.get(name) for name in _CONTENT_FIELDS[1:7]} | {"modules": read.get("modules")}
    found["sha256"] = sha256
    if "modules_by" in details:
        found["modules_grade"] = details.get("modules_grade", "exact")
    groups = details.get("entry_points", {} if is_read else None)
    found["entry_point_groups"] = None if groups is None else sorted(groups)
    for group in ("console_scripts", "gui_scripts"):
        scripts = None if groups is None else groups.get(group, {})
        found[group] = None if scripts is None else [f"{name} = {target}" for name, target in scripts.items()]
    return found


def _version_key(version: str) -> tuple[bool, Any, str]:
    """Return a sort key by PEP 440. Invalid versions come first."""
    try:
        return True, Version(version), version
    except InvalidVersion:
        return False, 0, version


def _difference(new: Facts, old: Facts) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    gained = {name: sorted(new[name] - old[name]) for name in _COMPARED_FACTS if new[name] - old[name]}
    return gained, {name: sorted(old[name] - new[name]) for name in _COMPARED_FACTS if old[name] - new[name]}
