"""Replay journal records into a catalog that has no other writer. docs/journal.md describes the fields of records.

A record of a file has the complete history of the file, so only the last one counts: records can be replayed again, and
in batches. Replayed records count once `finish_replay` has advanced the complete serial.
"""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec
from sqlalchemy import Connection, bindparam, delete, exists, func, insert, select, update

from pypi_assets.catalog.counters import add_counts, read_counts
from pypi_assets.catalog.database import at_a_time, insert_missing, lock_rows, sent_rows, upsert
from pypi_assets.catalog.derived.file_history import UNEXPLAINED
from pypi_assets.catalog.derived.file_updates import REPLACED
from pypi_assets.catalog.derived.recompute import UNEXPLAINED_CHANGES
from pypi_assets.catalog.derived.replayed_changes import changed_serials, renamed_projects, shown_files
from pypi_assets.catalog.derived.replayed_visits import enter_pages, enter_visits
from pypi_assets.catalog.derived.stored_files import SHOWN_FACTS
from pypi_assets.catalog.ledger.epochs import note_change, note_changed_projects
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, RangeState, complete_serial, lock_state
from pypi_assets.catalog.observed.index_state import EntrySource
from pypi_assets.catalog.observed.projects import enter_projects, project_ids
from pypi_assets.catalog.observed.visit_statistics import note_seen
from pypi_assets.catalog.reads.file_counts import counting_files, recount_files
from pypi_assets.catalog.reads.past_generations import keep_past_generations
from pypi_assets.catalog.reads.read_outcomes import READ_LATE, ReadOutcome
from pypi_assets.catalog.reads.stored_contents import (
    OWN_DETAILS,
    RecordDetails,
    store_list_contents,
    store_shared_details,
    unstored_details,
)
from pypi_assets.catalog.reads.stored_json import to_json
from pypi_assets.catalog.tables import (
    broken_entries,
    catalog_state,
    changes,
    distribution_data,
    distributions,
    events,
    followed_intervals,
    full_crawls,
    live_intervals,
    projects,
    releases,
    serial_ranges,
    yanked_intervals,
)
from pypi_assets.distributions.installability import is_installable
from pypi_assets.distributions.record import SHARED_FIELDS, DistributionKind, ModulesGrade
from pypi_assets.index.actions import file_change
from pypi_assets.index.models import ChangelogEvent

Record = Mapping[str, Any]
"""A record of the journal. Lists of names in the content stream can be JSON that is not decoded yet."""
Key = tuple[str, str]
"""The normalized name of a project, and a filename."""
_OWN = tuple(name for name in OWN_DETAILS if name not in {"version", "modules_grade", "declared"})
"""Without fields that journal records lack, and without the grade, which is null there in other cases."""
_DATA = (
    *("outcome", "error_kind", "extractor_version", "metadata_version", "requires_python", "requires_dist_id"),
    *("modules_id", "details", "shared_details_id", "is_rejected"),
)


@dataclass
class ReplayedRecords:
    """Records that are stored together: only the last record of each file.

    `log` has all changes of files, each with its serial, its cause, and the serial at which it is logged.
    """

    observed: dict[Key, Record] = field(default_factory=dict)
    content: dict[Key, Record] = field(default_factory=dict)
    log: list[tuple[Key, int, str, int]] = field(default_factory=list)
    events: list[Record] = field(default_factory=list)
    unreadable: list[Record] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    replaced_at: dict[Key, int] = field(default_factory=dict)
    followed: dict[str, Sequence[Sequence[int | None]]] = field(default_factory=dict)
    visits: dict[tuple[str, int], Record] = field(default_factory=dict)

    def is_full_for(self, record: Record) -> bool:
        """Check whether the earlier records must be stored first, since this one has another content of its file."""
        if record["stream"] != "observed" or "filename" not in record:
            return False
        before = self.observed.get((record["normalized"], record["filename"]))
        return before is not None and before["generation"] != record["generation"]

    def add(self, record: Record) -> None:
        """Add a record. Records must be added in the order of the journal."""
        match record["stream"]:
            case "index" if "action" in record:
                self.events.append(record)
                self.names.setdefault(record["normalized"], record["project"])
            case "index" if "problem" in record:
                self.unreadable.append(record)
            case "observed" if "filename" in record:
                key = record["normalized"], record["filename"]
                self.observed[key] = record
                self.log.append((key, record["of_serial"], record["cause"], record["serial"]))
                if record["cause"] == REPLACED:
                    self.replaced_at.setdefault(key, record["of_serial"])
                if "followed" in record:
                    self.followed[record["normalized"]] = record["followed"]
            case "content" if "outcome" in record:
                key = record["normalized"], record["filename"]
                self.content[key] = record
                if record["cause"] == READ_LATE:
                    self.log.append((key, record["of_serial"], READ_LATE, record["serial"]))
            case "visits" if "statuses" in record:
                self.visits[record["normalized"], record["visit"]] = record


def enter_records(connection: Connection, records: ReplayedRecords, known_since: int) -> None:
    """Store these records. For new projects, the journal has all events above `known_since`.

    If the records change answers at serials that are already complete, these serials get a new epoch.
    """
    shown = {record["normalized"]: record for record in records.observed.values()}
    named = records.names | {name: record["project"] for name, record in shown.items()}
    for of_others in (records.content, records.visits):
        named |= {key[0]: record["project"] for key, record in of_others.items() if key[0] not in named}
    enter_projects(connection, [(name, known_since) for name in named.values()])
    ids = project_ids(connection, sorted(named))
    if complete := complete_serial(connection):
        _enter_changes(connection, records, shown.values(), ids, complete)
    else:
        _enter_rows(connection, records, shown.values(), ids)
    enter_visits(connection, records.visits, ids)  # last, by the order of locks


def _enter_changes(
    connection: Connection, records: ReplayedRecords, shown: Collection[Record], ids: Mapping[str, int], complete: int
) -> None:
    """Store the rows of these records, and give a new epoch to the complete serials whose answers change."""
    places = {(ids[normalized], filename) for normalized, filename in records.observed.keys() | records.content.keys()}
    before = shown_files(connection, places, ids.values())
    with counting_files(connection, sorted(before.facts)) as entered:
        unexplained = _enter_rows(connection, records, shown, ids)
        after = shown_files(connection, places, ids.values())
        entered += after.facts.keys() - before.facts.keys()
    add_counts(connection, {UNEXPLAINED_CHANGES: unexplained})
    serials = [*changed_serials(before, after), *(serial for _, serial, _, _ in records.log)]
    if changed := [serial for serial in serials if serial <= complete]:
        lock_state(connection, exclusive=False)
        note_change(connection, min(changed), complete)
    note_changed_projects(connection, renamed_projects(before, after))


def _enter_rows(
    connection: Connection, records: ReplayedRecords, shown: Collection[Record], ids: Mapping[str, int]
) -> int:
    """Store the rows of these records; `shown` has the last record of each project.

    Return the number of new changes that are unexplained.
    """
    _name_projects(connection, shown, ids)
    enter_pages(connection, records.visits, ids)
    before = _stored_files(connection, records.observed.keys() | records.content.keys(), ids)
    unread = _enter_files(connection, records.observed, records.replaced_at, ids, before)
    files = before | _stored_files(connection, records.observed.keys(), ids)
    # the observed records of a file can have been redacted, but not its content record
    _enter_contents(connection, {key: one for key, one in records.content.items() if key in files}, files, unread)
    rows = [
        {"distribution_id": files[key].id, "serial": serial, "cause": cause, "logged_serial": logged}
        for key, serial, cause, logged in records.log
        if key in files
    ]
    insert_missing(connection, changes, [row for row in rows if row["cause"] != UNEXPLAINED])
    unexplained = insert_missing(connection, changes, [row for row in rows if row["cause"] == UNEXPLAINED])
    _enter_intervals(connection, records.observed, files, {row.id for row in before.values()})
    _enter_followed(connection, {ids[name]: spans for name, spans in records.followed.items()})
    _enter_events(connection, records, ids)
    return unexplained


def _name_projects(connection: Connection, shown: Iterable[Record], ids: Mapping[str, int]) -> None:
    rows = [
        {"of_id": ids[record["normalized"]], "shown_name": record["project"], "shown_status": record["project_status"]}
        for record in shown
    ]
    if rows:
        c = projects.c
        new: dict[str, Any] = {"name": bindparam("shown_name"), "status": bindparam("shown_status")}
        connection.execute(update(projects).where(c.id == bindparam("of_id")).values(new), rows)


def _enter_events(connection: Connection, records: ReplayedRecords, ids: Mapping[str, int]) -> None:
    rows = []
    for record in records.events:
        event = ChangelogEvent(
            record["project"], record.get("version"), record["at"], record["action"], record["serial"]
        )
        rows.append(
            {
                "serial": event.serial,
                "project_id": ids[record["normalized"]],
                "name": event.name,
                "version": event.version,
                "timestamp": event.timestamp,
                "action": event.action,
                "kind": file_change(event).action,
            }
        )
    note_seen(connection, {ids[record["normalized"]]: float(record["at"]) for record in records.events})
    insert_missing(connection, events, rows)
    unreadable = [
        {
            "source": EntrySource.CHANGELOG,
            "digest": record["digest"],
            "after_serial": record["serial"],
            "problem": record["problem"],
            "content": record["content"],
            "seen_at": 0.0,
        }
        for record in records.unreadable
    ]
    insert_missing(connection, broken_entries, unreadable)


def _enter_followed(connection: Connection, spans: Mapping[int, Sequence[Sequence[int | None]]]) -> None:
    for chunk in at_a_time(sorted(spans)):
        connection.execute(delete(followed_intervals).where(followed_intervals.c.project_id.in_(chunk)))
    rows = [
        {"project_id": id_, "start": start, "end": end, "exact_from": exact_from}
        for id_, of_project in spans.items()
        for start, end, exact_from in of_project
    ]
    insert_missing(connection, followed_intervals, rows)


def _enter_files(
    connection: Connection,
    observed: Mapping[Key, Record],
    replaced_at: Mapping[Key, int],
    ids: Mapping[str, int],
    stored: Mapping[Key, Any],
) -> set[Key]:
    """Insert or update the rows of these files; `stored` has their present rows. Replaced contents are kept.

    Return the files that are new, or whose content is new.
    """
    wanted = sorted({(ids[key[0]], record["version"]) for key, record in observed.items()})
    insert_missing(connection, releases, [{"project_id": id_, "version": version} for id_, version in wanted])
    sent, is_sent = sent_rows(connection, (releases.c.project_id, releases.c.version), wanted)
    found_releases = connection.execute(select(releases).select_from(sent).join(releases, is_sent))
    release_ids = {(row.project_id, row.version): row.id for row in found_releases}
    before = {key: stored[key] for key in observed if key in stored}
    replaced = {
        row.id: replaced_at.get(key, observed[key]["of_serial"])
        for key, row in before.items()
        if observed[key]["generation"] > row.generation
    }
    for chunk in at_a_time(sorted(row.id for row in stored.values())):
        lock_rows(connection, distribution_data, distribution_data.c.distribution_id.in_(chunk))
    keep_past_generations(connection, replaced)
    rows = {
        key: {
            "project_id": ids[key[0]],
            "release_id": release_ids[ids[key[0]], record["version"]],
            "filename": key[1],
            "kind": record["distribution_kind"],
            "generation": record["generation"],
            **{name: record.get(name) for name in SHOWN_FACTS},
        }
        for key, record in observed.items()
    }
    insert_missing(connection, distributions, [row for key, row in rows.items() if key not in before])
    known = []
    for key, old in before.items():
        row = rows[key]
        new = {f"new_{name}": row[name] for name in ("release_id", "generation", *SHOWN_FACTS)}
        if row["sha256"] is None and old.id not in replaced:
            new["new_sha256"] = old.sha256  # the hash of the content that was read
        known.append({"of_id": old.id} | new)
    if known:
        values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in ("release_id", "generation", *SHOWN_FACTS)}
        connection.execute(update(distributions).where(distributions.c.id == bindparam("of_id")).values(values), known)
    return {key for key in observed if key not in before or before[key].id in replaced}


def _stored_files(connection: Connection, keys: Collection[Key], ids: Mapping[str, int]) -> dict[Key, Any]:
    """Return the stored rows of these files, by project and filename. `data_id` is None if no content is stored."""
    if not keys:
        return {}
    c = distributions.c
    by_id = {(ids[normalized], filename): (normalized, filename) for normalized, filename in keys}
    sent, is_sent = sent_rows(connection, (c.project_id, c.filename), sorted(by_id))
    data_id = distribution_data.c.distribution_id
    query = select(c.id, c.project_id, c.filename, c.kind, c.sha256, c.generation, data_id.label("data_id"))
    joined = sent.join(distributions, is_sent).outerjoin(distribution_data, data_id == c.id)
    rows = connection.execute(query.select_from(joined))
    return {by_id[row.project_id, row.filename]: row for row in rows}


def _enter_intervals(
    connection: Connection, observed: Mapping[Key, Record], files: Mapping[Key, Any], known: Collection[int]
) -> None:
    """Replace the intervals of these files. Only files with ids in `known` can have stored intervals."""
    ids = sorted({files[key].id for key in observed} & set(known))
    for name, table in (("live", live_intervals), ("yanked", yanked_intervals)):
        for chunk in at_a_time(ids):
            connection.execute(delete(table).where(table.c.distribution_id.in_(chunk)))
        rows = [
            {"distribution_id": files[key].id, "start": start, "end": end}
            for key, record in observed.items()
            for start, end in record[name]
        ]
        insert_missing(connection, table, rows)


def _enter_contents(
    connection: Connection, contents: Mapping[Key, Record], files: Mapping[Key, Any], unread: Collection[Key]
) -> None:
    """Store the contents that were read of these files. Files in `unread` that have no content here become pending."""
    read = {
        key: content
        for key, content in contents.items()
        if content["sha256"] == files[key].sha256 or None in {content["sha256"], files[key].sha256}
    }
    hashes = [
        {"of_id": files[key].id, "read_sha256": content["sha256"]}
        for key, content in read.items()
        if files[key].sha256 is None and content["sha256"] is not None
    ]
    if hashes:
        of_file = update(distributions).where(distributions.c.id == bindparam("of_id"))
        connection.execute(of_file.values(sha256=bindparam("read_sha256")), hashes)
    contents_of = _ListContents()
    named = {
        key: (contents_of.of(content["requires_dist"]), contents_of.of(content["modules"]))
        for key, content in read.items()
    }
    lists = store_list_contents(
        connection,
        {requires for requires, _ in named.values() if requires is not None},
        {modules for _, modules in named.values() if modules is not None},
    )
    details = {key: _details(content, files[key].kind) for key, content in read.items()}
    shared = store_shared_details(connection, [one.shared for one in details.values() if one.shared is not None])
    rows: list[dict[str, Any]] = [
        dict.fromkeys(_DATA) | {"distribution_id": files[key].id, "outcome": ReadOutcome.PENDING, "is_rejected": False}
        for key in unread
        if key not in read
    ]
    for key, content in read.items():
        (requires, modules), of_release = named[key], details[key].shared
        rows.append(
            {
                "distribution_id": files[key].id,
                "outcome": content["outcome"],
                "error_kind": content["error_kind"],
                "extractor_version": content["extractor_version"],
                "metadata_version": content["metadata_version"],
                "requires_python": content["requires_python"],
                "requires_dist_id": None if requires is None else lists[requires],
                "modules_id": None if modules is None else lists[modules],
                "details": details[key].own,
                "is_rejected": not is_installable(content.get("refusals")),
                "shared_details_id": None if of_release is None else shared[of_release],
            }
        )
    # New rows cannot block, and the other rows are locked: names and details come later in the order of locks.
    new = {files[key].id for key in (*unread, *read) if files[key].data_id is None}
    if new:
        connection.execute(insert(distribution_data), [row for row in rows if row["distribution_id"] in new])
    known = [row for row in rows if row["distribution_id"] not in new]
    upsert(connection, distribution_data, known, key=("distribution_id",), update=_DATA)


_decode_names = msgspec.json.Decoder(list[str] | None).decode


class _ListContents:
    """A converter of lists of names to the form of `to_json`, from lists that are decoded or not.

    Converted lists are cached, since the files of one release usually have the same ones. Raises msgspec.DecodeError if
    a value is not a list of names.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, bytes | None] = {}

    def of(self, names: Sequence[str] | msgspec.Raw | None) -> bytes | None:
        if not isinstance(names, msgspec.Raw):
            return None if names is None else to_json(names)
        raw = bytes(names)
        if raw not in self._known:
            found = _decode_names(raw)
            self._known[raw] = None if found is None else to_json(found)
        return self._known[raw]


def _details(content: Record, kind: str) -> RecordDetails:
    """Return the details of a record in their stored form: without values that readers assume if they are missing."""
    is_read, is_sdist = content["outcome"] == ReadOutcome.DATA, kind == DistributionKind.SDIST
    unstored = unstored_details(is_read=is_read, is_sdist=is_sdist)
    facts = {**dict.fromkeys((*_OWN, *SHARED_FIELDS)), **content, "entry_points": _entry_points(content)}
    own = {name: facts[name] for name in _OWN if facts[name] != unstored[name]}
    shared = {name: facts[name] for name in SHARED_FIELDS if facts[name] != unstored[name]}
    if shared.get("entry_points", {}) is None:
        own["entry_points"] = shared.pop("entry_points")
    grade = ModulesGrade.EXACT.value if "modules_by" in own else None
    if content["modules_grade"] != grade:
        own["modules_grade"] = content["modules_grade"]
    return RecordDetails(to_json(own).decode(), to_json(shared) if shared else None)


def _entry_points(content: Record) -> dict[str, dict[str, str]] | None:
    """Return the entry points as far as records have them. For groups other than commands, there are only the names."""
    if content["entry_point_groups"] is None:
        return None
    found: dict[str, dict[str, str]] = {group: {} for group in content["entry_point_groups"]}
    for group in ("console_scripts", "gui_scripts"):
        for line in content[group] or ():
            name, _, reference = line.partition(" = ")
            found.setdefault(group, {})[name] = reference
    return found


Gap = tuple[int, int, float | None]
"""A span without known events: its first serial, the first serial after it, and when its list was looked at."""


@dataclass(frozen=True, slots=True)
class ReplayedSpan:
    """The serials up to `through` that were replayed.

    Events are known above `events_since`, and answers are exact from `exact_from` on, except in the `gaps`.
    """

    index_url: str
    events_since: int
    exact_from: int
    through: int
    follows_all: bool
    gaps: tuple[Gap, ...] = ()


def finish_replay(connection: Connection, span: ReplayedSpan, now: float) -> None:
    """Make replayed records count, by adding complete and sealed ranges to the ledger.

    There is one range for all serials, and one more for each gap. This stands for a full crawl. It can be called again
    for a later span of the same catalog.
    """
    state = {
        "id": 1,
        "index_url": span.index_url,
        "identity": uuid.uuid4().hex,
        "events_since": span.events_since,
        "events_through": span.events_since,
        "exact_from": span.exact_from,
        "next_dump_sequence": 1,
        "follows_all": span.follows_all,
    }
    insert_missing(connection, catalog_state, [state])
    events_through = max(span.through, span.events_since)  # the index stream can begin after the end of a replay
    connection.execute(update(catalog_state).values(events_through=events_through, follows_all=span.follows_all))
    begun = complete_serial(connection)
    gaps = {start - 1: until for start, until, _ in span.gaps if begun <= start - 1 < span.through}
    looks = {start - 1: at for start, _, at in span.gaps if at is not None}
    edges = sorted({begun, *gaps, span.through})
    done = {"state": RangeState.COMPLETE, "sealed": True, "completed_at": now}
    for start, end in pairwise(edges):
        if 0 < start == begun and start not in gaps:
            c = serial_ranges.c
            connection.execute(update(serial_ranges).where(c.end == begun).values(end=end, completed_at=now))
            continue
        row: dict[str, Any] = {"start": start, "end": end, "requested_at": now, "exact_from": gaps.get(start)}
        if start in looks:
            row |= {"requested_at": looks[start], "lister": SIMPLE}
        connection.execute(insert(serial_ranges).values(**row, **done))
    if span.follows_all and not connection.scalar(select(exists(select(full_crawls.c.id)))):
        row = {"serial": edges[-1], "selection": "[]", "opened_at": now, "listed_at": now, "completed_at": now}
        connection.execute(insert(full_crawls).values(**row, with_history=span.exact_from == 0 == span.events_since))
    if not begun:
        _count_again(connection)


def _count_again(connection: Connection) -> None:
    counted = recount_files(connection)
    unexplained = select(func.count()).select_from(changes).where(changes.c.cause == UNEXPLAINED)
    counted[UNEXPLAINED_CHANGES] = connection.scalar(unexplained) or 0
    kept = read_counts(connection)
    add_counts(connection, {name: counted.get(name, 0) - kept.get(name, 0) for name in kept.keys() | counted.keys()})


def has_rows(connection: Connection) -> bool:
    """Check whether the catalog contains anything."""
    return any(
        connection.scalar(select(exists(select(one)))) for one in (catalog_state.c.id, projects.c.id, events.c.serial)
    )


def follows_some(connection: Connection) -> bool:
    """Check whether scopes decide which projects are followed, as far as records show."""
    return bool(connection.scalar(select(exists(select(followed_intervals.c.project_id)))))
