"""The edges of a version of `depgraph`: which project requires which, and by which requirements of its newest release.

An edge leads from a project to a project that any of its releases requires. If the newest release requires it, the edge
has *requirement lists*: for each file of the release, the requirements of the other project as written. Lists are
numbered, and in them `*` stands for the required project's normalized name. So many edges share lists, and a caller can
judge each number once. Projects have numbers too, which are valid for one object of this module.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from heapq import merge
from operator import add, sub
from pathlib import Path

import orjson

from pypi_assets.distributions.requirement_names import CONDITIONS, parse_requirement
from pypi_assets.leveldbs.datasets.depgraph.edge_file import (
    AS_IN_BASE,
    NO_FILES,
    SEVERAL_SPELLINGS,
    SUFFIX,
    EdgeFile,
    RequirementLists,
    decode_lists,
)
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.format.records import read_content_hash

OLDER_ALONE = 0
"""The number of the lists of an edge that only older releases have: no lists."""
NO_CONDITION = len(CONDITIONS)
_NAME = "*"


def requirement_lists(files: Iterable[Iterable[str]]) -> dict[str, RequirementLists]:
    """Return the requirements in the files of a release, by required project (normalized).

    >>> requirement_lists([["a>1", "b", "A; os_name == 'nt'"]])
    {'a': (('a>1', "A; os_name == 'nt'"),), 'b': (('b',),)}
    """
    found: dict[str, list[tuple[str, ...]]] = {}
    for requirements in files:
        of_file: dict[str, list[str]] = {}
        for requirement in requirements:
            parsed = parse_requirement(requirement)
            if parsed is not None:
                of_file.setdefault(parsed[0], []).append(requirement)
        for required, some in of_file.items():
            lists = found.setdefault(required, [])
            if tuple(some) not in lists:
                lists.append(tuple(some))
    return {required: tuple(lists) if len(lists) == 1 else tuple(sorted(lists)) for required, lists in found.items()}


def encode_lists(required: str, lists: RequirementLists) -> bytes:
    """Return the lists as JSON, with `*` in place of the required project's name at the beginning of requirements."""
    short = [
        [_NAME + one.removeprefix(required) if one.startswith(required) else one for one in requirements]
        for requirements in lists
    ]
    return orjson.dumps(short)


def named_lists(required: str, lists: RequirementLists) -> RequirementLists:
    """Return decoded lists as written, with the required project's name."""
    return tuple(tuple(named_requirement(required, one) for one in requirements) for requirements in lists)


def named_requirement(required: str, requirement: str) -> str:
    """Return a requirement of decoded lists as written."""
    return required + requirement[1:] if requirement.startswith(_NAME) else requirement


def condition_of(lists: RequirementLists) -> int:
    """Return the least rank of the conditions of the requirements, as an index in `CONDITIONS`."""
    parsed = (parse_requirement(one) for requirements in lists for one in requirements)
    return min((one[1] for one in parsed if one is not None), default=NO_CONDITION)


class Edges:
    """The edges of a whole file, or of a whole file and its changes.

    A number of the whole file keeps its meaning. Numbers of the changes follow the greatest number of the whole file.
    """

    def __init__(self, whole: EdgeFile, changes: EdgeFile | None = None) -> None:
        self.whole, self.changes = whole, changes
        self.size = whole.names + (0 if changes is None else changes.names)
        """All numbers of projects are below."""
        self.content_hash = (changes or whole).content_hash
        self._versions: dict[int, tuple[str, bool]] = {}
        self._local: dict[int, int] = {}  # by the number of a project: its number in the changes
        self._numbers: list[int] = []  # the other way around
        self._changed = set[int]()  # the required projects of changed edges
        self._releases: dict[int, int] = {}
        if changes is not None:
            self._read_changes(whole.names, changes)

    def _read_changes(self, names: int, changes: EdgeFile) -> None:
        self._numbers = [place // 2 if place % 2 else names + local for local, place in enumerate(changes.place)]
        self._local = {number: local for local, number in enumerate(self._numbers)}
        versions = self.whole.versions
        starts = (changes.newest_starts, changes.older_starts, changes.deleted_starts)
        self._changed = {
            number for local, number in enumerate(self._numbers) if any(one[local] != one[local + 1] for one in starts)
        }
        self._releases = {
            number: release if release == NO_FILES else release + versions  # the bit of the spellings stays
            for number, release in zip(self._numbers, changes.release, strict=True)
            if release != AS_IN_BASE
        }

    def number(self, name: str) -> int | None:
        """Return the number of a project (normalized), or None if no edge has it."""
        wanted = name.encode(errors="surrogatepass")
        place, is_there = place_of(self.whole, wanted)
        if is_there:
            return place
        if self.changes is not None:
            place, is_there = place_of(self.changes, wanted)
            if is_there:
                return self._numbers[place]
        return None

    def name(self, number: int) -> str:
        """Return the normalized name of a project."""
        names = self.whole.names
        if number < names or self.changes is None:
            return self.whole.name_at(number).decode()
        return self.changes.name_at(number - names).decode()

    def all_names(self) -> list[str]:
        """Return the names of all numbers."""
        return self.whole.all_names() + ([] if self.changes is None else self.changes.all_names())

    def release(self, project: int) -> tuple[str, bool] | None:
        """Return the newest version of a project, and whether its files spell the version in several ways.

        The version is spelled as in the first of its files. None: the project has no files.
        """
        number = self._release_number(project)
        found = self._versions.get(number)
        return found or self._version(number)

    def releases(self, projects: Iterable[int]) -> list[tuple[str, bool] | None]:
        """Return the result of `release` for each of these projects."""
        known, version = self._versions, self._version
        if self.changes is None:
            numbers: Iterable[int] = map(self.whole.release.__getitem__, projects)
        else:
            numbers = map(self._release_number, projects)
        return [known.get(number) or version(number) for number in numbers]

    def _release_number(self, project: int) -> int:
        number = self._releases.get(project)
        if number is None:
            return NO_FILES if project >= self.whole.names else self.whole.release[project]
        return number

    def _version(self, release: int) -> tuple[str, bool] | None:
        if release == NO_FILES:
            return None
        number, of_whole = release & ~SEVERAL_SPELLINGS, self.whole.versions
        if number < of_whole or self.changes is None:
            version = self.whole.version_at(number)
        else:
            version = self.changes.version_at(number - of_whole)
        found = self._versions[release] = version, bool(release & SEVERAL_SPELLINGS)
        return found

    def newest(self, required: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return the projects whose newest release requires a project, by name, and the numbers of their lists."""
        if required in self._changed:
            projects, lists = self.requiring(required)
            return [one for one, number in zip(projects, lists, strict=True) if number], [*filter(None, lists)]
        whole = self.whole
        if required >= whole.names:
            return [], []
        begin, end = whole.newest_starts[required], whole.newest_starts[required + 1]
        return whole.newest_project[begin:end].tolist(), whole.requirements[begin:end].tolist()

    def unseen(self, level: Iterable[int], seen: bytearray) -> Iterator[tuple[int, Sequence[int], Sequence[int]]]:
        """Yield the results of `newest` for these projects, without projects that are `seen`, and mark them as seen.

        The required project comes first. Projects without results are omitted.
        """
        whole, changed, size = self.whole, self._changed, self.whole.names
        starts, project, requirements = whole.newest_starts, whole.newest_project, whole.requirements
        for required in level:
            if required in changed:
                all_projects, all_lists = self.newest(required)
                projects = [one for one in all_projects if not seen[one]]
                lists = [number for one, number in zip(all_projects, all_lists, strict=True) if not seen[one]]
            elif required < size and (begin := starts[required]) != (end := starts[required + 1]):
                projects = [one for one in project[begin:end] if not seen[one]]
                if len(projects) == end - begin:
                    lists = requirements[begin:end].tolist()
                elif projects:
                    both = zip(project[begin:end], requirements[begin:end], strict=True)
                    lists = [number for one, number in both if not seen[one]]
            else:
                continue
            if projects:
                for one in projects:
                    seen[one] = 1
                yield required, projects, lists

    def requiring(self, required: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return the projects any of whose releases requires a project, by name, and the numbers of their lists.

        The number is OLDER_ALONE if only older releases of the project require the other one.
        """
        whole = self.whole
        edges: dict[int, int] = {}
        if required < whole.names:
            begin, end = whole.newest_starts[required], whole.newest_starts[required + 1]
            edges = dict(zip(whole.newest_project[begin:end], whole.requirements[begin:end], strict=True))
            begin, end = whole.older_starts[required], whole.older_starts[required + 1]
            edges |= dict.fromkeys(whole.older_project[begin:end], OLDER_ALONE)
        if required in self._changed and self.changes is not None:
            changes, local, of_whole, numbers = self.changes, self._local[required], whole.lists, self._numbers
            begin, end = changes.newest_starts[local], changes.newest_starts[local + 1]
            for project, number in zip(changes.newest_project[begin:end], changes.requirements[begin:end], strict=True):
                edges[numbers[project]] = of_whole + number
            for project in changes.older_project[changes.older_starts[local] : changes.older_starts[local + 1]]:
                edges[numbers[project]] = OLDER_ALONE
            for project in changes.deleted_project[changes.deleted_starts[local] : changes.deleted_starts[local + 1]]:
                edges.pop(numbers[project], None)
        projects = sorted(edges, key=None if self.changes is None else self._sort_key)
        return projects, [edges[project] for project in projects]

    def _sort_key(self, number: int) -> tuple[int, int]:
        """Return a key that sorts numbers by name."""
        new = number - self.whole.names
        if new < 0 or self.changes is None:
            return number, 0
        return self.changes.place[new] // 2, -self.changes.names + new

    def count(self, required: int) -> int:
        """Return the number of projects any of whose releases requires a project."""
        if required in self._changed:
            return len(self.requiring(required)[0])
        if required >= self.whole.names:
            return 0
        newest, older = self.whole.newest_starts, self.whole.older_starts
        return newest[required + 1] - newest[required] + older[required + 1] - older[required]

    def counts(self, prefix: str) -> Iterator[tuple[int, int]]:
        """Return the projects whose name begins with `prefix`, by name, each with its `count`."""
        if self.changes is not None:
            return ((number, self.count(number)) for number in self.beginning_with(prefix))
        beginning, whole = prefix.encode(errors="surrogatepass"), self.whole
        first = place_of(whole, beginning)[0]
        last = place_of(whole, beginning + b"\xff")[0]  # no name has this byte
        newest, older = whole.newest_starts[first : last + 1], whole.older_starts[first : last + 1]
        numbers = map(add, map(sub, newest[1:], newest), map(sub, older[1:], older))
        return zip(range(first, last), numbers, strict=True)

    def lists(self, number: int) -> RequirementLists:
        """Return the requirement lists with a number, with `*` in place of the required project's name."""
        of_whole = self.whole.lists
        if number < of_whole or self.changes is None:
            return decode_lists(self.whole.list_at(number))
        return decode_lists(self.changes.list_at(number - of_whole))

    @cached_property
    def conditions(self) -> Sequence[int]:
        """The least condition in the lists of each number, as an index in `CONDITIONS`."""
        if self.changes is None:
            return self.whole.conditions
        return bytes(self.whole.conditions) + bytes(self.changes.conditions)

    def beginning_with(self, prefix: str, least: str | None = None) -> Iterator[int]:
        """Yield the projects whose name begins with `prefix`, by name. With `least`, the result begins with it."""
        beginning = prefix.encode(errors="surrogatepass")
        first = beginning if least is None else max(beginning, least.encode(errors="surrogatepass"))
        numbers = _while_beginning(self.whole, first, beginning)
        if self.changes is None:
            yield from numbers
            return
        changed = (self._numbers[local] for local in _while_beginning(self.changes, first, beginning))
        new = [number for number in changed if number >= self.whole.names]
        yield from merge(numbers, new, key=self._sort_key)

    def check(self) -> None:
        """Compare the files with their checksums. Raises LeveldbDamagedError."""
        for file in (self.whole, self.changes):
            if file is not None:
                file.check()


_DENSE = 8


class ProjectNames:
    """The names of projects, for one search. All names are read at once if a search needs many of them."""

    def __init__(self, edges: Edges) -> None:
        self._edges = edges
        self._all: list[str] | None = None

    def of(self, projects: Sequence[int]) -> Sequence[str]:
        """Return the names of these projects."""
        if self._all is None and len(projects) * _DENSE > self._edges.size:
            self._all = self._edges.all_names()
        if self._all is None:
            return [*map(self._edges.name, projects)]
        return [*map(self._all.__getitem__, projects)]


def place_of(file: EdgeFile, name: bytes) -> tuple[int, bool]:
    """Return the number of a name, or the number of the first greater name, and whether the name is there."""
    place = bisect_left(range(file.names), name, key=file.name_at)
    return place, place < file.names and file.name_at(place) == name


def _while_beginning(file: EdgeFile, first: bytes, beginning: bytes) -> Iterator[int]:
    """Yield the numbers of the names from `first` on, while they begin with `beginning`."""
    for number in range(place_of(file, first)[0], file.names):
        if beginning and not file.name_at(number).startswith(beginning):
            return
        yield number


def edge_files(folder: Path) -> tuple[EdgeFile, EdgeFile | None] | None:
    """Return the whole file and the changes in the folder of a LevelDB, or None if there are none.

    Raises LeveldbDamagedError and UnknownFormatError.
    """
    files = [EdgeFile(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]
    if not files:
        return None
    whole = {file.name: file for file in files if file.base is None}
    changes = [file for file in files if file.base is not None]
    if len(whole) != 1 or len(changes) > 1 or (changes and changes[0].base not in whole):
        names = ", ".join(file.name for file in files)
        raise LeveldbDamagedError(f"{folder} has edges that do not belong together: {names}")
    return next(iter(whole.values())), changes[0] if changes else None


def open_edges(folder: Path) -> Edges | None:
    """Open the edges in the folder of a LevelDB. Raises the errors of `edge_files`."""
    found = edge_files(folder)
    return None if found is None else Edges(*found)


def check_edges(folder: Path) -> None:
    """Read all edges in the folder of a LevelDB. Raises the errors of `edge_files`."""
    found = edge_files(folder)
    if found is not None:
        whole, _ = found
        for file in found:
            if file is not None:
                file.check()
                file.check_numbers(None if file is whole else whole.names)


class LazyEdges:
    """The edges in the folder of an open version, which are read on first use. It is thread-safe.

    Opening reads the headers alone. Edges that were made from other records are ignored: a build by older code leaves
    the file of its base in the folder. If the hashes of the files were not compared, the first use compares their
    checksums. Raises the errors of `edge_files`.
    """

    def __init__(self, db: Database, folder: Path, checked: bool) -> None:
        self._files, self._checked = edge_files(folder), checked
        if self._files is not None and (self._files[1] or self._files[0]).content_hash != read_content_hash(db):
            self._files = None
        self._edges: Edges | None = None
        self._reading = threading.Lock()

    def get(self) -> Edges | None:
        """Return the edges, or None for a version without. Raises LeveldbDamagedError."""
        if self._files is None or self._edges is not None:
            return self._edges
        with self._reading:
            if self._edges is None:
                edges = Edges(*self._files)
                if not self._checked:
                    edges.check()
                self._edges = edges
            return self._edges
