"""Compare releases with the previous ones: what they gain and lose, and which top-level names they are first to have.

Each release is compared with the previous one by PEP 440 that has a live file at that serial.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from packaging.version import InvalidVersion, Version
from sqlalchemy import Connection, Exists, case, select

from pypi_assets.catalog.database import at_a_time, bare_rows, sent_columns, sent_values
from pypi_assets.catalog.observed.followed import answered_at
from pypi_assets.catalog.publications.dump_rows import Contents, dumped_files, holds_at
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reads.stored_json import from_json
from pypi_assets.catalog.reports.logged_changes import LoggedFile, Span
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    live_intervals,
    module_roots,
    releases,
)
from pypi_assets.distributions.record import START_UP_CODE

RELEASE_COMPARED = "release compared"
NEW_PROVIDER = "new provider"
MOST_ROOTS = 50
"""The greatest number of new top-level names of a release that get a record each."""
COMPARED_FACTS = ("modules", "requirements", "commands", "license", "requires_python", "start_up")
"""The facts that a release can gain or lose. `start_up` is the code that Python runs at each start."""
_Facts = dict[str, frozenset[str]]
Change = tuple[str, dict[str, Any]]
"""The kind of a record, and its facts."""
_Key = tuple[object, ...]
"""The facts by which the contents of files are compared. Equal contents have equal keys."""


class _KnownFile(NamedTuple):
    """A file whose content is known. `key` is the number of the facts by which releases are compared."""

    id: int
    modules_id: int | None
    key: int
    live: Sequence[Span]

    def is_live(self, serial: int) -> bool:
        for start, end in self.live:  # noqa: SIM110 -- a generator takes three times as long, and this is called most
            if start <= serial and (end is None or serial < end):
                return True
        return False


@dataclass
class _ReadProject:
    """The files of a project whose content is known, by version and by list of modules. `versions` are in order."""

    by_version: dict[str, list[_KnownFile]] = field(default_factory=dict)
    by_list: dict[int, list[_KnownFile]] = field(default_factory=dict)
    versions: list[str] = field(default_factory=list)
    _positions: dict[str, int] = field(default_factory=dict)

    def add(self, version: str, file: _KnownFile) -> None:
        self.by_version.setdefault(version, []).append(file)
        if file.modules_id is not None:
            self.by_list.setdefault(file.modules_id, []).append(file)

    def sort(self) -> None:
        """Sort the versions, after the last file was added."""
        self.versions = sorted(self.by_version, key=_version_key)
        self._positions = {version: position for position, version in enumerate(self.versions)}

    def live(self, version: str, serial: int) -> list[_KnownFile]:
        """Return the files of a release that are live at `serial`."""
        return [file for file in self.by_version.get(version, ()) if file.is_live(serial)]

    def before(self, version: str, serial: int) -> tuple[str, list[_KnownFile]] | None:
        """Return the greatest version below `version` that has files live at `serial`, with these; None without one."""
        position = self._positions.get(version)
        if position is None:
            position = bisect_left(self.versions, _version_key(version), key=_version_key)
        while position:
            position -= 1
            if files := self.live(self.versions[position], serial):
                return self.versions[position], files
        return None

    def has_list(self, list_id: int, without: Collection[int], serial: int) -> bool:
        """Check whether a live file other than these has that list of modules."""
        return any(file.id not in without and file.is_live(serial) for file in self.by_list[list_id])


@dataclass(slots=True)
class _Release:
    """A release with new files at a serial that differs from before.

    `files` are its live files, `before` its live files without the new ones, and `against` the live files of the
    previous release, whose version is `base`.
    """

    project_id: int
    serial: int
    new: frozenset[int]
    files: list[_KnownFile]
    before: list[_KnownFile]
    base: str | None
    against: list[_KnownFile]


Group = tuple[int, int, str]
"""The files of a release that are logged at the same serial: the serial, the project and the version."""


class ReleaseComparisons:
    """Compares releases in batches. The cost for a project depends on the number of its files."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._projects: dict[int, _ReadProject] = {}
        self._keys: dict[_Key, int] = {}
        self._contents = Contents(connection)

    def changes(self, files: Iterable[LoggedFile]) -> dict[Group, list[Change]]:
        """Return the changes of the releases of these new files, as kind and facts. Unchanged releases are omitted."""
        groups: dict[Group, list[int]] = {}
        for file in files:
            groups.setdefault((file.logged_serial, file.project_id, file.version), []).append(file.distribution_id)
        self._load_projects({project_id for _, project_id, _ in groups})
        changed = {group: release for group, ids in groups.items() if (release := self._release(group, ids))}
        facts = self._load_facts(changed.values())
        found: dict[Group, list[Change]] = {}
        for group, release in changed.items():
            if (change := _comparison(release, facts)) is not None:
                found[group] = [change]
        for group, provided in self._new_providers(changed):
            found.setdefault(group, []).append((NEW_PROVIDER, provided))
        return found

    def _load_projects(self, project_ids: Collection[int]) -> None:
        """Load the files of these projects, apart from those that the last batch has loaded."""
        self._projects = {id_: self._projects[id_] for id_ in project_ids if id_ in self._projects}
        data = distribution_data.c
        columns = (data.modules_id, data.requires_dist_id, data.shared_details_id, data.requires_python)
        start_up = case((data.details.contains(START_UP_CODE), data.details))  # rare
        query = (
            select(distributions.c.id, distributions.c.project_id, releases.c.version, *columns, start_up)
            .join(releases, releases.c.id == distributions.c.release_id)
            .join(distribution_data, data.distribution_id == distributions.c.id)
            .where(data.outcome == ReadOutcome.DATA)
            .order_by(distributions.c.filename)
        )
        for chunk in at_a_time(sorted(set(project_ids) - self._projects.keys())):
            live = self._live(chunk)
            of_chunk = {project_id: _ReadProject() for project_id in chunk}
            rows = bare_rows(self._connection, query.where(distributions.c.project_id.in_(chunk)))
            for id_, project_id, version, modules_id, requires_id, shared_id, requires_python, details in rows:
                key: _Key = (modules_id, requires_id, shared_id, requires_python)
                if details:
                    key = (*key, *_start_up_code(from_json(details).get("notes")))
                number = self._keys.setdefault(key, len(self._keys))
                of_chunk[project_id].add(version, _KnownFile(id_, modules_id, number, live.get(id_, ())))
            for project in of_chunk.values():
                project.sort()
            self._projects |= of_chunk

    def _live(self, project_ids: Sequence[int]) -> dict[int, list[Span]]:
        """Return when the files of these projects were live, by distribution."""
        c = live_intervals.c
        query = (
            select(c.distribution_id, c.start, c.end)
            .join(distributions, distributions.c.id == c.distribution_id)
            .where(distributions.c.project_id.in_(project_ids))
            .order_by(c.distribution_id, c.start)
        )
        found: dict[int, list[Span]] = {}
        for distribution_id, start, end in bare_rows(self._connection, query):
            found.setdefault(distribution_id, []).append((start, end))
        return found

    def _release(self, group: Group, ids: Collection[int]) -> _Release | None:
        """Return the release, or None if its new files have nothing new, or their content is unknown."""
        serial, project_id, version = group
        project, new = self._projects[project_id], frozenset(ids)
        files = project.live(version, serial)
        before = [file for file in files if file.id not in new]
        if len(before) == len(files) or _keys(files) == _keys(before):
            return None
        previous = project.before(version, serial)
        base, against = previous if previous is not None else (None, [])
        return _Release(project_id, serial, new, files, before, base, against)

    def _load_facts(self, changed: Iterable[_Release]) -> dict[int, _Facts]:
        """Return the facts of all files that differ from a previous release, by the number of their key."""
        wanted: dict[int, int] = {}
        for release in changed:
            if release.base is None:
                continue
            against = _keys(release.against)
            for files in (release.files, release.before):
                if files and _keys(files) != against:
                    wanted |= {file.key: file.id for file in (*files, *release.against)}
        if not wanted:
            return {}
        stored = dumped_files(self._connection, sorted(wanted.values()))
        self._contents.loaded(list(stored.values()))
        ids = {list_id for file in stored.values() for list_id in (file.requires_dist_id, file.modules_id)}
        lists = self._contents.lists.load_json(ids)
        names = {list_id: frozenset(from_json(found)) for list_id, found in lists.items()}
        found: dict[int, _Facts] = {}
        for key, id_ in wanted.items():
            file = stored[id_]
            found[key] = {
                "modules": _NONE if file.modules_id is None else names[file.modules_id],
                "requirements": _NONE if file.requires_dist_id is None else names[file.requires_dist_id],
                **_other_facts(self._contents.of(file)),
            }
        return found

    def _new_providers(self, changed: Mapping[Group, _Release]) -> Iterator[tuple[Group, dict[str, Any]]]:
        """Yield the top-level names that no other live file of the project has, for each release in order of names."""
        lists = {list_id for release in changed.values() for list_id in self._projects[release.project_id].by_list}
        roots = self._load_roots(lists)
        wanted = [
            (group, root)
            for group, release in changed.items()
            for root in sorted(self._new_roots(release, roots))[:MOST_ROOTS]
        ]
        provided = self._provided_elsewhere({(root, group[1], group[0]) for group, root in wanted})
        for group, root in wanted:
            yield group, {"module": root, "is_first": (root, group[1], group[0]) not in provided}

    def _new_roots(self, release: _Release, roots: Mapping[int, frozenset[str]]) -> frozenset[str]:
        """Return the top-level names of a release that no other live file of the project has."""
        project = self._projects[release.project_id]
        lists = {file.modules_id for file in release.files if file.modules_id is not None}
        new = frozenset().union(*(roots[list_id] for list_id in lists))
        for list_id in project.by_list if new else ():
            of_list = roots[list_id]
            if not new.isdisjoint(of_list) and project.has_list(list_id, release.new, release.serial):
                new -= of_list
            if not new:
                break
        return new

    def _load_roots(self, lists: Collection[int]) -> dict[int, frozenset[str]]:
        """Return the top-level names in these lists of modules."""
        found: dict[int, set[str]] = {list_id: set() for list_id in lists}
        if lists:
            c = module_roots.c
            sent = sent_values(self._connection, c.list_id, sorted(lists))
            query = select(c.list_id, c.name).select_from(sent).join(module_roots, c.list_id == sent.c.value)
            for list_id, name in bare_rows(self._connection, query):
                found[list_id].add(name)
        return {list_id: frozenset(names) for list_id, names in found.items()}

    def _provided_elsewhere(self, wanted: Collection[tuple[str, int, int]]) -> set[tuple[str, int, int]]:
        """Return the subset of these top-level names that another project's live file has.

        They are given as (name, project, serial).
        """
        if not wanted:
            return set()
        live, columns = live_intervals.c, (module_roots.c.name, distributions.c.project_id, live_intervals.c.start)
        sent, (root, project_id, serial) = sent_columns(self._connection, columns, sorted(wanted))
        is_answered = answered_at(self._connection, distributions.c.project_id, serial)
        if isinstance(is_answered, Exists):
            is_answered = is_answered.correlate(distributions, sent)
        # in a subquery with a limit, so that each name is looked up by index until the first file is found
        other = (
            select(distributions.c.id)
            .select_from(module_roots)
            .join(distribution_data, distribution_data.c.modules_id == module_roots.c.list_id)
            .join(distributions, distributions.c.id == distribution_data.c.distribution_id)
            .join(live_intervals, live.distribution_id == distributions.c.id)
            .where(
                module_roots.c.name == root,
                distributions.c.project_id != project_id,
                holds_at(live.start, live.end, serial),
                is_answered,
            )
            .limit(1)
            .correlate(sent)
            .scalar_subquery()
        )
        query = select(root, project_id, serial).select_from(sent).where(other.is_not(None))
        return {(name, id_, at) for name, id_, at in bare_rows(self._connection, query)}


def _comparison(release: _Release, facts: Mapping[int, _Facts]) -> Change | None:
    """Return what a release gained and lost, unless its files before the new ones had the same difference."""
    if release.base is None:
        return None
    difference = _difference(release.files, release.against, facts)
    if not any(difference) or (release.before and difference == _difference(release.before, release.against, facts)):
        return None
    return RELEASE_COMPARED, {"against": release.base, "gained": difference[0], "lost": difference[1]}


def _difference(
    files: Sequence[_KnownFile], against: Sequence[_KnownFile], facts: Mapping[int, _Facts]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return what `files` have that `against` lacks, and the reverse, in order of names."""
    keys, others = _keys(files), _keys(against)
    if keys == others:
        return {}, {}
    new, old = _joined_facts(keys, facts), _joined_facts(others, facts)
    different = [name for name in COMPARED_FACTS if new[name] is not old[name] and new[name] != old[name]]
    gained = {name: sorted(names) for name in different if (names := new[name] - old[name])}
    lost = {name: sorted(names) for name in different if (names := old[name] - new[name])}
    return gained, lost


def _joined_facts(keys: Collection[int], facts: Mapping[int, _Facts]) -> _Facts:
    if len(keys) == 1:
        [key] = keys
        return facts[key]
    return {name: frozenset().union(*(facts[key][name] for key in keys)) for name in COMPARED_FACTS}


def _keys(files: Iterable[_KnownFile]) -> set[int]:
    return {file.key for file in files}


_NONE: frozenset[str] = frozenset()


def _other_facts(row: Mapping[str, Any]) -> _Facts:
    """Return the facts that are not stored as lists."""
    scripts = [*(row["console_scripts"] or ()), *(row["gui_scripts"] or ())]
    return {
        "commands": frozenset(line.partition(" = ")[0] for line in scripts),
        "license": frozenset(filter(None, [row["license_expression"] or row["license"]])),
        "requires_python": frozenset(filter(None, [row["requires_python"]])),
        "start_up": frozenset(_start_up_code(row["notes"])),
    }


def _start_up_code(notes: Iterable[str] | None) -> list[str]:
    """Return the code that Python runs at each start, as notes name it: `demo.pth`, or `demo.start: demo:main`."""
    return [note.removeprefix(START_UP_CODE).strip() for note in notes or () if note.startswith(START_UP_CODE)]


@lru_cache(65_536)
def _version_key(version: str) -> tuple[bool, Any, str]:
    """Return a sort key by PEP 440. Invalid versions come first."""
    try:
        return True, Version(version), version
    except InvalidVersion:
        return False, 0, version
