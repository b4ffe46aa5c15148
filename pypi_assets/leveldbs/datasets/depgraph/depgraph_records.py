"""The dataset `depgraph`: the requirements of each distribution, and the dependents of each project.

Its keys are described in docs/formats.md:

    d PROJECT                   the project's files, or their number if there are many
    d PROJECT RELEASE           if there are many, the files of a release
    d PROJECT (empty) SHARED    if there are many, values that files of several releases share
    f PROJECT FILENAME          if there are many, the release of a file
    r REQUIRED PROJECT          the versions of PROJECT that require it
    t REQUIRED                  the number of projects that require it; builds maintain it across projects

Most projects have few files: these are one record, which is rewritten when one of them changes. For a project with many
files, only the releases that a change affects are read and written. A release is identified by its canonical version,
so one record has all files that a question about a version needs. The requirements of a version depend only on its own
files, so a change of a version changes only its own entries in the records of dependents.
"""

import hashlib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
import orjson
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from pypi_assets.distributions.installability import installable_or_all, is_installable
from pypi_assets.distributions.record import DistributionKind
from pypi_assets.leveldbs.datasets.depgraph.dependents import (
    File,
    Files,
    change_dependents,
    dependent_values,
    group_versions,
    rank_changes,
)
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.format.records import SEPARATOR, Records, Row, as_part, key, prefix, records_of
from pypi_assets.version_order import canonical_version, newest_release, version_key

FORMAT = 7
COLUMNS = (
    *("project", "version", "filename", "tombstone", "kind", "sha256", "size", "uploaded_at", "requires_python"),
    *("yanked", "yanked_reason", "outcome", "requires_dist", "provides_extra"),
    *("refusals", "first_seen_at", "installed_metadata"),
)
"""The dump columns that `change` reads."""
OWN_FIELDS = ("filename", "kind", "sha256", "size", "uploaded_at", "platform", "abi", "build", "first_seen_at")
"""The values that each file has separately."""
SHARED_FIELDS = ("project", "requires_python", "requires_dist", "provides_extra", "yanked", "yanked_reason", "outcome")
"""The values that many files of a project share.

Files that an installer rejects also have `refusals`. Sdists that pip and uv resolve with different metadata also have
`installed_metadata`.
"""
FEW_FILES = 20
"""Up to this many files are stored as one record."""
_HASH_DIGITS = 32
_AFTER_SEPARATOR = b"\1"
_TEMPLATE: dict[str, Any] = dict.fromkeys(
    (
        *("filename", "version", "normalized", "kind", "project", "sha256", "size", "uploaded_at", "requires_python"),
        *("requires_dist", "provides_extra", "yanked", "yanked_reason", "outcome", "refusals", "platform", "abi"),
        *("build", "first_seen_at", "installed_metadata"),
    )
)
"""The fields of a distribution in answers, all empty."""


_few_decoder = msgspec.json.Decoder(tuple[list[msgspec.Raw], list[tuple[str, int, list[list[Any]]]]])
"""Decodes the only record of a project with few files."""


class _Choice(msgspec.Struct):
    """The part of the shared JSON that installers choose by: the yank, and the installers that reject the files."""

    yanked: bool
    refusals: tuple[str, ...] = ()


class _ChoiceAndRequirements(_Choice, kw_only=True):
    """The same part, and the JSON of the requirements."""

    requires_dist: msgspec.Raw


_few_choices_decoder = msgspec.json.Decoder(tuple[list[_Choice], list[tuple[str, int, msgspec.Raw]]])
_few_requirements_decoder = msgspec.json.Decoder(
    tuple[list[_ChoiceAndRequirements], list[tuple[str, int, msgspec.Raw]]]
)
_requirements_decoder = msgspec.json.Decoder(list[str] | None)
_release_decoder = msgspec.json.Decoder(list[tuple[str, str, msgspec.Raw]])
_shared_choice_decoder = msgspec.json.Decoder(tuple[int, _Choice])
"""Like the decoders above, it skips values of these records that `version_yanks` does not need."""


@dataclass(frozen=True, slots=True)
class _StoredRecords:
    """Stored records of a project and the files in them: all of its `count` files, or the files of some releases."""

    records: Records
    files: Files
    count: int


def change(db: Database | None, project: str, rows: list[Row]) -> tuple[Records, Records]:
    """Return the project's records that `rows` change, before and after. `project` is the normalized name."""
    updates = _updates(rows)
    if db is None:
        files = _changed({}, updates)
        requiring = dependent_values(group_versions(files.values()))
        return {}, _records(project, files) | {
            key("r", required, project): value for required, value in requiring.items()
        }
    stored = _read(db, project, updates)
    files = _changed(stored.files, updates)
    count = stored.count + len(files) - len(stored.files)
    is_part = stored.count > FEW_FILES and count > FEW_FILES
    if is_part:
        before, after = _change_some(db, project, updates, stored, files, count)
    else:
        if stored.count > FEW_FILES:
            stored = _read_all(db, project)
            files = _changed(stored.files, updates)
        before, after = stored.records, _records(project, files)
    touched = {state[filename].version for filename in updates for state in (stored.files, files) if filename in state}
    groups = group_versions(stored.files.values())
    changed_groups = group_versions(file for file in files.values() if file.version in touched)
    changes = rank_changes(groups, changed_groups, touched)
    change_dependents(db, project, changes, None if is_part else dependent_values(groups), before, after)
    return before, after


def project_records(db: Database, project: str) -> list[tuple[bytes, bytes]]:
    """Return all records about the distributions of `project` (normalized)."""
    first = key("d", project)
    value = db.get(first, verify_checksums=True)
    if value is None:
        return []
    return [(first, value), *([] if _has_files(value) else records_of(db, prefix("d", project)))]


def project_of(record_key: bytes) -> bytes:
    """Return the project in the key of a record of distributions."""
    return record_key.split(SEPARATOR, 2)[1]


def decode_project(project: str, records: Iterable[tuple[bytes, bytes]]) -> list[dict[str, Any]]:
    """Return the distributions of `project` (normalized) in its records, by version (PEP 440) and filename."""
    start = len(prefix("d", project))
    first: Any = None
    templates: dict[str, dict[str, Any]] = {}
    releases = []
    for record_key, value in records:
        if len(record_key) < start:
            first = orjson.loads(value)
        elif record_key.startswith(SEPARATOR, start):
            templates[record_key[start + 1 :].decode()] = _template(project, orjson.loads(value)[1])
        else:
            releases.append((version_key(record_key[start:].decode()), value))
    if isinstance(first, list):
        return _decode(first[1], [_template(project, shared) for shared in first[0]])
    found = _decode((run for _, value in sorted(releases) for run in orjson.loads(value)), templates)
    if len(found) != (first or 0):
        raise LeveldbDamagedError(f"{key('d', project)!r} counts {first} files, but there are {len(found)}")
    return found


def release_values(db: Database, project: str) -> "ReleaseValues | list[dict[str, Any]]":
    """Return the undecoded releases of `project` (normalized), or its distributions if it has few files."""
    first = db.get(key("d", project), verify_checksums=True)
    if first is None or _has_files(first):
        return decode_project(project, [] if first is None else [(key("d", project), first)])
    start = prefix("d", project)
    records, size = records_of(db, start), len(start)
    after_shared = bisect_left(records, (start + _AFTER_SEPARATOR,))
    shared = {record_key[size + 1 :].decode(): value for record_key, value in records[:after_shared]}
    releases = {record_key[size:].decode(): value for record_key, value in records[after_shared:]}
    return ReleaseValues(project, releases, shared)


@dataclass(frozen=True, slots=True)
class ReleaseValues:
    """The records of a project's releases by canonical version, and the values that their files share."""

    project: str
    releases: Mapping[str, bytes]
    shared: Mapping[str, bytes]

    def decode(self, release: str) -> list[dict[str, Any]]:
        """Return the distributions of a release, by filename."""
        runs = orjson.loads(self.releases[release])
        templates = {}
        for name in {run[1] for run in runs}:
            if name not in self.shared:
                raise LeveldbDamagedError(f"{_shared_key(self.project, name)!r} is missing, but a file refers to it")
            templates[name] = _template(self.project, orjson.loads(_split_shared(self.shared[name])[1]))
        return _decode(runs, templates)


def find_version(db: Database, project: str, version: str) -> list[dict[str, Any]]:
    """Return the distributions of the versions of `project` (normalized) that equal `version`, in the same order.

    If the project has many files, only these files are read.
    """
    value = db.get(key("d", project), verify_checksums=True)
    if value is None:
        return []
    release = _release_of(as_part(version))
    if _has_files(value):
        all_shared, runs = orjson.loads(value)
        runs = [run for run in runs if _release_of(run[0]) == release]
        return _decode(runs, {run[1]: _template(project, all_shared[run[1]]) for run in runs})
    release_key = prefix("d", project) + release.encode(errors="surrogatepass")  # a surrogate is in no key
    value = db.get(release_key, verify_checksums=True)
    runs = [] if value is None else orjson.loads(value)
    templates = {
        name: _template(project, orjson.loads(_read_shared(db, project, name)[1])) for name in {run[1] for run in runs}
    }
    return _decode(runs, templates)


def version_yanks(db: Database, project: str) -> Iterator[tuple[str, bool]]:
    """Yield the versions of `project` (normalized) and their yanks; a partly yanked version comes with both values.

    Files that no installer accepts are skipped if there are others. Reads one range of keys, and decodes little of it.
    """
    files = installable_or_all(_choices(db, project), lambda file: file[1].refusals)
    yield from ((version, choice.yanked) for version, choice in files)


def _choices(db: Database, project: str) -> list[tuple[str, _Choice]]:
    """Return the versions of a project with their choice fields, once for each run of files with the same fields."""
    records = project_records(db, project)
    if len(records) == 1:
        all_shared, few_runs = _few_choices_decoder.decode(records[0][1])
        return [(version, all_shared[number]) for version, number, _ in few_runs]
    start = len(prefix("d", project))
    choices: dict[str, _Choice] = {}
    runs: list[tuple[str, str, msgspec.Raw]] = []
    for record_key, value in records[1:]:
        if record_key.startswith(SEPARATOR, start):
            choices[record_key[start + 1 :].decode()] = _shared_choice_decoder.decode(value)[1]
        else:
            runs += _release_decoder.decode(value)
    return [(version, choices[name]) for version, name, _ in runs]


def newest_requirements(db: Database, project: str) -> tuple[str, list[list[str]]] | None:
    """Return the newest version of `project` (normalized) and its files' requirements, or None if it has no files.

    These are the first two fields of `newest_release_of`.
    """
    found = newest_release_of(db, project, db.get(key("d", project), verify_checksums=True))
    return None if found is None else (found.version, found.requirements)


class NewestFiles(NamedTuple):
    """The newest release of a project, spelled as in the first of its files, and the requirements of its files.

    Equal lists of requirements are listed once. Files with unknown requirements have no list, and neither have files
    that no installer accepts, unless the project has no other files: then `is_installable` is false. `is_spelled_alike`
    is true if all files spell the version in the same way.
    """

    version: str
    requirements: list[list[str]]
    is_spelled_alike: bool
    is_installable: bool


def newest_release_of(db: Database, project: str, value: bytes | None) -> NewestFiles | None:
    """Return the `newest_release` of a project (normalized) whose first record is `value`, or None without a value.

    For a project with few files, little more than the requirements of this version is decoded.
    """
    if value is None:
        return None
    if _has_files(value):
        all_shared, runs = _few_requirements_decoder.decode(value)
        if len(runs) > 1:
            runs = list(installable_or_all(runs, lambda run: all_shared[run[1]].refusals))
            newest = newest_release([(version, all_shared[number].yanked) for version, number, _ in runs])
            runs = [run for run in runs if canonical_version(run[0]) == newest]
        numbers = dict.fromkeys([number for _, number, _ in runs])
        lists = [_requirements_decoder.decode(all_shared[number].requires_dist) for number in numbers]
        is_alike = len(runs) == 1 or len({version for version, _, _ in runs}) == 1
        return NewestFiles(runs[0][0], _different(lists), is_alike, is_installable(all_shared[runs[0][1]].refusals))
    newest = newest_release(version_yanks(db, project))
    files = installable_or_all(find_version(db, project, newest), itemgetter("refusals"))
    return NewestFiles(
        files[0]["version"],
        _different(file["requires_dist"] for file in files),
        len({file["version"] for file in files}) == 1,
        is_installable(files[0]["refusals"]),
    )


def first_project_records(db: Database) -> Iterator[tuple[bytes, bytes]]:
    """Yield each project (normalized, in UTF-8) with its first record, by name."""
    start = key("d", "")
    records = db.raw_iterator(verify_checksums=True)
    try:
        records.seek(start)
        while records.valid() and (record_key := records.key()).startswith(start):
            value = records.value()
            yield record_key[len(start) :], value
            if _has_files(value):
                records.next()
            else:
                records.seek(record_key + b"\x01")  # after the project's other records
    finally:
        records.close()


def _different(lists: Iterable[list[str] | None]) -> list[list[str]]:
    found: list[list[str]] = []
    for requirements in lists:
        if requirements is not None and requirements not in found:
            found.append(requirements)
    return found


def encoded(project: str, rows: list[Row]) -> list[tuple[bytes, bytes]]:
    """Return the records of the distributions in `rows`, which must all be live and of `project` (normalized)."""
    records = _records(project, _changed({}, _updates(rows)))
    return [record for record in sorted(records.items()) if record[0].startswith(b"d")]


def _updates(rows: Iterable[Row]) -> dict[str, File | None]:
    """Return the files in the rows by filename, with None for deleted files.

    If a file has several rows, the last row counts.
    """
    updates: dict[str, File | None] = {}
    known: dict[tuple[object, ...], bytes] = {}
    for row in rows:
        filename = as_part(row["filename"])
        if row["tombstone"]:
            updates[filename] = None
            continue
        lists = id(row["requires_dist"]), id(row["provides_extra"])  # rows with equal lists usually share the object
        of_file = row["requires_python"], row["yanked"], row["yanked_reason"], row["outcome"]
        rare = _rare_fields(row)
        same = (*lists, row["project"], *of_file, *((field, tuple(value)) for field, value in rare.items()))
        shared = known.get(same)
        if shared is None:
            shared = known[same] = orjson.dumps({field: row[field] for field in SHARED_FIELDS} | rare)
        platform, abi, build = _wheel_tags(filename)
        stated = row["kind"], row["sha256"], row["size"], row["uploaded_at"]
        own = (filename, *stated, platform, abi, build, row.get("first_seen_at"))
        updates[filename] = File(as_part(row["version"]), shared, own)
    return updates


def _rare_fields(row: Row) -> dict[str, Any]:
    """Return the values that only few files have."""
    rare = {"refusals": row["refusals"]} if row.get("refusals") else {}
    if row.get("installed_metadata") and row["kind"] == DistributionKind.SDIST:  # all installers resolve wheels alike
        rare["installed_metadata"] = row["installed_metadata"]
    return rare


def _changed(files: Files, updates: Mapping[str, File | None]) -> Files:
    """Return the files after updates of some of them."""
    return {filename: file for filename, file in {**files, **updates}.items() if file is not None}


def _wheel_tags(filename: str) -> tuple[str, str, str]:
    """Return platform, ABI and build at the end of a wheel's name, or empty texts for other files and invalid names."""
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


def _change_some(
    db: Database, project: str, updates: Mapping[str, File | None], stored: _StoredRecords, files: Files, count: int
) -> tuple[Records, Records]:
    """Return the changed records, before and after, of a project that has many files and will have `count`.

    `stored` and `files` are the affected releases, before and after.
    """
    before = stored.records.copy()
    moved = {filename: file for filename, file in updates.items() if file is not None}
    after = _count_record(project, count) | _release_records(project, files) | _place_records(project, moved)
    _change_shared(db, project, stored.files, files, before, after)
    return before, after


def _records(project: str, files: Files) -> Records:
    """Return all records for the complete files of a project."""
    if not files:
        return {}
    if len(files) <= FEW_FILES:
        numbers: dict[bytes, int] = {}
        runs = _runs(files.values(), lambda shared: numbers.setdefault(shared, len(numbers)))
        return {key("d", project): orjson.dumps(([orjson.Fragment(shared) for shared in numbers], runs))}
    uses = Counter(file.shared for file in files.values())
    return (
        _count_record(project, len(files))
        | {_shared_key(project, _name_of(shared)): _shared_value(count, shared) for shared, count in uses.items()}
        | _release_records(project, files)
        | _place_records(project, files)
    )


def _count_record(project: str, count: int) -> Records:
    return {key("d", project): b"%d" % count}


def _release_records(project: str, files: Files) -> Records:
    """Return the records of releases, all of whose files must be given."""
    releases: defaultdict[str, list[File]] = defaultdict(list)
    for file in files.values():
        releases[_release_of(file.version)].append(file)
    return {key("d", project, release): orjson.dumps(_runs(same, _name_of)) for release, same in releases.items()}


def _place_records(project: str, files: Files) -> Records:
    """Return the records that name each file's release."""
    return {key("f", project, filename): _release_of(file.version).encode() for filename, file in files.items()}


def _release_of(version: str) -> str:
    return as_part(canonical_version(version))


def _runs(files: Iterable[File], name_of: Callable[[bytes], object]) -> list[tuple[str, object, list[Sequence[Any]]]]:
    """Return files sorted by version (PEP 440) and filename, as (version, name of the shared values, own values)."""
    ordered = sorted([(version_key(file.version), file.own[0], file) for file in files])
    together = groupby([file for _, _, file in ordered], key=itemgetter(0, 1))
    return [(version, name_of(shared), [file.own for file in run]) for (version, shared), run in together]


def _files_in(runs: Iterable[Any], contents: Mapping[Any, bytes]) -> Files:
    """Return the files in the results of `_runs`. `contents` maps names to shared values."""
    return {own[0]: File(version, contents[name], own) for version, name, owns in runs for own in owns}


def _decode(runs: Iterable[Any], templates: Any) -> list[dict[str, Any]]:
    """Return the distributions of runs. `templates` maps names to shared values."""
    found = []
    for version, name, owns in runs:
        try:
            template = templates[name]
        except LookupError:
            raise LeveldbDamagedError(f"files of {version} share {name!r}, which is missing") from None
        template["version"] = version
        for filename, kind, sha256, size, uploaded_at, platform, abi, build, first_seen_at in owns:
            distribution = template.copy()  # half the time of creating it from all its values
            distribution["filename"] = filename
            distribution["kind"] = kind
            distribution["sha256"] = sha256
            distribution["size"] = size
            distribution["uploaded_at"] = uploaded_at
            distribution["platform"] = platform
            distribution["abi"] = abi
            distribution["build"] = build
            distribution["first_seen_at"] = first_seen_at
            found.append(distribution)
    return found


def _template(project: str, shared: dict[str, Any]) -> dict[str, Any]:
    """Return a distribution with its shared values; the other fields are empty."""
    template = _TEMPLATE | shared
    template["normalized"] = project
    return template


def _has_files(value: bytes) -> bool:
    """Check whether a project's first record has its files, and not only their number."""
    return value.startswith(b"[")


def _read(db: Database, project: str, updates: Mapping[str, File | None]) -> _StoredRecords:
    """Read the stored files of the project: all if there are few, otherwise the releases that `updates` affects."""
    first = key("d", project)
    value = db.get(first, verify_checksums=True)
    if value is None:
        return _StoredRecords({}, {}, 0)
    if _has_files(value):
        all_shared, all_runs = _few_decoder.decode(value)
        files = _files_in(all_runs, dict(enumerate(map(bytes, all_shared))))
        return _StoredRecords({first: value}, files, len(files))
    records = {first: value}
    releases = {_release_of(file.version) for file in updates.values() if file is not None}
    places = {}
    for filename in updates:
        place_key = key("f", project, filename)
        place = db.get(place_key, verify_checksums=True)
        if place is not None:
            records[place_key] = place
            places[filename] = place_key
            releases.add(place.decode())
    runs = []
    for release in releases:
        release_key = key("d", project, release)
        found = db.get(release_key, verify_checksums=True)
        if found is not None:
            records[release_key] = found
            runs += orjson.loads(found)
    files = _files_in(runs, {name: _read_shared(db, project, name)[1] for name in {run[1] for run in runs}})
    for filename, place_key in places.items():
        if filename not in files:
            raise LeveldbDamagedError(f"{place_key!r} refers to a release that has no such file")
    return _StoredRecords(records, files, int(value))


def _read_all(db: Database, project: str) -> _StoredRecords:
    """Read all records of a project with many files."""
    records = dict(project_records(db, project)) | dict(records_of(db, prefix("f", project)))
    start = prefix("d", project)
    runs, contents = [], {}
    for record_key, value in records.items():
        if record_key.startswith(start + SEPARATOR):
            contents[record_key[len(start) + 1 :].decode()] = _split_shared(value)[1]
        elif record_key.startswith(start):
            runs += orjson.loads(value)
    files = _files_in(runs, contents)
    return _StoredRecords(records, files, len(files))


@lru_cache(maxsize=1_024)
def _name_of(shared: bytes) -> str:
    return hashlib.sha256(shared).hexdigest()[:_HASH_DIGITS].upper()


def _shared_key(project: str, name: str) -> bytes:
    return key("d", project, "", name)


def _shared_value(uses: int, shared: bytes) -> bytes:
    return b"[%d,%b]" % (uses, shared)


def _split_shared(value: bytes) -> tuple[int, bytes]:
    uses, _, shared = value[1:-1].partition(b",")
    return int(uses), shared


def _read_shared(db: Database, project: str, name: str) -> tuple[int, bytes]:
    """Return the number of files that share the values with this name, and the values."""
    value = db.get(_shared_key(project, name), verify_checksums=True)
    if value is None:
        raise LeveldbDamagedError(f"{_shared_key(project, name)!r} is missing, but a file refers to it")
    return _split_shared(value)


def _change_shared(db: Database, project: str, was: Files, will_be: Files, before: Records, after: Records) -> None:
    """Add the records of shared values whose number of files changes, before and after."""
    changes = Counter(file.shared for file in will_be.values())
    changes.subtract(Counter(file.shared for file in was.values()))
    for shared, change in changes.items():
        if change:
            record_key = _shared_key(project, _name_of(shared))
            value = db.get(record_key, verify_checksums=True)
            uses = 0 if value is None else _split_shared(value)[0]
            if uses + change < 0:
                raise LeveldbDamagedError(f"{record_key!r} does not count the files that share it")
            if value is not None:
                before[record_key] = value
            if uses + change:
                after[record_key] = _shared_value(uses + change, shared)
