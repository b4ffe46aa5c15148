"""Makes the files of edges from the records of a LevelDB, and compares them with the records.

A build from scratch reads all records and writes a whole file. An update writes the changes since the whole file of the
version that it is built on, until the changes are so many that another whole file takes less work.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pypi_assets.leveldbs.datasets.depgraph.depgraph_records import (
    NewestFiles,
    first_project_records,
    newest_release_of,
    newest_requirements,
)
from pypi_assets.leveldbs.datasets.depgraph.edge_file import (
    AS_IN_BASE,
    NO_FILES,
    SEVERAL_SPELLINGS,
    SUFFIX,
    EdgeFile,
    write_edge_file,
)
from pypi_assets.leveldbs.datasets.depgraph.edges import (
    NO_CONDITION,
    OLDER_ALONE,
    Edges,
    condition_of,
    encode_lists,
    named_lists,
    open_edges,
    place_of,
    requirement_lists,
)
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, UnknownFormatError
from pypi_assets.leveldbs.format.records import SEPARATOR, Records, key, read_content_hash, scan

DELETED = -1
"""The number of the lists of an edge that the changes delete."""
EDGES_OF_ONE_CHANGED = 8
"""How many edges a whole file has in the time in which one changed edge is written."""
_REQUIRED = key("r", "")
_REPORT_EVERY = 10_000
Waiting = Callable[[], object]
_Contents = tuple[str, tuple[str, bool] | None, list[Any]]


class _Numbered:
    """Texts with numbers in the order in which they were added."""

    def __init__(self, *texts: bytes) -> None:
        self.numbers = {text: number for number, text in enumerate(texts)}

    def add(self, text: bytes) -> int:
        """Return the number of a text."""
        return self.numbers.setdefault(text, len(self.numbers))


class _Tables:
    """The versions and the requirement lists of a file."""

    def __init__(self) -> None:
        self.versions, self._lists, self._conditions = _Numbered(), _Numbered(b"[]"), bytearray([NO_CONDITION])

    def release(self, found: NewestFiles | None) -> int:
        """Return the value of `release` for the newest release of a project."""
        if found is None:
            return NO_FILES
        return self.versions.add(found.version.encode()) | (0 if found.is_spelled_alike else SEVERAL_SPELLINGS)

    def encoded_lists(self, found: NewestFiles | None) -> Iterator[tuple[bytes, int]]:
        """Yield each project that the newest release requires, and the number of its lists."""
        if found is not None and found.is_installable:
            for required, lists in requirement_lists(found.requirements).items():
                number = self._lists.add(encode_lists(required, lists))
                if number == len(self._conditions):
                    self._conditions.append(condition_of(lists))
                yield required.encode(), number

    def number_of_lists(self, content: bytes, condition: int) -> int:
        """Return the number of lists that are encoded already."""
        number = self._lists.add(content)
        if number == len(self._conditions):
            self._conditions.append(condition)
        return number

    def written(self) -> dict[str, list[bytes] | bytes]:
        """Return the arguments of `write_edge_file` for both tables."""
        return {
            "versions": list(self.versions.numbers),
            "lists": list(self._lists.numbers),
            "conditions": bytes(self._conditions),
        }


def write_whole(db: Database, path: Path, waiting: Waiting = int) -> None:
    """Write all edges in the records of a LevelDB. `waiting` is called now and then."""
    names, tables, release = _Numbered(), _Tables(), array("I")
    required, project, lists = array("I"), array("I"), array("I")  # of the newest releases, by project
    for count, (name, value) in enumerate(first_project_records(db)):
        if count % _REPORT_EVERY == 0:
            waiting()
        found, number = newest_release_of(db, name.decode(), value), names.add(name)
        release.extend([NO_FILES] * (number + 1 - len(release)))
        release[number] = tables.release(found)
        for other, list_number in tables.encoded_lists(found):
            required.append(names.add(other))
            project.append(number)
            lists.append(list_number)
    starts, project, lists = _by_required(len(names.numbers), required, project, lists)
    del required
    newest, of_newest, older = _Edges(), array("I"), _Edges()
    current, number, at, end = b"", 0, 0, 0
    for count, (record_key, _) in enumerate(scan(db, _REQUIRED)):
        if count % _REPORT_EVERY == 0:
            waiting()
        _, one, other = record_key.split(SEPARATOR)
        if one != current or not count:
            _require(at == end, current)
            current, number = one, names.add(one)
            at, end = (starts[number], starts[number + 1]) if number + 1 < len(starts) else (0, 0)
        of_other = names.numbers.get(other, len(release))
        if of_other >= len(release) or release[of_other] == NO_FILES:
            raise LeveldbDamagedError(f"{other.decode(errors='replace')} requires a project but has no files")
        if at < end and project[at] == of_other:
            newest.add(number, of_other)
            of_newest.append(lists[at])
            at += 1
        else:
            older.add(number, of_other)
    _require(at == end, current)
    if len(of_newest) != len(lists):
        raise LeveldbDamagedError("a newest release requires a project that lacks all dependents")
    del project, lists, starts
    waiting()
    release.extend([NO_FILES] * (len(names.numbers) - len(release)))
    ordered = sorted(names.numbers)
    in_order = array("I", map(names.numbers.__getitem__, ordered))
    del names
    ranks = array("I", bytes(4 * len(ordered)))
    for rank, number in enumerate(in_order):
        ranks[number] = rank
    write_edge_file(
        path,
        base=None,
        content_hash=read_content_hash(db) or "",
        names=ordered,
        release=array("I", map(release.__getitem__, in_order)),
        place=array("I"),
        newest=newest.arrays(in_order, ranks),
        requirements=of_newest,
        older=older.arrays(in_order, ranks),
        deleted=_Edges().arrays(in_order, ranks),
        **tables.written(),  # type: ignore[arg-type]
    )


class _Edges:
    """Edges that are added in the order of their required projects."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._project = array("I")

    def add(self, required: int, project: int) -> None:
        self._counts[required] = self._counts.get(required, 0) + 1
        self._project.append(project)

    def arrays(self, in_order: Iterable[int], ranks: Sequence[int] | None = None) -> "tuple[array[int], array[int]]":
        """Return where the edges of each required project start, and the projects, as their `ranks` if given."""
        starts = array("I", [0])
        for number in in_order:
            starts.append(starts[-1] + self._counts.get(number, 0))
        return starts, self._project if ranks is None else array("I", map(ranks.__getitem__, self._project))


def _require(is_complete: bool, required: bytes) -> None:
    if not is_complete:
        name = required.decode(errors="replace")
        raise LeveldbDamagedError(f"a newest release requires {name}, but the dependents of {name} lack it")


def _by_required(
    names: int, required: "array[int]", project: "array[int]", lists: "array[int]"
) -> "tuple[array[int], array[int], array[int]]":
    """Sort edges by required project, in linear time, and return where the edges of each one start."""
    starts = array("I", bytes(4 * (names + 1)))
    for number in required:
        starts[number + 1] += 1
    for number in range(names):
        starts[number + 1] += starts[number]
    places, projects_sorted, lists_sorted = starts[:], project[:], lists[:]
    for number, one, list_number in zip(required, project, lists, strict=True):
        place = places[number]
        places[number] = place + 1
        projects_sorted[place], lists_sorted[place] = one, list_number
    return starts, projects_sorted, lists_sorted


class ChangedEdges:
    """The projects and the edges that an update of a LevelDB changes.

    `content_hash` is the hash of the records before the update.
    """

    def __init__(self, content_hash: str) -> None:
        self.content_hash = content_hash
        self.projects: set[bytes] = set()
        self.edges: set[tuple[bytes, bytes]] = set()
        """Pairs of the required project and the project that requires it."""

    def see(self, db: Database, project: str, before: Records, after: Records) -> None:
        """Note a change of a project's records before it is written."""
        name = project.encode()
        for record_key in (*before, *after):
            if record_key.startswith(_REQUIRED):
                _, required, _ = record_key.split(SEPARATOR)
                self.edges.add((required, name))
        if name not in self.projects:
            self.projects.add(name)
            found = newest_requirements(db, project)
            if found is not None:
                self.edges.update((required.encode(), name) for required in requirement_lists(found[1]))


def write_edges(
    db: Database, folder: Path, name: str, changed: ChangedEdges | None = None, waiting: Waiting = int
) -> None:
    """Write the edges of a LevelDB into its folder. `name` is unique among all versions.

    `changed` has the changes since the version whose files are in the folder. If it is None, all edges are written.
    Files that are not needed any more are deleted.
    """
    present = None if changed is None else _present(folder, changed)
    if present is not None and changed is not None and not changed.projects:
        return
    kept = set[str]()
    path = folder / f"{name}{SUFFIX}"
    if present is not None and changed is not None and _is_little(present, changed):
        kept.add(present.whole.name)
        _write_changes(db, path, present, changed)
    else:
        write_whole(db, path, waiting)
    for old in folder.glob(f"*{SUFFIX}"):
        if old != path and old.name not in kept:
            old.unlink()


def _present(folder: Path, changed: ChangedEdges) -> Edges | None:
    """Return the edges before the changes, or None if their files cannot be used."""
    try:
        edges = open_edges(folder)
        if edges is None or edges.content_hash != changed.content_hash:  # older code leaves the file of its base
            return None
        edges.check()
    except (LeveldbDamagedError, UnknownFormatError):
        return None
    return edges


def _is_little(present: Edges, changed: ChangedEdges) -> bool:
    """Check whether writing the changes takes less work than writing all edges."""
    earlier = 0 if present.changes is None else present.changes.edges
    new = len(changed.edges) + len(changed.projects)
    return (earlier + new) * EDGES_OF_ONE_CHANGED <= present.whole.edges


def _write_changes(db: Database, path: Path, present: Edges, changed: ChangedEdges) -> None:
    """Write the changes since the whole file: the earlier ones, and these."""
    tables = _Tables()
    releases: dict[bytes, int] = {}
    edges: dict[tuple[bytes, bytes], int] = {}
    if present.changes is not None:
        releases, edges = _earlier_changes(present.changes, tables)
    lists_of: dict[tuple[bytes, bytes], int] = {}
    for project in changed.projects:
        record = db.get(key("d", project.decode()), verify_checksums=True)
        found = newest_release_of(db, project.decode(), record)
        releases[project] = tables.release(found)
        lists_of |= {(required, project): number for required, number in tables.encoded_lists(found)}
    for required, project in changed.edges | lists_of.keys():
        is_there = db.get(_REQUIRED + required + SEPARATOR + project, verify_checksums=True) is not None
        edges[required, project] = lists_of.get((required, project), OLDER_ALONE) if is_there else DELETED
    names = sorted({*releases, *(name for edge in edges for name in edge)})
    numbers = {name: number for number, name in enumerate(names)}
    place = array("I")
    for name in names:
        in_whole, is_there = place_of(present.whole, name)
        place.append(2 * in_whole + is_there)
    newest, requirements, older, deleted = _Edges(), array("I"), _Edges(), _Edges()
    for (required, project), number in sorted(edges.items()):
        if number > OLDER_ALONE:
            requirements.append(number)
        kind = deleted if number == DELETED else older if number == OLDER_ALONE else newest
        kind.add(numbers[required], numbers[project])
    in_order = range(len(names))
    write_edge_file(
        path,
        base=present.whole.name,
        content_hash=read_content_hash(db) or "",
        names=names,
        release=array("I", [releases.get(name, AS_IN_BASE) for name in names]),
        place=place,
        newest=newest.arrays(in_order),
        requirements=requirements,
        older=older.arrays(in_order),
        deleted=deleted.arrays(in_order),
        **tables.written(),  # type: ignore[arg-type]
    )


def _earlier_changes(file: EdgeFile, tables: _Tables) -> tuple[dict[bytes, int], dict[tuple[bytes, bytes], int]]:
    """Return the releases by project and the lists by edge in earlier changes. Their texts are added to `tables`."""
    names = [file.name_at(number) for number in range(file.names)]
    lists = {
        number: tables.number_of_lists(file.list_at(number), file.conditions[number]) for number in range(file.lists)
    }
    releases = {}
    for number, release in enumerate(file.release):
        if release == NO_FILES:
            releases[names[number]] = release
        elif release != AS_IN_BASE:
            version = tables.versions.add(file.version_at(release & ~SEVERAL_SPELLINGS).encode())
            releases[names[number]] = version | (release & SEVERAL_SPELLINGS)
    edges: dict[tuple[bytes, bytes], int] = {}
    for required, name in enumerate(names):
        begin, end = file.newest_starts[required], file.newest_starts[required + 1]
        for project, number in zip(file.newest_project[begin:end], file.requirements[begin:end], strict=True):
            edges[name, names[project]] = lists[number]
        for project in file.older_project[file.older_starts[required] : file.older_starts[required + 1]]:
            edges[name, names[project]] = OLDER_ALONE
        for project in file.deleted_project[file.deleted_starts[required] : file.deleted_starts[required + 1]]:
            edges[name, names[project]] = DELETED
    return releases, edges


def edge_problem(db: Database, folder: Path, working: Path) -> str | None:
    """Compare the edges in the folder of a LevelDB with its records, in the empty folder `working`.

    Return the first difference as a sentence, or None.
    """
    edges = open_edges(folder)
    if edges is None:
        return None
    edges.check()
    if edges.content_hash != read_content_hash(db):
        return "the edges were made from other records"
    write_whole(db, working / f"expected{SUFFIX}")
    expected = open_edges(working)
    nothing: _Contents = ("", None, [])
    pairs = zip_longest(contents(edges), () if expected is None else contents(expected), fillvalue=nothing)
    for (name, release, ours), (expected_name, expected_release, theirs) in pairs:
        if name != expected_name:
            return f"the edges have {name or 'no more names'}, and the records have {expected_name or 'no more names'}"
        if release != expected_release:
            return f"the edges have {release} as newest release of {name}, and the records have {expected_release}"
        for edge, record in zip_longest(ours, theirs):
            if edge != record:
                return f"the edges have {edge} as dependent of {name}, and the records have {record}"
    return None


def contents(edges: Edges) -> Iterator[_Contents]:
    """Yield each project with files or dependents, by name: its newest release, and the edges to it.

    An edge is (project that requires it, requirement lists as written, condition).
    """
    conditions = edges.conditions
    for number in edges.beginning_with(""):
        required, (projects, lists) = edges.name(number), edges.requiring(number)
        release = edges.release(number)
        if release is not None or projects:
            found = [
                (edges.name(project), named_lists(required, edges.lists(one)), conditions[one])
                for project, one in zip(projects, lists, strict=True)
            ]
            yield required, release, found
