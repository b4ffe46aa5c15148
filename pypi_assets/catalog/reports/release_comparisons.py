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
from pypi_assets.catalog.publications.dump_rows import Contents, holds_at, release_columns
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
_Facts = tuple[int | frozenset[str] | None, ...]
"""The facts of a file in the order of COMPARED_FACTS. Modules and requirements are given by the id of their list."""
Change = tuple[str, dict[str, Any]]
"""The kind of a record, and its facts."""
_Key = tuple[Any, ...]
"""The facts by which the contents of files are compared. Equal contents have equal keys.

A key has the ids of the lists of modules and requirements, the id of the shared details, the required Python, and the
code that runs at each start.
"""

_MODULES, _REQUIREMENTS, _SHARED = 0, 1, 2
"""Positions in a key."""
_NONE: frozenset[str] = frozenset()


class _KnownFile(NamedTuple):
    """A file whose content is known. Files with equal keys have the same `number`."""

    id: int
    modules_id: int | None
    number: int
    key: _Key
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


class _ComparedFacts:
    """The facts of files by the number of their key. Lists are decoded when they are first compared."""

    def __init__(self, facts: Mapping[int, _Facts], lists: Mapping[int, bytes]) -> None:
        self._facts, self._lists = facts, lists
        self._names: dict[int, frozenset[str]] = {}

    def difference(
        self, files: Sequence[_KnownFile], against: Sequence[_KnownFile]
    ) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """Return what `files` have that `against` lacks, and the reverse, in order of names."""
        keys, others = _keys(files), _keys(against)
        gained: dict[str, list[str]] = {}
        lost: dict[str, list[str]] = {}
        if keys == others:
            return gained, lost
        new, old = (zip(*(self._facts[number] for number in numbers), strict=True) for numbers in (keys, others))
        for name, of_new, of_old in zip(COMPARED_FACTS, new, old, strict=True):
            if of_new == of_old or set(of_new) == set(of_old):
                continue
            new_names, old_names = self._joined(of_new), self._joined(of_old)
            if more := new_names - old_names:
                gained[name] = sorted(more)
            if less := old_names - new_names:
                lost[name] = sorted(less)
        return gained, lost

    def _joined(self, facts: Iterable[int | frozenset[str] | None]) -> frozenset[str]:
        """Return the names in several facts of the same kind."""
        names = [self._decoded(fact) for fact in dict.fromkeys(facts)]
        return names[0] if len(names) == 1 else frozenset().union(*names)

    def _decoded(self, fact: int | frozenset[str] | None) -> frozenset[str]:
        if fact is None:
            return _NONE
        if isinstance(fact, frozenset):
            return fact
        if fact not in self._names:
            self._names[fact] = frozenset(from_json(self._lists[fact]))
        return self._names[fact]


Group = tuple[int, int, str]
"""The files of a release that are logged at the same serial: the serial, the project and the version."""


class ReleaseComparisons:
    """Compares releases in batches. The cost for a project depends on the number of its files.

    `contents` caches lists and details that other records of the same files need too.
    """

    def __init__(self, connection: Connection, contents: Contents) -> None:
        self._connection, self._contents = connection, contents
        self._projects: dict[int, _ReadProject] = {}
        self._numbers: dict[_Key, int] = {}

    def changes(self, files: Iterable[LoggedFile]) -> dict[Group, list[Change]]:
        """Return the changes of the releases of these new files, as kind and facts. Unchanged releases are omitted."""
        groups: dict[Group, list[int]] = {}
        for file in files:
            group = file.logged_serial, file.project_id, file.version
            if group in groups:
                groups[group].append(file.distribution_id)
            else:
                groups[group] = [file.distribution_id]
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
        data, live = distribution_data.c, live_intervals
        columns = (data.modules_id, data.requires_dist_id, data.shared_details_id, data.requires_python)
        start_up = case((data.details.contains(START_UP_CODE), data.details))  # rare
        query = (
            select(distributions.c.id, distributions.c.project_id, releases.c.version, *columns, start_up)
            .add_columns(live.c.start, live.c.end)
            .join(releases, releases.c.id == distributions.c.release_id)
            .join(distribution_data, data.distribution_id == distributions.c.id)
            .outerjoin(live, live.c.distribution_id == distributions.c.id)
            .where(data.outcome == ReadOutcome.DATA)
            .order_by(distributions.c.id, live.c.start)
        )
        for chunk in at_a_time(sorted(set(project_ids) - self._projects.keys())):
            of_chunk = {project_id: _ReadProject() for project_id in chunk}
            last, spans = 0, list[Span]()
            rows = bare_rows(self._connection, query.where(distributions.c.project_id.in_(chunk)))
            for id_, project_id, version, *facts, details, start, end in rows:
                if id_ == last:  # one more interval
                    spans.append((start, end))
                    continue
                last, spans = id_, [] if start is None else [(start, end)]
                key: _Key = tuple(facts)
                if details:
                    key = (*key, *_start_up_code(from_json(details).get("notes")))
                number = self._numbers.setdefault(key, len(self._numbers))
                of_chunk[project_id].add(version, _KnownFile(id_, facts[0], number, key, spans))
            for project in of_chunk.values():
                project.sort()
            self._projects |= of_chunk

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

    def _load_facts(self, changed: Iterable[_Release]) -> _ComparedFacts:
        """Return the facts of all files that differ from a previous release."""
        wanted: dict[int, _KnownFile] = {}
        list_ids: set[int | None] = set()
        for release in changed:
            if release.base is None:
                continue
            against = _keys(release.against)
            for files in (release.files, release.before):
                if files and _keys(files) != against:
                    wanted |= {file.number: file for file in (*files, *release.against)}
                    list_ids |= _different_lists(files, release.against)
        details = self._load_details(wanted.values())
        facts: dict[int, _Facts] = {}
        for number, file in wanted.items():
            modules_id, requires_id, shared_id, requires_python, *start_up = file.key
            commands, licenses = details[file.id if shared_id is None else -shared_id]
            facts[number] = (
                *(modules_id, requires_id, commands, licenses),
                *(frozenset([requires_python] if requires_python else ()), frozenset(start_up)),
            )
        return _ComparedFacts(facts, self._contents.lists.load_json(list_ids))

    def _load_details(self, files: Collection[_KnownFile]) -> dict[int, tuple[frozenset[str], frozenset[str]]]:
        """Return the commands and licenses in the details of files, by the negative id of shared details.

        For a file without shared details, they are by the file's id.
        """
        shared = self._contents.shared.load(file.key[_SHARED] for file in files)
        found = {-id_: _commands_and_licenses(content) for id_, content in shared.items()}
        alone = sorted(file.id for file in files if file.key[_SHARED] is None)
        if alone:
            c = distribution_data.c
            sent = sent_values(self._connection, c.distribution_id, alone)
            query = select(c.distribution_id, c.details).select_from(sent)
            rows = bare_rows(self._connection, query.join(distribution_data, c.distribution_id == sent.c.value))
            found |= {id_: _commands_and_licenses(content or "{}") for id_, content in rows}
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


def _comparison(release: _Release, facts: _ComparedFacts) -> Change | None:
    """Return what a release gained and lost, unless its files before the new ones had the same difference."""
    if release.base is None:
        return None
    difference = facts.difference(release.files, release.against)
    if not any(difference) or (release.before and difference == facts.difference(release.before, release.against)):
        return None
    return RELEASE_COMPARED, {"against": release.base, "gained": difference[0], "lost": difference[1]}


def _keys(files: Iterable[_KnownFile]) -> set[int]:
    return {file.number for file in files}


def _different_lists(files: Iterable[_KnownFile], against: Iterable[_KnownFile]) -> set[int | None]:
    """Return the lists of modules and of requirements that these files must be compared by."""
    found: set[int | None] = set()
    for position in (_MODULES, _REQUIREMENTS):
        new, old = ({file.key[position] for file in of_release} for of_release in (files, against))
        if new != old:
            found |= new | old
    return found


def _commands_and_licenses(details: bytes | str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the facts that are stored in details."""
    columns: Mapping[str, Any] = release_columns(from_json(details), is_read=True)
    scripts = [*(columns["console_scripts"] or ()), *(columns["gui_scripts"] or ())]
    commands = frozenset(line.partition(" = ")[0] for line in scripts)
    return commands, frozenset(filter(None, [columns["license_expression"] or columns["license"]]))


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
