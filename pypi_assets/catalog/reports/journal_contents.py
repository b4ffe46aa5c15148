"""The content stream of the journal: what was read of each file, and what follows from it.

*File read* records follow from the bytes of the file and the extractor's version alone, apart from the file's place. A
release is compared with the one before it, by PEP 440, of those with a live file at that serial; what else is compared
is known of the catalog alone.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import orjson
from packaging.version import InvalidVersion, Version
from sqlalchemy import BindParameter, Connection, Select, bindparam, case, exists, select

from pypi_assets.catalog.database import at_a_time, bare_rows, sent_values
from pypi_assets.catalog.derived.file_updates import REPLACED
from pypi_assets.catalog.derived.project_state import Interval
from pypi_assets.catalog.derived.stored_files import intervals_of_files, intervals_of_projects
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.followed import FOLLOWED, answered_at
from pypi_assets.catalog.publications.dump_rows import content_rows, holds_at
from pypi_assets.catalog.reads.past_generations import has_past_generations
from pypi_assets.catalog.reads.read_outcomes import READ_LATE, ReadOutcome
from pypi_assets.catalog.reads.stored_json import from_json
from pypi_assets.catalog.reports.journal_format import JournalStream, Record, numbered
from pypi_assets.catalog.reports.journal_records import LoggedFile, Times, file_record, is_begun, logged_files
from pypi_assets.catalog.tables import (
    changes,
    distribution_data,
    distributions,
    live_intervals,
    module_roots,
    releases,
)
from pypi_assets.distributions.record import START_UP_CODE
from pypi_assets.index.actions import Action

FILE_READ = "file read"
NOT_READ = "file not read"
RELEASE_COMPARED = "release compared"
NEW_PROVIDER = "new provider"
MOST_ROOTS = 50
"""New top-level names of a release that get a record each."""
_COMPARED = frozenset({*(action.value for action in Action), READ_LATE})
"""Causes of changes whose releases are compared: what has been there since before the first known event is not."""
_BEARING = frozenset({READ_LATE, REPLACED, FOLLOWED})


def content_records(connection: Connection, serials: SerialRange) -> Iterator[Record]:
    """What was read of the files that became live, or were read or replaced, as it is logged in a sealed range."""
    yield from numbered(JournalStream.CONTENT, _records(connection, serials))


def _records(connection: Connection, serials: SerialRange) -> Iterator[Record]:
    """At each serial first what was read of its files, then what follows from that for their releases."""
    has_past = has_past_generations(connection)
    waiting: list[LoggedFile] = []  # files of the last serial so far whose releases are compared: more can follow
    seen: set[int] = set()  # the files of that serial that have a record
    last = 0
    for partition in logged_files(connection, serials):
        bearing = _bearing(connection, partition)
        times = Times.of(connection, {file.serial for file in (*waiting, *bearing)})
        compared = _Comparison(connection)
        compared.load([file for file in (*waiting, *bearing) if file.cause in _COMPARED])
        contents = _contents(connection, bearing, has_past=has_past)
        for file in bearing:
            if file.logged_serial != last:
                yield from _compared(compared, waiting, times)
                waiting, seen, last = [], set(), file.logged_serial
            if file.distribution_id in seen:
                continue
            seen.add(file.distribution_id)
            content = contents.get((file.logged_serial if has_past else 0, file.distribution_id))
            if content is not None:
                kind = FILE_READ if content["outcome"] == ReadOutcome.DATA else NOT_READ
                record = file_record(file, kind, times.seconds[file.serial])
                record["cause"] = file.cause
                record.update(content)
                yield record
            if file.cause in _COMPARED:
                waiting.append(file)
    compared = _Comparison(connection)
    compared.load(waiting)
    yield from _compared(compared, waiting, Times.of(connection, {file.serial for file in waiting}))


def _bearing(connection: Connection, partition: Sequence[LoggedFile]) -> list[LoggedFile]:
    """The changes that come with what was read of their file: where it was read late, only that change, which can be
    logged after this range."""
    live = intervals_of_files(connection, live_intervals, sorted({file.distribution_id for file in partition}))
    found = [file for file in partition if file.cause in _BEARING or is_begun(file, live.get(file.distribution_id, ()))]
    others = sorted({file.distribution_id for file in found if file.cause != READ_LATE})
    of = changes.c
    later: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    for ids in at_a_time(others):
        query = select(of.distribution_id, of.logged_serial, of.cause).where(
            of.distribution_id.in_(ids),
            of.cause.in_((READ_LATE, REPLACED)),
            of.logged_serial >= partition[0].logged_serial,
        )
        for id_, logged_serial, cause in connection.execute(query):
            later[id_].append((logged_serial, cause == REPLACED))  # of one serial, what was read late comes first

    def is_read_late(file: LoggedFile) -> bool:
        """Whether what is known of the file's content then came by a late read."""
        own = file.logged_serial
        after = [
            (serial, is_replaced)
            for serial, is_replaced in later[file.distribution_id]
            if serial > own or (serial == own and not is_replaced)
        ]
        return bool(after) and not min(after)[1]

    return [file for file in found if file.cause == READ_LATE or not is_read_late(file)]


def _compared(compared: "_Comparison", files: Iterable[LoggedFile], times: Times) -> Iterator[Record]:
    """What follows for the releases of `files`, which are logged at one serial."""
    of_releases = defaultdict(list)
    for file in files:
        of_releases[file.normalized, file.version].append(file)
    for _, some in sorted(of_releases.items()):
        for kind, facts in compared.changes(some, some[0].logged_serial):
            record = file_record(some[0], kind, times.seconds[some[0].serial])
            del record["filename"]
            yield record | facts


def _contents(
    connection: Connection, files: Iterable[LoggedFile], *, has_past: bool
) -> dict[tuple[int, int], dict[str, object]]:
    """What was read, by the serial (0 where no file was ever replaced) and the id of the distribution."""
    at: dict[int, set[int]] = defaultdict(set)
    for file in files:
        at[file.logged_serial if has_past else 0].add(file.distribution_id)
    return {
        (serial, id_): content
        for serial, ids in at.items()
        for id_, content in content_rows(connection, ids, serial if has_past else None).items()
    }


class _KnownFile(NamedTuple):
    """A file whose content is known, as far as releases are compared by it. `key` is equal where that is equal."""

    id: int
    version: str
    modules_id: int | None
    key: tuple[object, ...]
    live: tuple[Interval, ...]

    def is_live(self, serial: int) -> bool:
        for one in self.live:  # noqa: SIM110 -- a generator takes three times as long, and this is called most
            if one.start <= serial and (one.end is None or serial < one.end):
                return True
        return False


@dataclass
class _ReadProject:
    """The files of a project whose content is known, by version and by their list of modules; and the versions in
    order, each with its position."""

    by_version: dict[str, list[_KnownFile]] = field(default_factory=dict)
    by_list: dict[int, list[_KnownFile]] = field(default_factory=dict)
    versions: list[str] = field(default_factory=list)
    positions: dict[str, int] = field(default_factory=dict)

    def add(self, file: _KnownFile) -> None:
        self.by_version.setdefault(file.version, []).append(file)
        if file.modules_id is not None:
            self.by_list.setdefault(file.modules_id, []).append(file)

    def live(self, version: str | None, serial: int) -> list[_KnownFile]:
        """The files of a release that are live at `serial`."""
        return [file for file in self.by_version.get(version or "", ()) if file.is_live(serial)]

    def release_before(self, version: str, serial: int) -> str | None:
        """The greatest version below `version` that has a file which is live at `serial`."""
        position = self.positions.get(version)
        if position is None:
            position = bisect_left(self.versions, _key(version), key=_key)
        while position:
            position -= 1
            if any(file.is_live(serial) for file in self.by_version[self.versions[position]]):
                return self.versions[position]
        return None

    def has_list(self, list_id: int, without: Collection[int], serial: int) -> bool:
        """Whether a live file other than these has that list of modules."""
        return any(file.id not in without and file.is_live(serial) for file in self.by_list[list_id])


class _Parts(NamedTuple):
    """Of a release what is live at a serial, and that without its new files; the release before it, and what is live of
    that."""

    of_release: list[_KnownFile]
    before: list[_KnownFile]
    base: str | None
    against: list[_KnownFile]
    adds_nothing: bool
    """Whether the new files have nothing new, or nothing is known of them."""


def _parts(project: _ReadProject | None, version: str, new: Collection[int], serial: int) -> _Parts:
    if project is None:
        return _Parts([], [], None, [], adds_nothing=True)
    of_release = project.live(version, serial)
    before = [file for file in of_release if file.id not in new]
    if _keys(of_release) == _keys(before):
        return _Parts(of_release, before, None, [], adds_nothing=True)
    base = project.release_before(version, serial)
    against = project.live(base, serial) if base is not None else []
    return _Parts(of_release, before, base, against, adds_nothing=False)


def _keys(files: Iterable[_KnownFile]) -> set[tuple[object, ...]]:
    return {file.key for file in files}


@dataclass
class _Comparison:
    """Compares releases with those before them. What it reads of a project costs by its files."""

    connection: Connection
    projects: dict[int, _ReadProject] = field(default_factory=dict)
    _facts: dict[tuple[object, ...], dict[str, frozenset[str]]] = field(default_factory=dict)
    _roots: dict[int, frozenset[str]] = field(default_factory=dict)
    _kept_parts: dict[tuple[int, frozenset[int]], "_Parts"] = field(default_factory=dict)

    def load(self, new: Iterable[LoggedFile]) -> None:
        """Reads what comparing the releases of these files takes: some at a time cost far less than each by itself."""
        groups: dict[tuple[int, int, str], list[LoggedFile]] = {}
        for file in new:
            groups.setdefault((file.logged_serial, file.project_id, file.version), []).append(file)
        self._load_files({project_id for _, project_id, _ in groups})
        facts: dict[tuple[object, ...], int] = {}
        lists: set[int] = set()
        for (serial, project_id, _), files in groups.items():
            parts = self._parts(files, serial)
            if parts.adds_nothing:
                continue
            lists |= self.projects[project_id].by_list.keys()
            for some in (parts.of_release, parts.before):
                if some and parts.base is not None and _keys(some) != _keys(parts.against):
                    facts |= {file.key: file.id for file in (*some, *parts.against)}
        self._load_facts(facts)
        self._load_roots(lists)

    def _load_files(self, project_ids: Collection[int]) -> None:
        data = distribution_data.c
        query = (
            select(
                distributions.c.id,
                distributions.c.project_id,
                releases.c.version,
                data.modules_id,
                data.requires_dist_id,
                data.shared_details_id,
                data.requires_python,
                case((data.details.contains(START_UP_CODE), data.details)),  # few have any
            )
            .join(releases, releases.c.id == distributions.c.release_id)
            .join(distribution_data, data.distribution_id == distributions.c.id)
            .where(data.outcome == ReadOutcome.DATA)
            .order_by(distributions.c.filename)
        )
        for some in at_a_time(sorted(project_ids)):
            live = intervals_of_projects(self.connection, live_intervals, list(some))
            of_some = query.where(distributions.c.project_id.in_(some))
            for id_, project_id, version, modules_id, *key, details in bare_rows(self.connection, of_some):
                start_up = _start_up_code(from_json(details).get("notes")) if details else ()
                file = _KnownFile(id_, version, modules_id, (modules_id, *key, *start_up), live.get(id_, ()))
                self.projects.setdefault(project_id, _ReadProject()).add(file)
        for project in self.projects.values():
            project.versions = sorted(project.by_version, key=_key)
            project.positions = {version: position for position, version in enumerate(project.versions)}

    def changes(self, new: Sequence[LoggedFile], serial: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """What the files `new` of a release change, compared with the release before it: kinds and facts."""
        project_id = new[0].project_id
        parts = self._parts(new, serial)
        if parts.adds_nothing:
            return
        if parts.base is not None:
            difference = self._difference(parts.of_release, parts.against)
            was_there = bool(parts.before) and difference == self._difference(parts.before, parts.against)
            if any(difference) and not was_there:
                yield RELEASE_COMPARED, {"against": parts.base, "gained": difference[0], "lost": difference[1]}
        ids = {file.distribution_id for file in new}
        roots = self._roots_of({file.modules_id for file in parts.of_release})
        project = self.projects[project_id]
        for list_id in project.by_list if roots else ():
            of_list = self._roots_of([list_id])
            if not roots.isdisjoint(of_list) and project.has_list(list_id, ids, serial):
                roots -= of_list
            if not roots:
                break
        for root in sorted(roots)[:MOST_ROOTS]:
            yield NEW_PROVIDER, {"module": root, "is_first": not self._has_others(root, project_id, serial)}

    def _parts(self, new: Sequence[LoggedFile], serial: int) -> "_Parts":
        ids = frozenset(file.distribution_id for file in new)
        key = serial, ids
        if key not in self._kept_parts:
            self._kept_parts[key] = _parts(self.projects.get(new[0].project_id), new[0].version, ids, serial)
        return self._kept_parts[key]

    def _difference(
        self, files: Sequence[_KnownFile], against: Sequence[_KnownFile]
    ) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        if _keys(files) == _keys(against):
            return {}, {}
        new, old = self._facts_of(files), self._facts_of(against)
        gained = {name: sorted(new[name] - old[name]) for name in new if new[name] - old[name]}
        lost = {name: sorted(old[name] - new[name]) for name in new if old[name] - new[name]}
        return gained, lost

    def _facts_of(self, files: Iterable[_KnownFile]) -> dict[str, frozenset[str]]:
        """Those of all `files` together; files with an equal key are read once."""
        wanted = {file.key: file.id for file in files}
        self._load_facts(wanted)
        return {name: frozenset().union(*(self._facts[key][name] for key in wanted)) for name in COMPARED_FACTS}

    def _load_facts(self, wanted: Mapping[tuple[object, ...], int]) -> None:
        missing = {key: id_ for key, id_ in wanted.items() if key not in self._facts}
        if missing:
            rows = content_rows(self.connection, missing.values(), None)
            self._facts.update((key, _facts(rows[id_])) for key, id_ in missing.items())

    def _roots_of(self, list_ids: Iterable[int | None]) -> frozenset[str]:
        """The top-level names in these lists of modules."""
        lists = {list_id for list_id in list_ids if list_id is not None}
        self._load_roots(lists)
        return frozenset().union(*(self._roots[list_id] for list_id in lists))

    def _load_roots(self, lists: Collection[int]) -> None:
        missing = sorted(set(lists) - self._roots.keys())
        found: dict[int, set[str]] = {list_id: set() for list_id in missing}
        if missing:
            of = module_roots.c
            sent = sent_values(self.connection, of.list_id, missing)
            query = select(of.list_id, of.name).select_from(sent).join(module_roots, of.list_id == sent.c.value)
            for list_id, name in bare_rows(self.connection, query):
                found[list_id].add(name)
        self._roots.update((list_id, frozenset(names)) for list_id, names in found.items())

    def _has_others(self, root: str, project_id: int, serial: int) -> bool:
        """Whether a file of another project that is live at `serial` has a module of that top-level name."""
        of = {"root": root, "project": project_id, "serial": serial}
        return self.connection.scalar(self._others, of) is not None

    @cached_property
    def _others(self) -> Select[int]:
        """The statement of that. It is made once: to make it takes several times as long as to run it."""
        live = live_intervals.c
        serial: BindParameter[int] = bindparam("serial")
        return (
            select(distributions.c.id)
            .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
            .join(module_roots, module_roots.c.list_id == distribution_data.c.modules_id)
            .where(
                module_roots.c.name == bindparam("root"),
                distributions.c.project_id != bindparam("project"),
                exists().where(live.distribution_id == distributions.c.id, holds_at(live.start, live.end, serial)),
                answered_at(self.connection, distributions.c.project_id, serial),
            )
            .limit(1)
        )


COMPARED_FACTS = ("modules", "requirements", "commands", "license", "requires_python", "start_up")
"""What a release can have gained or lost; `start_up` is the code that Python runs at each start."""


def _facts(row: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    scripts = [*(row["console_scripts"] or ()), *(row["gui_scripts"] or ())]
    return {
        "modules": frozenset(_names(row["modules"])),
        "requirements": frozenset(_names(row["requires_dist"])),
        "commands": frozenset(line.partition(" = ")[0] for line in scripts),
        "license": frozenset(filter(None, [row["license_expression"] or row["license"]])),
        "requires_python": frozenset(filter(None, [row["requires_python"]])),
        "start_up": frozenset(_start_up_code(row["notes"])),
    }


def _start_up_code(notes: Iterable[str] | None) -> list[str]:
    """Return what notes name as code that Python runs at each start: `demo.pth`, or `demo.start: demo:main`."""
    return [note.removeprefix(START_UP_CODE).strip() for note in notes or () if note.startswith(START_UP_CODE)]


def _names(column: Any) -> list[str]:
    """A list of a dump's row, which can be JSON already."""
    names: list[str] = orjson.loads(orjson.dumps(column)) if isinstance(column, orjson.Fragment) else (column or [])
    return names


@lru_cache(65_536)
def _key(version: str) -> tuple[bool, Any, str]:
    """By PEP 440; what is none of its versions comes first."""
    try:
        return True, Version(version), version
    except InvalidVersion:
        return False, 0, version
