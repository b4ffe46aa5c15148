"""The dataset `depgraph`: what each distribution requires, and who requires a project. Its keys are in docs/formats.md.

    d PROJECT (empty) SHARED                                              what files of the project have in common
    d PROJECT VERSION KIND REQUIRES_PYTHON PLATFORM ABI BUILD FILENAME    what a file has of its own
    f PROJECT FILENAME                                                    the key above, so that it can be removed
    r REQUIRED PROJECT                                                    the versions that require it

What a version requires follows from its files alone. So of a change only the versions that it touches are read, and
in the records that tell who requires what, only their place changes. What files have in common is kept once, with the
number of these files, and before them: one scan reads all.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import orjson
import plyvel
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from pypi_assets.leveldbs.records import SEPARATOR, LeveldbDamagedError, Records, Row, as_part, key, prefix, scan
from pypi_assets.leveldbs.requirements import CONDITIONS, required_projects
from pypi_assets.leveldbs.version_order import version_key

FORMAT = 3
COLUMNS = (
    *("project", "version", "filename", "tombstone", "kind", "sha256", "size", "uploaded_at", "requires_python"),
    *("yanked", "yanked_reason", "outcome", "requires_dist", "provides_extra"),
)
"""Those of the dumps that `change` looks at."""
SHARED_FIELDS = ("project", "requires_python", "requires_dist", "provides_extra", "yanked", "yanked_reason", "outcome")
"""What many files of a project have in common."""
_SHARED_PARTS = 4
_HASH_DIGITS = 32

_RequirementsOf = Callable[[bytes], list[str] | None]


def change(db: plyvel.DB | None, project: str, rows: list[Row]) -> tuple[Records, Records]:
    """The project's records that `rows` change, before and after; `project` is the normalized name."""
    before: Records = {}
    after: Records = {}
    shared = _Shared(db, project)
    latest = {row["filename"]: row for row in rows}.values()
    for row in latest:
        file_key = key("f", project, row["filename"])
        old_key = db.get(file_key, verify_checksums=True) if db else None
        if db and old_key is not None:
            old_value = db.get(old_key, verify_checksums=True)
            if old_value is None:
                raise LeveldbDamagedError(f"{file_key!r} points to a record that is not there")
            before |= {file_key: old_key, old_key: old_value}
            shared.drop(old_value)
        if not row["tombstone"]:
            new_key = _distribution_key(project, row)
            after[file_key], after[new_key] = new_key, shared.value_of(row)
    if db is None:
        files = ((as_part(row["version"]), row["requires_dist"]) for row in latest if not row["tombstone"])
        after |= _requiring(project, _grouped(files))
    else:
        _change_requiring(db, project, before, after, shared.requirements_of)
    shared.add_records(before, after)
    return before, after


def project_prefix(project: str) -> bytes:
    """What the keys of all distributions of `project` (normalized) begin with."""
    return prefix("d", project)


def dependents_prefix(project: str) -> bytes:
    """What the keys of all that require `project` (normalized) begin with; their own normalized name follows."""
    return prefix("r", project)


def decode_distributions(records: Iterable[tuple[bytes, bytes]]) -> list[dict[str, Any]]:
    """The distributions of one project, in the order of their keys: all of them, or some with all that they share."""
    contents: dict[str, bytes] = {}
    templates: dict[str, dict[str, Any]] = {}
    found = []
    for record_key, value in records:
        parts = record_key.decode().split("\0")
        if len(parts) == _SHARED_PARTS:
            contents[parts[-1]] = value
            continue
        _, project, version, kind, _, platform, abi, build, filename = parts
        name, sha256, size, uploaded_at = orjson.loads(value)
        template = templates.get(name)
        if template is None:
            if name not in contents:
                raise LeveldbDamagedError(f"{record_key!r} points to a record that is not there")
            template = templates[name] = _template(project, contents[name])
        distribution = template.copy()  # which takes half as long as a new one of all that is in it
        distribution["filename"] = filename
        distribution["version"] = version
        distribution["kind"] = kind
        distribution["sha256"] = sha256
        distribution["size"] = size
        distribution["uploaded_at"] = uploaded_at
        distribution["platform"] = platform
        distribution["abi"] = abi
        distribution["build"] = build
        found.append(distribution)
    return found


def decode_dependent(value: bytes) -> tuple[list[str], list[str], list[str]]:
    """The versions that require it always, only by a marker, and only with an extra, in PEP 440's order."""
    found = orjson.loads(value)
    always, marker, extra = (found.get(condition, []) for condition in CONDITIONS)
    return always, marker, extra


def encoded(project: str, rows: list[Row]) -> list[tuple[bytes, bytes]]:
    """The records of the distributions that `rows` of dumps are about, all of `project` (normalized) and live."""
    return [record for record in sorted(change(None, project, rows)[1].items()) if record[0].startswith(b"d")]


def version_of(record_key: bytes) -> str:
    """The version that a distribution's key names."""
    return record_key.decode().split("\0", 3)[2]


def is_shared(record_key: bytes) -> bool:
    """Whether it is the key of what distributions have in common, and not of one."""
    return record_key.count(SEPARATOR) < _SHARED_PARTS


def _distribution_key(project: str, row: Row) -> bytes:
    platform, abi, build = _wheel_tags(row["filename"])
    return key(
        *("d", project, row["version"], row["kind"], row["requires_python"] or "", platform, abi, build),
        row["filename"],
    )


def _wheel_tags(filename: str) -> tuple[str, str, str]:
    """Platform, ABI and build that the end of a wheel's name tells; empty for what is none, or does not tell them."""
    parts = filename.split("-", 2)
    return _parse_tags(parts[2]) if len(parts) == 3 and filename.endswith(".whl") else ("", "", "")


@lru_cache(maxsize=65_536)
def _parse_tags(name_end: str) -> tuple[str, str, str]:
    try:
        _, _, build, tags = parse_wheel_filename(f"x-0-{name_end}")
    except InvalidWheelFilename:
        return "", "", ""
    platforms, abis = {tag.platform for tag in tags}, {tag.abi for tag in tags}
    return ".".join(sorted(platforms)), ".".join(sorted(abis)), "".join(str(part) for part in build)


class _Shared:
    """What files of a project have in common, by name, and how many more files use each than before."""

    def __init__(self, db: plyvel.DB | None, project: str) -> None:
        self._db, self._project = db, project
        self._uses: Counter[str] = Counter()
        self._contents: dict[str, bytes] = {}
        self._stored: dict[str, bytes | None] = {}
        self._names: dict[tuple[object, ...], str] = {}

    def value_of(self, row: Row) -> bytes:
        """The value of a file's record, which is one more use. The row's lists must live as long as this."""
        lists = id(row["requires_dist"]), id(row["provides_extra"])  # rows that have the same mostly have one object
        seen = (*lists, row["project"], row["requires_python"], row["yanked"], row["yanked_reason"], row["outcome"])
        name = self._names.get(seen)
        if name is None:
            content = orjson.dumps({field: row[field] for field in SHARED_FIELDS})
            name = self._names[seen] = hashlib.sha256(content).hexdigest()[:_HASH_DIGITS].upper()
            self._contents[name] = content
        self._uses[name] += 1
        return orjson.dumps([name, row["sha256"], row["size"], row["uploaded_at"]])

    def drop(self, value: bytes) -> None:
        """One use less, by a file whose record had this value."""
        self._uses[_name_in(value)] -= 1

    def requirements_of(self, value: bytes) -> list[str] | None:
        """What the file requires whose record has this value, before or after."""
        name = _name_in(value)
        content = self._contents.get(name) or self._find(name)[1]
        if content is None:
            raise LeveldbDamagedError(f"{_shared_key(self._project, name)!r} is not there, and a file points to it")
        requirements: list[str] | None = orjson.loads(content)["requires_dist"]
        return requirements

    def add_records(self, before: Records, after: Records) -> None:
        """Adds the records, before and after, of what more files use than before, or fewer."""
        for name, change in self._uses.items():
            if change:
                record_key = _shared_key(self._project, name)
                uses, content = self._find(name)
                if content is not None:
                    before[record_key] = _shared_value(uses, content)
                content = content or self._contents.get(name)
                if content is None or uses + change < 0:
                    raise LeveldbDamagedError(f"{record_key!r} does not tell how many files share it")
                if uses + change:
                    after[record_key] = _shared_value(uses + change, content)

    def _find(self, name: str) -> tuple[int, bytes | None]:
        """How many files used it before, and what it is, if any did."""
        if self._db is None:
            return 0, None
        if name not in self._stored:
            self._stored[name] = self._db.get(_shared_key(self._project, name), verify_checksums=True)
        value = self._stored[name]
        if value is None:
            return 0, None
        uses, _, content = value[1:-1].partition(b",")
        return int(uses), content


def _shared_key(project: str, name: str) -> bytes:
    return key("d", project, "", name)


def _name_in(value: bytes) -> str:
    """What the value of a distribution points to."""
    name: str = orjson.loads(value)[0]
    return name


def _shared_value(uses: int, content: bytes) -> bytes:
    return b"[%d,%b]" % (uses, content)


def _template(project: str, value: bytes) -> dict[str, Any]:
    """A distribution as far as what it shares tells, with places for the rest."""
    _, shared = orjson.loads(value)
    return {
        "filename": "",
        "version": "",
        "normalized": project,
        "kind": "",
        "project": shared["project"],
        "sha256": None,
        "size": None,
        "uploaded_at": None,
        "requires_python": shared["requires_python"],
        "requires_dist": shared["requires_dist"],
        "provides_extra": shared["provides_extra"],
        "yanked": shared["yanked"],
        "yanked_reason": shared["yanked_reason"],
        "outcome": shared["outcome"],
        "platform": "",
        "abi": "",
        "build": "",
    }


def _grouped(files: Iterable[tuple[str, list[str] | None]]) -> list[tuple[list[str], dict[str, int]]]:
    """Versions that require the same, each group with what it requires. `files` are (version, requirements)."""
    lists_of: dict[str, list[list[str]]] = {}
    for version, requirements in files:
        known = lists_of.setdefault(version, [])
        if requirements and requirements not in known:  # the files of a version mostly share one list
            known.append(requirements)
    groups: dict[tuple[str, ...], tuple[list[str], dict[str, int]]] = {}
    for version, lists in lists_of.items():
        shared = tuple(lists[0] if len(lists) == 1 else sorted({one for some in lists for one in some}))
        if shared not in groups:
            groups[shared] = ([], required_projects(shared))
        groups[shared][0].append(version)
    return list(groups.values())


def _requiring(project: str, groups: list[tuple[list[str], dict[str, int]]]) -> Records:
    """The records that tell what `project` requires, where nothing else is known of it."""
    places: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, (_, ranks) in enumerate(groups):
        for required, rank in ranks.items():
            places[required].append((number, rank))
    values: dict[tuple[tuple[int, int], ...], bytes] = {}
    records: Records = {}
    for required, found in places.items():
        shared = tuple(found)
        if shared not in values:  # most that a project requires it requires in the same versions
            values[shared] = _encode_ranks({version: rank for number, rank in shared for version in groups[number][0]})
        records[key("r", required, project)] = values[shared]
    return records


def _change_requiring(
    db: plyvel.DB, project: str, before: Records, after: Records, requirements_of: _RequirementsOf
) -> None:
    """Adds to the records of a project's files, before and after, those that tell what the project requires."""
    changed = {version_of(record_key) for record_key in (*before, *after) if record_key.startswith(b"d")}
    stored = {
        record_key: value
        for version in changed
        for record_key, value in scan(db, prefix("d", project, version))
        if not is_shared(record_key)
    }
    kept = {one: value for one, value in stored.items() if one not in before}
    added = {one: value for one, value in after.items() if one.startswith(b"d")}
    was, will_be = _ranks(stored, requirements_of), _ranks(kept | added, requirements_of)
    changes: defaultdict[str, set[str]] = defaultdict(set)
    for required, version in was.keys() | will_be.keys():
        if was.get((required, version)) != will_be.get((required, version)):
            changes[required].add(version)
    for required, versions in changes.items():
        record_key = key("r", required, project)
        value = db.get(record_key, verify_checksums=True)
        ranks = _decode_ranks(value) if value is not None else {}
        if value is not None:
            before[record_key] = value
        for version in versions:
            if ranks.pop(version, None) != was.get((required, version)):
                raise LeveldbDamagedError(f"{record_key!r} does not tell what version {version} requires")
            if (required, version) in will_be:
                ranks[version] = will_be[required, version]
        if ranks:
            after[record_key] = _encode_ranks(ranks)


def _ranks(distributions: Mapping[bytes, bytes], requirements_of: _RequirementsOf) -> dict[tuple[str, str], int]:
    """What the distributions require, and their version, with the rank of the condition."""
    files = ((version_of(one), requirements_of(value)) for one, value in distributions.items())
    return {
        (required, version): rank
        for versions, ranks in _grouped(files)
        for required, rank in ranks.items()
        for version in versions
    }


def _encode_ranks(ranks: Mapping[str, int]) -> bytes:
    """`ranks` by version: of each condition the versions, in PEP 440's order; those without a version are left out."""
    versions_by: defaultdict[int, list[str]] = defaultdict(list)
    for version in sorted(ranks, key=version_key):
        versions_by[ranks[version]].append(version)
    return orjson.dumps({CONDITIONS[rank]: versions_by[rank] for rank in sorted(versions_by)})


def _decode_ranks(value: bytes) -> dict[str, int]:
    found = orjson.loads(value)
    return {version: rank for rank, condition in enumerate(CONDITIONS) for version in found.get(condition, [])}
