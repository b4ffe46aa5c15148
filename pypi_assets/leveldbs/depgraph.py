"""The dataset `depgraph`: what each distribution of a project and version requires. Its keys are in docs/formats.md.

d PROJECT VERSION KIND REQUIRES_PYTHON PLATFORM ABI BUILD FILENAME    an object: requirements and more
f PROJECT FILENAME                                                    the key above, so that it can be removed
"""

import orjson
import plyvel
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from pypi_assets.leveldbs.records import LeveldbDamagedError, Records, Row, key, prefix

FORMAT = 1
_COPIED = (
    "sha256",
    "size",
    "uploaded_at",
    "requires_python",
    "requires_dist",
    "provides_extra",
    "yanked",
    "yanked_reason",
    "outcome",
)


def change(db: plyvel.DB | None, project: str, rows: list[Row]) -> tuple[Records, Records]:
    """The records of the files that `rows` are about, before and after; `project` is the normalized name."""
    before: Records = {}
    after: Records = {}
    for row in {row["filename"]: row for row in rows}.values():
        file_key = key("f", project, row["filename"])
        old_key = db.get(file_key, verify_checksums=True) if db else None
        if db and old_key is not None:
            old_value = db.get(old_key, verify_checksums=True)
            if old_value is None:
                raise LeveldbDamagedError(f"{file_key!r} points to a record that is not there")
            before |= {file_key: old_key, old_key: old_value}
        if not row["tombstone"]:
            new_key = _distribution_key(project, row)
            after |= {file_key: new_key, new_key: _value(row)}
    return before, after


def project_prefix(project: str) -> bytes:
    """What the keys of all distributions of `project` (normalized) begin with."""
    return prefix("d", project)


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


def told(row: Row) -> dict[str, object]:
    """What is told of a row of a dump once it is here."""
    return decode_distribution(_distribution_key(row["normalized"], row), _value(row))


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
    """Platform, ABI and build of a wheel; empty for what is none, or is not named like one."""
    try:
        _, _, build, tags = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return "", "", ""
    platforms, abis = {tag.platform for tag in tags}, {tag.abi for tag in tags}
    return ".".join(sorted(platforms)), ".".join(sorted(abis)), "".join(str(part) for part in build)


def _value(row: Row) -> bytes:
    return orjson.dumps({"project": row["project"]} | {column: row[column] for column in _COPIED})
