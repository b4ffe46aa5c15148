"""The dataset `depgraph`: what each distribution requires, and who requires a project. Its keys are in docs/formats.md.

    d PROJECT VERSION KIND REQUIRES_PYTHON PLATFORM ABI BUILD FILENAME    an object: requirements and more
    f PROJECT FILENAME                                                    the key above, so that it can be removed
    r REQUIRED PROJECT                                                    the versions that require it

What a version requires follows from its files alone. So of a change only the versions that it touches are read, and
in the records that tell who requires what, only their place changes.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache

import orjson
import plyvel
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from pypi_assets.leveldbs.records import LeveldbDamagedError, Records, Row, as_part, key, prefix, scan
from pypi_assets.leveldbs.requirements import CONDITIONS, required_projects
from pypi_assets.leveldbs.version_order import version_key

FORMAT = 2
COLUMNS = (
    *("project", "version", "filename", "tombstone", "kind", "sha256", "size", "uploaded_at", "requires_python"),
    *("yanked", "yanked_reason", "outcome", "requires_dist", "provides_extra"),
)
"""Those of the dumps that `change` looks at."""


def change(db: plyvel.DB | None, project: str, rows: list[Row]) -> tuple[Records, Records]:
    """The project's records that `rows` change, before and after; `project` is the normalized name."""
    before: Records = {}
    after: Records = {}
    latest = {row["filename"]: row for row in rows}.values()
    for row in latest:
        file_key = key("f", project, row["filename"])
        old_key = db.get(file_key, verify_checksums=True) if db else None
        if db and old_key is not None:
            old_value = db.get(old_key, verify_checksums=True)
            if old_value is None:
                raise LeveldbDamagedError(f"{file_key!r} points to a record that is not there")
            before |= {file_key: old_key, old_key: old_value}
        if not row["tombstone"]:
            new_key = _distribution_key(project, row)
            after[file_key], after[new_key] = new_key, _value(row)
    if db is None:
        files = ((as_part(row["version"]), row["requires_dist"]) for row in latest if not row["tombstone"])
        after |= _requiring(project, _grouped(files))
    else:
        _change_requiring(db, project, before, after)
    return before, after


def project_prefix(project: str) -> bytes:
    """What the keys of all distributions of `project` (normalized) begin with."""
    return prefix("d", project)


def dependents_prefix(project: str) -> bytes:
    """What the keys of all that require `project` (normalized) begin with; their own normalized name follows."""
    return prefix("r", project)


def decode_distribution(record_key: bytes, value: bytes) -> dict[str, object]:
    """One distribution: `filename`, `version`, `kind`, and what its value says."""
    _, project, version, kind, _, platform, abi, build, filename = record_key.decode().split("\0")
    return {
        "filename": filename,
        "version": version,
        "normalized": project,
        "kind": kind,
        **orjson.loads(value),
        "platform": platform,
        "abi": abi,
        "build": build,
    }


def decode_dependent(value: bytes) -> tuple[list[str], list[str], list[str]]:
    """The versions that require it always, only by a marker, and only with an extra, in PEP 440's order."""
    found = orjson.loads(value)
    always, marker, extra = (found.get(condition, []) for condition in CONDITIONS)
    return always, marker, extra


def encoded(row: Row) -> tuple[bytes, bytes]:
    """The record of the distribution that a row of a dump is about."""
    return _distribution_key(row["normalized"], row), _value(row)


def version_of(record_key: bytes) -> str:
    """The version that a distribution's key names."""
    return record_key.decode().split("\0", 3)[2]


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


def _value(row: Row) -> bytes:
    return orjson.dumps(
        {  # spelled out, since it is made of every row and a loop takes twice as long
            "project": row["project"],
            "sha256": row["sha256"],
            "size": row["size"],
            "uploaded_at": row["uploaded_at"],
            "requires_python": row["requires_python"],
            "requires_dist": row["requires_dist"],
            "provides_extra": row["provides_extra"],
            "yanked": row["yanked"],
            "yanked_reason": row["yanked_reason"],
            "outcome": row["outcome"],
        }
    )


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


def _change_requiring(db: plyvel.DB, project: str, before: Records, after: Records) -> None:
    """Adds to the records of a project's files, before and after, those that tell what the project requires."""
    changed = {version_of(record_key) for record_key in (*before, *after) if record_key.startswith(b"d")}
    stored = {one: value for version in changed for one, value in scan(db, prefix("d", project, version))}
    kept = {one: value for one, value in stored.items() if one not in before}
    added = {one: value for one, value in after.items() if one.startswith(b"d")}
    was, will_be = _ranks(stored), _ranks(kept | added)
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


def _ranks(distributions: Mapping[bytes, bytes]) -> dict[tuple[str, str], int]:
    """What the distributions require, and their version, with the rank of the condition."""
    files = ((version_of(one), orjson.loads(value)["requires_dist"]) for one, value in distributions.items())
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
