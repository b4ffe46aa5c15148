"""Datasets that map a name in a list column, like `modules`, to the projects and versions that provide it.

    m NAME PROJECT        GROUP                                    looked up first: leads to the answer
    g PROJECT GROUP       [display name, [versions]]               the answer for all names of a group
    p PROJECT GROUP       [names]                                  the names of a group
    l PROJECT LIST        [groups]                                 a list of names that files of the project share
    f PROJECT FILENAME    [version, list, display name, serial]    the contribution of a file, and its marks, if any
    s NAME PROJECT        GROUP                                    like m, for names that only stubs describe
    o PROJECT             facts about the project as a whole, if the dataset has them

Names of a project that occur in the same lists form a group, which is identified by its first name. So a new version
changes the answers for all its names with few records. If its list is known, the names are not even read. All records
of a project follow from the contributions of its files. A change compares the records before and after it.
"""

import hashlib
from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, NamedTuple, TypeVar

import orjson

from pypi_assets.leveldbs.datasets.dataset import Change
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.format.records import SEPARATOR, Records, Row, as_part, key, prefix, records_of
from pypi_assets.version_order import version_key

COLUMNS = ("project", "version", "filename", "tombstone", "live_since")
"""The dump columns that every such dataset reads, in addition to its list columns."""
STUB = " "
"""Prefix, in lists and groups, of a name that a stub describes. No module or command begins with it."""
_HASH_DIGITS = 32
_DIGITS = bytes.maketrans(b"01", b"\0\1")
_EMPTY = b'["",[]]'
_LAST = b'"]]'
Value = TypeVar("Value")
FileEntry = list[Any]
"""The contribution of a file: `[version, list, display name, live since]`, and its marks if it has any."""


def _no_marks(_: Row) -> Mapping[str, object]:
    return {}


@dataclass(frozen=True, slots=True)
class NamingRules:
    """The rules by which the names of a dataset are derived from rows.

    `columns` are list columns. If the first is None, the names are unknown. `names_in` derives the names from their
    values. `marks_in` returns further facts to store about a file, none for most files. `overview_of` returns the
    record of the project as a whole from the contributions of its files, by filename. If it is None, the dataset has no
    such record.
    """

    columns: tuple[str, ...]
    names_in: Callable[..., list[str]]
    marks_in: Callable[[Row], Mapping[str, object]] = _no_marks
    overview_of: Callable[[Mapping[str, FileEntry]], bytes] | None = None


@dataclass(frozen=True, slots=True)
class _ProvidingProject:
    """The stored state of a project.

    `files` has the contribution of each file, `lists` the groups that make up each list, and `groups` the names of each
    group. Groups are loaded only if the lists change. Lists and groups are in order.
    """

    files: dict[str, list[Any]] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)

    @property
    def all_groups(self) -> set[str]:
        return set().union(*self.lists.values())


def key_schema(name: str) -> dict[str, str]:
    """Return the description of the keys of a dataset of names.

    `name` is the word for one of them, such as `module`.
    """
    return {
        f"m {name.upper()} PROJECT": f"the group of the project's {name}s that contains the {name}",
        "g PROJECT GROUP": f"the project's name, and the versions that provide the {name}s of the group",
        "p PROJECT GROUP": f"the {name}s of the group",
        "l PROJECT LIST": f"the groups that make up a list of {name}s, which files can share",
        "f PROJECT FILENAME": f"the version, list of {name}s, project's name and serial of a file",
    }


def change_names(db: Database | None, project: str, rows: list[Row], *, naming: NamingRules) -> Change:
    """Return the records of the project that `rows` change, before and after. `project` is the normalized name."""
    old = _load(db, project) if db else _ProvidingProject()
    files, new_lists = _apply_rows(old.files, rows, naming)
    used = {list_hash for _, list_hash, *_ in files.values() if list_hash is not None}
    if used == old.lists.keys():
        new = replace(old, files=files)
    else:
        old = replace(old, groups=_load_groups(db, project, old) if db else {})
        new = _ProvidingProject(files, *_grouped(old, used, new_lists))
    of_rows = {row["filename"] for row in rows}
    before: Records = {}
    after: Records = {}
    _add_changed(before, after, prefix("f", project), _only(of_rows, old.files), _only(of_rows, new.files))
    if naming.overview_of:
        if db and old.files:
            before[overview_key(project)] = _required(db, overview_key(project))
        if new.files:
            after[overview_key(project)] = naming.overview_of(new.files)
    if old.lists is not new.lists:
        _add_changed(before, after, prefix("l", project), old.lists, new.lists)
        _add_changed(before, after, prefix("p", project), old.groups, new.groups)
        _add_moved(before, project, old.groups, new.groups)
        _add_moved(after, project, new.groups, old.groups)
    if db is None or not old.lists:
        _add_changed(before, after, prefix("g", project), {}, _all_answers(new), bytes)
    else:
        _add_changed_answers(before, after, _Changing(db, project, old, new, of_rows))
    return before, after


def name_prefix(name: str) -> bytes:
    """Return the beginning of the keys of all projects that provide `name`. The project's normalized name follows."""
    return prefix("m", name)


def stub_key(name: str, project: str) -> bytes:
    """Return the key that leads to the answer for `name` if stubs of `project` (normalized) describe it."""
    return key("s", name, project)


def overview_key(project: str) -> bytes:
    """Return the key of the record about `project` (normalized) as a whole."""
    return key("o", project)


def names_prefix(beginning: str) -> bytes:
    """Return the beginning of the keys of all names that begin with `beginning`."""
    return key("m", beginning)


def name_key(name: str, project: str) -> bytes:
    """Return the key of the record that `project` (normalized) provides `name`."""
    return key("m", name, project)


def project_prefix(project: str) -> bytes:
    """Return the beginning of the keys of all groups of names of `project` (normalized). A group follows."""
    return prefix("p", project)


def decode_group(value: bytes) -> list[str]:
    """Return the names of a group, in order, without names that stubs describe."""
    names: list[str] = orjson.loads(value)
    return [name for name in names if not name.startswith(STUB)]


def split_name_key(name_key: bytes) -> tuple[str, str]:
    """Return the name and the project's normalized name in a key below `name_prefix`."""
    _, name, project = name_key.decode().split("\0")
    return name, project


def answer_key(name_key: bytes, group: bytes) -> bytes:
    """Return the key of the answer for a group. `name_key` is the key of any of its names."""
    return b"g" + name_key[name_key.rindex(SEPARATOR) :] + SEPARATOR + group


def read_answer(db: Database, record_key: bytes) -> bytes:
    """Return the answer for a group. Raises LeveldbDamagedError if it is missing."""
    value: bytes | None = db.get(record_key, verify_checksums=True)
    if value is None:
        raise LeveldbDamagedError(f"{record_key!r} is missing, but a name refers to it")
    return value


def decode_answer(value: bytes) -> tuple[str, list[str]]:
    """Return the project's display name, and the versions that provide the name, in PEP 440's order."""
    display, versions = orjson.loads(value)
    return display, versions


class FileNames(NamedTuple):
    """The names that a file contributes, in order: `names`, and `stubs`, the names that it only describes."""

    names: tuple[str, ...]
    stubs: tuple[str, ...]


def names_of_files(db: Database, project: str, filenames: Iterable[str]) -> dict[str, FileNames | None]:
    """Return the names that each of these files of `project` (normalized) contributes, or None if they are unknown.

    Files without a record are omitted. A list shared by several files is read once. Raises LeveldbDamagedError.
    """
    found: dict[str, FileNames | None] = {}
    lists: dict[str, FileNames] = {}
    for filename in filenames:
        value = db.get(key("f", project, filename), verify_checksums=True)
        if value is None:
            continue
        list_hash = orjson.loads(value)[1]
        if list_hash is not None and list_hash not in lists:
            lists[list_hash] = _names_of_list(db, project, list_hash)
        found[filename] = None if list_hash is None else lists[list_hash]
    return found


def _names_of_list(db: Database, project: str, list_hash: str) -> FileNames:
    groups = orjson.loads(_required(db, key("l", project, list_hash)))
    names = sorted(name for group in groups for name in orjson.loads(_required(db, key("p", project, group))))
    stubs = tuple(name.removeprefix(STUB) for name in names if name.startswith(STUB))
    return FileNames(tuple(name for name in names if not name.startswith(STUB)), stubs)


def _required(db: Database, record_key: bytes) -> bytes:
    value: bytes | None = db.get(record_key, verify_checksums=True)
    if value is None:
        raise LeveldbDamagedError(f"{record_key!r} is missing, but another record refers to it")
    return value


def _load(db: Database, project: str) -> _ProvidingProject:
    """Load the state of a project, without its groups."""
    files, lists = (_load_all(db, prefix(letter, project)) for letter in "fl")
    for list_hash in {list_hash for _, list_hash, *_ in files.values() if list_hash is not None} - lists.keys():
        raise LeveldbDamagedError(f"{key('l', project, list_hash)!r} is missing, but a file refers to it")
    return _ProvidingProject(files, lists)


def _load_groups(db: Database, project: str, state: _ProvidingProject) -> dict[str, list[str]]:
    groups = _load_all(db, prefix("p", project))
    for group in set().union(*state.lists.values()) - groups.keys():
        raise LeveldbDamagedError(f"{key('p', project, group)!r} is missing, but a list refers to it")
    return groups


def _load_all(db: Database, start: bytes) -> dict[str, list[Any]]:
    records = records_of(db, start)
    # decoded together, since there are thousands
    values = orjson.loads(b"[" + b",".join([value for _, value in records]) + b"]")
    length = len(start)
    return {record_key[length:].decode(): value for (record_key, _), value in zip(records, values, strict=True)}


def _apply_rows(
    old: Mapping[str, list[Any]],
    rows: Iterable[Row],
    naming: NamingRules,
) -> tuple[dict[str, FileEntry], dict[str, list[str]]]:
    """Return the contributions of files after the rows, and the lists of names in the rows, by hash."""
    files = dict(old)
    lists: dict[str, list[str]] = {}
    hashes: dict[tuple[int, ...], str] = {}  # by identity, since rows with equal lists usually share the object
    for row in rows:
        if row["tombstone"]:
            files.pop(row["filename"], None)
            continue
        values, list_hash = [row[column] for column in naming.columns], None
        if values[0] is not None:
            identity = tuple(map(id, values))
            list_hash = hashes.get(identity)
            if list_hash is None:
                names = naming.names_in(*values)
                content = orjson.dumps(names)
                hashes[identity] = list_hash = hashlib.sha256(content).hexdigest()[:_HASH_DIGITS]
                lists[list_hash] = list(map(as_part, names)) if rb"\u0000" in content else names
        marks = naming.marks_in(row)
        entry = [row["version"], list_hash, row["project"], row["live_since"]]
        files[row["filename"]] = [*entry, marks] if marks else entry
    return files, lists


def _grouped(
    old: _ProvidingProject, used: Iterable[str], new_lists: Mapping[str, list[str]]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the groups of each of the `used` lists, which can be old or new, and the names of each group."""
    ordered = list(used)
    lists_of_groups: dict[str, int] = {}  # one bit for each list
    lists_of_names: dict[str, int] = {}
    for place, list_hash in enumerate(ordered):
        for group in old.lists.get(list_hash, ()):
            lists_of_groups[group] = lists_of_groups.get(group, 0) | 1 << place
    for group, lists in lists_of_groups.items():
        lists_of_names.update(dict.fromkeys(old.groups[group], lists))
    for place, list_hash in enumerate(ordered):
        if list_hash not in old.lists:
            bit = 1 << place
            for name in new_lists[list_hash]:
                lists_of_names[name] = lists_of_names.get(name, 0) | bit
    together: defaultdict[int, list[str]] = defaultdict(list)
    for name, lists in lists_of_names.items():
        together[lists].append(name)
    groups_of_lists: dict[str, list[str]] = {list_hash: [] for list_hash in ordered}
    groups: dict[str, list[str]] = {}
    for names, lists in sorted((sorted(names), lists) for lists, names in together.items()):
        groups[names[0]] = names
        for list_hash in _selected(ordered, lists):
            groups_of_lists[list_hash].append(names[0])
    return groups_of_lists, groups


def _versions_of_groups(state: _ProvidingProject, bits: Mapping[str, int], groups: Container[str]) -> dict[str, int]:
    """Return, for each of the groups, which of the versions in `bits` provide it, as a set of these bits."""
    versions_of_lists: dict[str, int] = {}
    for version, list_hash, *_ in state.files.values():
        if version in bits and list_hash is not None:
            versions_of_lists[list_hash] = versions_of_lists.get(list_hash, 0) | bits[version]
    found: dict[str, int] = {}
    for list_hash, versions in versions_of_lists.items():
        for group in state.lists[list_hash]:
            if group in groups:
                found[group] = found.get(group, 0) | versions
    return found


def _bits(versions: Iterable[str]) -> dict[str, int]:
    return {version: 1 << place for place, version in enumerate(versions)}


def _selected(values: Sequence[str], bits: int) -> list[str]:
    """Return the values whose bit is set. The lowest bit stands for the first value."""
    return list(compress(values, f"{bits:b}".encode()[::-1].translate(_DIGITS)))


def _display(state: _ProvidingProject) -> str:
    """Return the display name in the latest file, so that the result does not depend on the order of rows."""
    files = state.files
    if len({file[2] for file in files.values()}) == 1:
        return str(next(iter(files.values()))[2])
    return max(((file[3] or 0, filename, file[2]) for filename, file in files.items()), default=(0, "", ""))[2]


def _all_answers(state: _ProvidingProject) -> dict[str, bytes]:
    """Return the answer for each group, computed from all files."""
    ordered = sorted({file[0] for file in state.files.values()}, key=version_key)
    display = _display(state)
    return {
        group: orjson.dumps([display, _selected(ordered, versions)])
        for group, versions in _versions_of_groups(state, _bits(ordered), state.all_groups).items()
    }


@dataclass(frozen=True, slots=True)
class _Changing:
    """A project before and after the rows of the files `of_rows`."""

    db: Database
    project: str
    old: _ProvidingProject
    new: _ProvidingProject
    of_rows: Collection[str]

    def versions(self) -> list[str]:
        """Return the versions of these files, before and after. No other versions can appear or disappear."""
        files = (state.files.get(name) for state in (self.old, self.new) for name in self.of_rows)
        return list(dict.fromkeys(file[0] for file in files if file))

    def groups(self) -> set[str]:
        """Return the groups whose versions can differ.

        These are the groups of the lists that these files had or have, and groups that appear or disappear.
        """
        old, new = self.old, self.new
        changed = set() if old.lists is new.lists else old.all_groups ^ new.all_groups
        for filename in self.of_rows:
            before, after = old.files.get(filename), new.files.get(filename)
            if before and after and before[:2] == after[:2]:
                continue
            for state, file in ((old, before), (new, after)):
                if file and file[1] is not None:
                    changed.update(state.lists[file[1]])
        return changed

    def group_before(self, name: str) -> str | None:
        """Return the group that a name was in."""
        group: bytes | None = self.db.get(_name_key(name, _ending(self.project)), verify_checksums=True)
        return None if group is None else group.decode()


def _add_changed_answers(before: Records, after: Records, changing: _Changing) -> None:
    """Add the answers that change.

    Each new answer is derived from the stored answer for the group's first name, by the versions that appear or
    disappear. Decoding and encoding all versions of each group would take much longer.
    """
    db, old, new = changing.db, changing.old, changing.new
    old_groups, display = old.all_groups, _display(new)
    changed = changing.groups() if display == _display(old) else old_groups | new.all_groups
    start = prefix("g", changing.project)
    stored = {group: read_answer(db, start + group.encode()) for group in changed & old_groups}
    before.update((start + group.encode(), value) for group, value in stored.items())
    left = changed & new.all_groups
    came_from = {group: group if group in stored else changing.group_before(group) for group in left}
    bases = {group for group in came_from.values() if group is not None}
    if unknown := bases - old_groups:
        raise LeveldbDamagedError(f"a name of {changing.project} refers to {min(unknown)!r}, which is not in its lists")
    versions = changing.versions()
    bits = _bits(versions)
    had, has = _versions_of_groups(old, bits, bases), _versions_of_groups(new, bits, left)
    for group, base in came_from.items():
        earlier, now = 0 if base is None else had.get(base, 0), has.get(group, 0)
        value = _EMPTY if base is None else stored.get(base) or read_answer(db, start + base.encode())
        gone, added = (_selected(versions, difference) for difference in (earlier & ~now, now & ~earlier))
        after[start + group.encode()] = _changed_answer(value, display, gone, added)


def _changed_answer(value: bytes, display: str, gone: Collection[str], added: Collection[str]) -> bytes:
    """Return the answer after versions appear or disappear in `value`, for a project with this display name."""
    start = orjson.dumps([display])[:-1] + b","
    if not gone and len(added) <= 1 and value.startswith(start):
        if not added:
            return value
        [version] = added
        if value.endswith(_LAST) and b"\\" not in value:
            last = value[value.rindex(b'"', 0, -len(_LAST)) + 1 : -len(_LAST)].decode()
            if version_key(last) < version_key(version):
                return value[:-2] + b"," + orjson.dumps(version) + b"]]"
    _, versions = decode_answer(value)
    without = set(gone)
    versions = [version for version in versions if version not in without]
    for version in added:
        insort(versions, version, key=version_key)
    return orjson.dumps([display, versions])


def _only(names: Iterable[str], values: Mapping[str, Value]) -> dict[str, Value]:
    return {name: values[name] for name in names if name in values}


def _add_changed(
    before: Records,
    after: Records,
    start: bytes,
    old: Mapping[str, Value],
    new: Mapping[str, Value],
    encoded: Callable[[Value], bytes] = orjson.dumps,
) -> None:
    """Add the records below `start` that differ between `old` and `new`."""
    for values, others, records in ((old, new, before), (new, old, after)):
        for name, value in values.items():
            if others.get(name) != value:
                records[start + as_part(name).encode()] = encoded(value)


def _add_moved(
    records: Records, project: str, groups: Mapping[str, list[str]], others: Mapping[str, list[str]]
) -> None:
    """Add the records of names that are not in the same group in `others`."""
    ending = _ending(project)
    for group, names in groups.items():
        value = group.encode()
        moved = set(names).difference(others[group]) if group in others else names
        records.update((_name_key(name, ending), value) for name in moved)


def _name_key(name: str, ending: bytes) -> bytes:
    return (b"s\0" + name[1:].encode() if name.startswith(STUB) else b"m\0" + name.encode()) + ending


def _ending(project: str) -> bytes:
    return SEPARATOR + as_part(project).encode()
