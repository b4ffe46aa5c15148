"""The content stream of the journal: the contents of files, and the changes of releases.

*File read* records depend only on the content of the file and the extractor's version, apart from the file's place.
Each release is compared with the previous one by PEP 440 that has a live file at that serial. These comparisons depend
on the files that the catalog knows.
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
"""The greatest number of new top-level names of a release that get a record each."""
_COMPARED = frozenset({*(action.value for action in Action), READ_LATE})
"""The causes of changes whose releases are compared. Files from before the first known event are not compared."""
_BEARING = frozenset({READ_LATE, REPLACED, FOLLOWED})


def content_records(connection: Connection, serials: SerialRange) -> Iterator[Record]:
    """Yield records of the files that became live, were read or were replaced, as logged in a sealed range."""
    yield from numbered(JournalStream.CONTENT, _records(connection, serials))


def _records(connection: Connection, serials: SerialRange) -> Iterator[Record]:
    """Yield, for each serial, first the contents of its files, then the changes of their releases."""
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
    """Return the changes that get the content of their file.

    If a file was read late, only the late read gets its content, which can be logged after this range.
    """
    live = intervals_of_files(connection, live_intervals, sorted({file.distribution_id for file in partition}))
    found = [file for file in partition if file.cause in _BEARING or is_begun(file, live.get(file.distribution_id, ()))]
    others = sorted({file.distribution_id for file in found if file.cause != READ_LATE})
    c = changes.c
    later: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    for ids in at_a_time(others):
        query = select(c.distribution_id, c.logged_serial, c.cause).where(
            c.distribution_id.in_(ids),
            c.cause.in_((READ_LATE, REPLACED)),
            c.logged_serial >= partition[0].logged_serial,
        )
        for id_, logged_serial, cause in connection.execute(query):
            # at the same serial, a late read comes before a replacement
            later[id_].append((logged_serial, cause == REPLACED))

    def is_read_late(file: LoggedFile) -> bool:
        """Check whether the file's content at this change became known by a late read."""
        own = file.logged_serial
        after = [
            (serial, is_replaced)
            for serial, is_replaced in later[file.distribution_id]
            if serial > own or (serial == own and not is_replaced)
        ]
        return bool(after) and not min(after)[1]

    return [file for file in found if file.cause == READ_LATE or not is_read_late(file)]


def _compared(compared: "_Comparison", files: Iterable[LoggedFile], times: Times) -> Iterator[Record]:
    """Yield the changes of the releases of `files`, which are logged at the same serial."""
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
    """Return the contents of files, by serial (0 if no file was ever replaced) and distribution id."""
    at: dict[int, set[int]] = defaultdict(set)
    for file in files:
        at[file.logged_serial if has_past else 0].add(file.distribution_id)
    return {
        (serial, id_): content
        for serial, ids in at.items()
        for id_, content in content_rows(connection, ids, serial if has_past else None).items()
    }


class _KnownFile(NamedTuple):
    """A file whose content is known, with the facts by which releases are compared. Equal contents have equal keys."""

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
    """The files of a project whose content is known, by version and by list of modules.

    `versions` are in order, and `positions` has the position of each.
    """

    by_version: dict[str, list[_KnownFile]] = field(default_factory=dict)
    by_list: dict[int, list[_KnownFile]] = field(default_factory=dict)
    versions: list[str] = field(default_factory=list)
    positions: dict[str, int] = field(default_factory=dict)

    def add(self, file: _KnownFile) -> None:
        self.by_version.setdefault(file.version, []).append(file)
        if file.modules_id is not None:
            self.by_list.setdefault(file.modules_id, []).append(file)

    def live(self, version: str | None, serial: int) -> list[_KnownFile]:
        """Return the files of a release that are live at `serial`."""
        return [file for file in self.by_version.get(version or "", ()) if file.is_live(serial)]

    def release_before(self, version: str, serial: int) -> str | None:
        """Return the greatest version below `version` that has a file live at `serial`; None if there is none."""
        position = self.positions.get(version)
        if position is None:
            position = bisect_left(self.versions, _key(version), key=_key)
        while position:
            position -= 1
            if any(file.is_live(serial) for file in self.by_version[self.versions[position]]):
                return self.versions[position]
        return None

    def has_list(self, list_id: int, without: Collection[int], serial: int) -> bool:
        """Check whether a live file other than these has that list of modules."""
        return any(file.id not in without and file.is_live(serial) for file in self.by_list[list_id])


class _Parts(NamedTuple):
    """The live files of a release at a serial, with and without its new files, and the release before with its live
    files.
    """

    of_release: list[_KnownFile]
    before: list[_KnownFile]
    base: str | None
    against: list[_KnownFile]
    adds_nothing: bool
    """Whether the new files have nothing new, or their content is unknown."""


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
    """A comparison of releases with the previous ones. The cost for a project depends on the number of its files."""

    connection: Connection
    projects: dict[int, _ReadProject] = field(default_factory=dict)
    _facts: dict[tuple[object, ...], dict[str, frozenset[str]]] = field(default_factory=dict)
    _roots: dict[int, frozenset[str]] = field(default_factory=dict)
    _kept_parts: dict[tuple[int, frozenset[int]], "_Parts"] = field(default_factory=dict)

    def load(self, new: Iterable[LoggedFile]) -> None:
        """Load the data to compare the releases of these files. Loading several files together is much cheaper."""
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
                case((data.details.contains(START_UP_CODE), data.details)),  # rare
            )
            .join(releases, releases.c.id == distributions.c.release_id)
            .join(distribution_data, data.distribution_id == distributions.c.id)
            .where(data.outcome == ReadOutcome.DATA)
            .order_by(distributions.c.filename)
        )
        for chunk in at_a_time(sorted(project_ids)):
            live = intervals_of_projects(self.connection, live_intervals, list(chunk))
            of_chunk = query.where(distributions.c.project_id.in_(chunk))
            for id_, project_id, version, modules_id, *key, details in bare_rows(self.connection, of_chunk):
                start_up = _start_up_code(from_json(details).get("notes")) if details else ()
                file = _KnownFile(id_, version, modules_id, (modules_id, *key, *start_up), live.get(id_, ()))
                self.projects.setdefault(project_id, _ReadProject()).add(file)
        for project in self.projects.values():
            project.versions = sorted(project.by_version, key=_key)
            project.positions = {version: position for position, version in enumerate(project.versions)}

    def changes(self, new: Sequence[LoggedFile], serial: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield kind and facts of each change by the `new` files of a release, compared with the previous release."""
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
        """Return the facts of all `files` together. Files with the same key are read once."""
        wanted = {file.key: file.id for file in files}
        self._load_facts(wanted)
        return {name: frozenset().union(*(self._facts[key][name] for key in wanted)) for name in COMPARED_FACTS}

    def _load_facts(self, wanted: Mapping[tuple[object, ...], int]) -> None:
        missing = {key: id_ for key, id_ in wanted.items() if key not in self._facts}
        if missing:
            rows = content_rows(self.connection, missing.values(), None)
            self._facts.update((key, _facts(rows[id_])) for key, id_ in missing.items())

    def _roots_of(self, list_ids: Iterable[int | None]) -> frozenset[str]:
        """Return the top-level names in these lists of modules."""
        lists = {list_id for list_id in list_ids if list_id is not None}
        self._load_roots(lists)
        return frozenset().union(*(self._roots[list_id] for list_id in lists))

    def _load_roots(self, lists: Collection[int]) -> None:
        missing = sorted(set(lists) - self._roots.keys())
        found: dict[int, set[str]] = {list_id: set() for list_id in missing}
        if missing:
            c = module_roots.c
            sent = sent_values(self.connection, c.list_id, missing)
            query = select(c.list_id, c.name).select_from(sent).join(module_roots, c.list_id == sent.c.value)
            for list_id, name in bare_rows(self.connection, query):
                found[list_id].add(name)
        self._roots.update((list_id, frozenset(names)) for list_id, names in found.items())

    def _has_others(self, root: str, project_id: int, serial: int) -> bool:
        """Check whether another project has a file live at `serial` with a module under this top-level name."""
        parameters = {"root": root, "project": project_id, "serial": serial}
        return self.connection.scalar(self._others, parameters) is not None

    @cached_property
    def _others(self) -> Select[int]:
        """The query of `_has_others`. It is cached, since building it takes several times as long as running it."""
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
"""The facts that a release can gain or lose. `start_up` is the code that Python runs at each start."""


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
    """Return the code that Python runs at each start, as notes name it: `demo.pth`, or `demo.start: demo:main`."""
    return [note.removeprefix(START_UP_CODE).strip() for note in notes or () if note.startswith(START_UP_CODE)]


def _names(column: Any) -> list[str]:
    """Return a list from a dump's row, which can be encoded JSON."""
    names: list[str] = orjson.loads(orjson.dumps(column)) if isinstance(column, orjson.Fragment) else (column or [])
    return names


@lru_cache(65_536)
def _key(version: str) -> tuple[bool, Any, str]:
    """Return a sort key by PEP 440. Invalid versions come first."""
    try:
        return True, Version(version), version
    except InvalidVersion:
        return False, 0, version
