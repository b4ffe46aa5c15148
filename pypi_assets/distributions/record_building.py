"""Puts a record together from what its parts say, and writes it as JSON values."""

import hashlib
from collections.abc import Iterable

import msgspec
from packaging.utils import canonicalize_name, canonicalize_version

from pypi_assets.distributions.extract import Extract, printable
from pypi_assets.distributions.metadata import CoreMetadata, requirement_notes, unique
from pypi_assets.distributions.record import DistributionRecord, FilenameParts

MAX_NOTES = 50
_encoder = msgspec.msgpack.Encoder()


def build_record(
    parts: FilenameParts,
    project: str | None,
    extract: Extract,
    metadata: CoreMetadata,
    *,
    requires_dist: tuple[str, ...] | None = None,
    provides_extra: tuple[str, ...] = (),
    entry_points: dict[str, dict[str, str]] | None = None,
    modules: tuple[str, ...] | None = None,
    modules_by: str | None = None,
    requires_by: str | None = None,
    stubs: tuple[str, ...] = (),
    left_out: int = 0,
    declared: Iterable[str] = (),
    notes: Iterable[str] = (),
) -> DistributionRecord:
    """The record; where the metadata lack name or version, the filename's count, and `project` where it has none."""
    all_notes = [*extract.notes, *metadata.notes, *notes]
    if not metadata.is_empty:
        all_notes += _name_notes(parts, metadata)
    all_notes += requirement_notes(requires_dist or (), metadata.requires_python)
    if len(all_notes) > MAX_NOTES:
        all_notes = [*all_notes[:MAX_NOTES], f"{len(all_notes) - MAX_NOTES} more notes are left out"]
    return DistributionRecord(
        filename=parts.filename,
        kind=parts.kind,
        project=metadata.name or parts.project or project,
        version=metadata.version or parts.version,
        metadata_version=metadata.metadata_version,
        summary=metadata.summary,
        requires_python=metadata.requires_python,
        requires_dist=requires_dist,
        provides_extra=provides_extra,
        entry_points=entry_points or {},
        modules=modules,
        modules_by=None if modules is None else modules_by,
        requires_by=None if requires_dist is None else requires_by,
        stubs=stubs,
        left_out=left_out,
        declared=tuple(sorted(set(declared))),
        notes=tuple(printable(note) for note in unique(all_notes)),
        error=extract.error,
    )


def _name_notes(parts: FilenameParts, metadata: CoreMetadata) -> list[str]:
    notes = []
    if metadata.name is None:
        notes.append("the metadata have no Name: the filename's counts")
    elif parts.project is not None and canonicalize_name(metadata.name) != canonicalize_name(parts.project):
        notes.append(f"the metadata are of another project than the filename: {metadata.name}")
    if metadata.version is None:
        notes.append("the metadata have no Version: the filename's counts")
    elif parts.version is not None and not same_version(metadata.version, parts.version):
        notes.append(f"the metadata are of another version than the filename: {metadata.version}")
    return notes


def same_version(one: str, other: str) -> bool:
    """Whether both write the same version; filenames may have `_` for what a version has as `-` or `+`."""
    return one == other or _comparable_version(one) == _comparable_version(other)


def _comparable_version(version: str) -> str:
    try:
        return canonicalize_version(version.replace("_", "-") if "+" not in version else version)
    except ValueError:  # a number with thousands of digits
        return version


def record_digest(record: DistributionRecord) -> str:
    """A hash of all that `record` says, in hex: to see in a moment whether another one says the same."""
    return hashlib.blake2b(_encoder.encode(record), digest_size=16).hexdigest()


def record_to_json(record: DistributionRecord, *, yanked: bool = False) -> dict[str, object]:
    """The record as JSON values, in the column names of the data dumps. `yanked` is the index's to say."""
    return {
        "filename": record.filename,
        "project": record.project,
        "version": record.version,
        "kind": record.kind.value,
        "sha256": record.sha256,
        "size": record.size,
        "yanked": yanked,
        "requires_python": record.requires_python,
        "requires_dist": None if record.requires_dist is None else list(record.requires_dist),
        "provides_extra": list(record.provides_extra),
        "entry_points": record.entry_points,
        "modules": None if record.modules is None else list(record.modules),
        "modules_by": record.modules_by,
        "requires_by": record.requires_by,
        "stubs": list(record.stubs),
        "left_out": record.left_out,
        "declared": list(record.declared),
        "notes": list(record.notes),
        "error": None if record.error is None else {"kind": record.error.kind.value, "text": record.error.text},
    }
