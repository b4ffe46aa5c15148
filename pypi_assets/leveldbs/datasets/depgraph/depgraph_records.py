"""The dataset `depgraph`: what each distribution requires, and who requires a project. Its keys are in docs/formats.md.

    d PROJECT                   its files, or how many they are, where they are many
    d PROJECT RELEASE           then the files of a release
    d PROJECT (empty) SHARED    and what files of several releases have in common
    f PROJECT FILENAME          and the release that a file is in
    r REQUIRED PROJECT          the versions that require it
    t REQUIRED                  how many projects do: builds keep it, as of no project alone

Most projects have few files: they are read as one record, and rewritten when one of them changes. Of a project with
many files only the releases are read and written that a change touches. A release is named by its canonical version: so
one record has all that a question for a version is about. What a version requires follows from its files alone, so in
the records of who requires what, only its place changes.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
import orjson
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from pypi_assets.distributions.installability import installable_or_all
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
from pypi_assets.leveldbs.format.version_order import canonical_version, newest_release, version_key

FORMAT = 7
COLUMNS = (
    *("project", "version", "filename", "tombstone", "kind", "sha256", "size", "uploaded_at", "requires_python"),
    *("yanked", "yanked_reason", "outcome", "requires_dist", "provides_extra"),
    *("refusals", "first_seen_at", "installed_metadata"),
)
"""Those of the dumps that `change` looks at."""
OWN_FIELDS = ("filename", "kind", "sha256", "size", "uploaded_at", "platform", "abi", "build", "first_seen_at")
"""What a file has of its own."""
SHARED_FIELDS = ("project", "requires_python", "requires_dist", "provides_extra", "yanked", "yanked_reason", "outcome")
"""What many files of a project have in common. Files that an installer does not take have `refusals` too, and sdists
that pip and uv resolve by different metadata have `installed_metadata`."""
FEW_FILES = 20
"""At most this many files are one record."""
_HASH_DIGITS = 32
_TEMPLATE: dict[str, Any] = dict.fromkeys(
    (
        *("filename", "version", "normalized", "kind", "project", "sha256", "size", "uploaded_at", "requires_python"),
        *("requires_dist", "provides_extra", "yanked", "yanked_reason", "outcome", "refusals", "platform", "abi"),
        *("build", "first_seen_at", "installed_metadata"),
    )
)
"""What is answered of a distribution, with places for all of it."""


_few_decoder = msgspec.json.Decoder(tuple[list[msgspec.Raw], list[tuple[str, int, list[list[Any]]]]])
"""Of the one record of a project with few files."""


class _Choice(msgspec.Struct):
    """The part of the shared JSON of files by which installers choose: yanked or not, and who does not take them."""

    yanked: bool
    refusals: tuple[str, ...] = ()


class _ChoiceAndRequirements(_Choice, kw_only=True):
    """The same part, and the JSON of what they require."""

    requires_dist: msgspec.Raw


_few_choices_decoder = msgspec.json.Decoder(tuple[list[_Choice], list[tuple[str, int, msgspec.Raw]]])
_few_requirements_decoder = msgspec.json.Decoder(
    tuple[list[_ChoiceAndRequirements], list[tuple[str, int, msgspec.Raw]]]
)
_requirements_decoder = msgspec.json.Decoder(list[str] | None)
_release_decoder = msgspec.json.Decoder(list[tuple[str, str, msgspec.Raw]])
_shared_choice_decoder = msgspec.json.Decoder(tuple[int, _Choice])
"""The same records without what `version_yanks` does not need."""


@dataclass(frozen=True, slots=True)
class _StoredRecords:
    """Records of a project and the files in them: all of its `count` files, or those of some releases."""

    records: Records
    files: Files
    count: int


def change(db: Database | None, project: str, rows: list[Row]) -> tuple[Records, Records]:
    """The project's records that `rows` change, before and after; `project` is the normalized name."""
    updates = _updates(rows)
    if db is None:
        files = _changed({}, updates)
        requiring = dependent_values(group_versions(files.values()))
        return {}, _records(project, files) | {key("r", one, project): value for one, value in requiring.items()}
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
    touched = {some[filename].version for filename in updates for some in (stored.files, files) if filename in some}
    groups = group_versions(stored.files.values())
    changed_groups = group_versions(file for file in files.values() if file.version in touched)
    changes = rank_changes(groups, changed_groups, touched)
    change_dependents(db, project, changes, None if is_part else dependent_values(groups), before, after)
    return before, after


def project_records(db: Database, project: str) -> list[tuple[bytes, bytes]]:
    """All that is kept of the distributions of `project` (normalized)."""
    first = key("d", project)
    value = db.get(first, verify_checksums=True)
    if value is None:
        return []
    return [(first, value), *([] if _has_files(value) else records_of(db, prefix("d", project)))]


def project_of(record_key: bytes) -> bytes:
    """The project that the key of a record of distributions names."""
    return record_key.split(SEPARATOR, 2)[1]


def decode_project(project: str, records: Iterable[tuple[bytes, bytes]]) -> list[dict[str, Any]]:
    """The distributions of `project` (normalized) in its records, by version (PEP 440) and filename."""
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
        raise LeveldbDamagedError(f"{key('d', project)!r} counts {first} files, and there are {len(found)}")
    return found


def release_values(db: Database, project: str) -> "ReleaseValues | list[dict[str, Any]]":
    """The releases of `project` (normalized), not yet decoded; where it has few files, its distributions."""
    records = project_records(db, project)
    if len(records) <= 1:
        return decode_project(project, records)
    start = len(prefix("d", project))
    values, shared = {}, {}
    for record_key, value in records[1:]:
        if record_key.startswith(SEPARATOR, start):
            shared[record_key[start + 1 :].decode()] = value
        else:
            values[record_key[start:].decode()] = value
    return ReleaseValues(project, values, shared)


@dataclass(frozen=True, slots=True)
class ReleaseValues:
    """The records of the releases of a project, by canonical version, and what their files share."""

    project: str
    releases: Mapping[str, bytes]
    shared: Mapping[str, bytes]

    def decode(self, release: str) -> list[dict[str, Any]]:
        """The distributions of a release, by filename."""
        runs = orjson.loads(self.releases[release])
        templates = {}
        for name in {run[1] for run in runs}:
            if name not in self.shared:
                raise LeveldbDamagedError(f"{_shared_key(self.project, name)!r} is not there, and a file points to it")
            templates[name] = _template(self.project, orjson.loads(_split_shared(self.shared[name])[1]))
        return _decode(runs, templates)


def find_version(db: Database, project: str, version: str) -> list[dict[str, Any]]:
    """The distributions of those versions of `project` (normalized) that are canonically `version`, in the same order.

    Of a project with many files no other ones are read.
    """
    value = db.get(key("d", project), verify_checksums=True)
    if value is None:
        return []
    release = _release_of(as_part(version))
    if _has_files(value):
        all_shared, runs = orjson.loads(value)
        runs = [run for run in runs if _release_of(run[0]) == release]
        return _decode(runs, {run[1]: _template(project, all_shared[run[1]]) for run in runs})
    release_key = prefix("d", project) + release.encode(errors="surrogatepass")  # which no key has
    value = db.get(release_key, verify_checksums=True)
    runs = [] if value is None else orjson.loads(value)
    templates = {
        name: _template(project, orjson.loads(_read_shared(db, project, name)[1])) for name in {run[1] for run in runs}
    }
    return _decode(runs, templates)


def version_yanks(db: Database, project: str) -> Iterator[tuple[str, bool]]:
    """Yield the versions of `project` (normalized), and whether files of each are yanked; both if only some are.

    Files that no installer takes are skipped if there are others. Reads one range, and decodes little of it.
    """
    files = installable_or_all(_choices(db, project), lambda file: file[1].refusals)
    yield from ((version, choice.yanked) for version, choice in files)


def _choices(db: Database, project: str) -> list[tuple[str, _Choice]]:
    """Return the versions of a project, once for each run of files that share what installers choose by."""
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
    """Return the newest version of `project` (normalized), and what its files require; None without files.

    The version is the `newest_release`, as the first of its files spells it. Each list of requirements comes once.
    Files whose requirements are unknown have no list, and neither have files that no installer takes.
    Of a project with few files, which is one record, little more than the requirements of this version is decoded.
    """
    value = db.get(key("d", project), verify_checksums=True)
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
        return runs[0][0], _different(lists)
    newest = newest_release(version_yanks(db, project))
    files = installable_or_all(find_version(db, project, newest), itemgetter("refusals"))
    return files[0]["version"], _different(file["requires_dist"] for file in files)


def _different(lists: Iterable[list[str] | None]) -> list[list[str]]:
    found: list[list[str]] = []
    for one in lists:
        if one is not None and one not in found:
            found.append(one)
    return found


def encoded(project: str, rows: list[Row]) -> list[tuple[bytes, bytes]]:
    """The records of the distributions that `rows` of dumps are about, all of `project` (normalized) and live."""
    records = _records(project, _changed({}, _updates(rows)))
    return [record for record in sorted(records.items()) if record[0].startswith(b"d")]


def _updates(rows: Iterable[Row]) -> dict[str, File | None]:
    """The files in the rows, by filename; None for those that are gone. Of several rows the last one counts."""
    updates: dict[str, File | None] = {}
    known: dict[tuple[object, ...], bytes] = {}
    for row in rows:
        filename = as_part(row["filename"])
        if row["tombstone"]:
            updates[filename] = None
            continue
        lists = id(row["requires_dist"]), id(row["provides_extra"])  # rows that have the same mostly have one object
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
    """Return what few files have."""
    rare = {"refusals": row["refusals"]} if row.get("refusals") else {}
    if row.get("installed_metadata") and row["kind"] == DistributionKind.SDIST:  # all installers resolve wheels alike
        rare["installed_metadata"] = row["installed_metadata"]
    return rare


def _changed(files: Files, updates: Mapping[str, File | None]) -> Files:
    """The files after these updates of some."""
    return {filename: file for filename, file in {**files, **updates}.items() if file is not None}


def _wheel_tags(filename: str) -> tuple[str, str, str]:
    """Platform, ABI and build at the end of a wheel's name; empty for other files, and for a name without them."""
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
    """The records that `updates` changes, before and after, of a project that has many files and is to have `count`.

    `stored` and `files` are the releases that it touches, before and after.
    """
    before = stored.records.copy()
    moved = {filename: file for filename, file in updates.items() if file is not None}
    after = _count_record(project, count) | _release_records(project, files) | _place_records(project, moved)
    _change_shared(db, project, stored.files, files, before, after)
    return before, after


def _records(project: str, files: Files) -> Records:
    """All records of the files of a project, which are all that it has."""
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
    """The records of releases, of which all files are given."""
    releases: defaultdict[str, list[File]] = defaultdict(list)
    for file in files.values():
        releases[_release_of(file.version)].append(file)
    return {key("d", project, release): orjson.dumps(_runs(same, _name_of)) for release, same in releases.items()}


def _place_records(project: str, files: Files) -> Records:
    """The records of the release of each file."""
    return {key("f", project, filename): _release_of(file.version).encode() for filename, file in files.items()}


def _release_of(version: str) -> str:
    return as_part(canonical_version(version))


def _runs(files: Iterable[File], name_of: Callable[[bytes], object]) -> list[tuple[str, object, list[Sequence[Any]]]]:
    """Files by version (PEP 440) and filename, as (version, name of what they share, what each has of its own)."""
    ordered = sorted([(version_key(file.version), file.own[0], file) for file in files])
    together = groupby([file for _, _, file in ordered], key=itemgetter(0, 1))
    return [(version, name_of(shared), [file.own for file in run]) for (version, shared), run in together]


def _files_in(runs: Iterable[Any], contents: Mapping[Any, bytes]) -> Files:
    """The files that `_runs` made runs of. `contents` are what they share, by name."""
    return {own[0]: File(version, contents[name], own) for version, name, owns in runs for own in owns}


def _decode(runs: Iterable[Any], templates: Any) -> list[dict[str, Any]]:
    """The distributions of runs. `templates` are what they share, by name."""
    found = []
    for version, name, owns in runs:
        try:
            template = templates[name]
        except LookupError:
            raise LeveldbDamagedError(f"files of {version} share {name!r}, which is not there") from None
        template["version"] = version
        for filename, kind, sha256, size, uploaded_at, platform, abi, build, first_seen_at in owns:
            distribution = template.copy()  # which takes half as long as a new one of all that is in it
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
    """A distribution with the fields that it shares, and places for the rest."""
    template = _TEMPLATE | shared
    template["normalized"] = project
    return template


def _has_files(value: bytes) -> bool:
    """Whether a project's first record has all files in it, and not only their number."""
    return value.startswith(b"[")


def _read(db: Database, project: str, updates: Mapping[str, File | None]) -> _StoredRecords:
    """What is there of the project: all where it has few files, else the releases that `updates` touches."""
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
            raise LeveldbDamagedError(f"{place_key!r} points to a release that has no such file")
    return _StoredRecords(records, files, int(value))


def _read_all(db: Database, project: str) -> _StoredRecords:
    """All that is there of a project with many files."""
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
    """How many files share what has this name, and what that is."""
    value = db.get(_shared_key(project, name), verify_checksums=True)
    if value is None:
        raise LeveldbDamagedError(f"{_shared_key(project, name)!r} is not there, and a file points to it")
    return _split_shared(value)


def _change_shared(db: Database, project: str, was: Files, will_be: Files, before: Records, after: Records) -> None:
    """Adds the records, before and after, of what more files share than before, or fewer."""
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
