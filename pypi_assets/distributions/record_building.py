"""Build a record from its parts, and convert it to JSON values."""

import hashlib
from collections.abc import Collection, Iterable

import msgspec

from pypi_assets.characters import normalized_name, printable
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.installer_checks import written_refusals
from pypi_assets.distributions.members import Folder
from pypi_assets.distributions.metadata import CoreMetadata, requirement_notes, unique
from pypi_assets.distributions.project_facts import bounded
from pypi_assets.distributions.record import (
    AMBIGUOUS,
    START_UP_CODE,
    START_UP_ENDS,
    DistributionRecord,
    ErrorKind,
    FilenameParts,
    ModulesGrade,
)
from pypi_assets.distributions.requirements import same_version
from pypi_assets.distributions.served_metadata import Resolved

MAX_NOTES = 50
_OF_METADATA = frozenset({ErrorKind.NO_METADATA, ErrorKind.BAD_METADATA})
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
    modules_grade: ModulesGrade = ModulesGrade.EXACT,
    requires_by: str | None = None,
    stubs: tuple[str, ...] = (),
    left_out: int = 0,
    declared: Iterable[str] = (),
    at_root: Iterable[Folder] = (),
    notes: Iterable[str] = (),
    resolved: Resolved | None = None,
) -> DistributionRecord:
    """Return the record. If the metadata lack a name or version, the filename's count, and then `project` as the name.

    `resolved` are the metadata that installers resolve by, if they can differ from `metadata`. `at_root` are the
    folders whose files are installed directly into site-packages. If the extract has an error, files may be missing:
    then an empty set of entry points means unknown, and modules are guessed.
    """
    start_up_paths, start_up_notes = _start_up_paths(at_root)
    resolved = resolved or Resolved(metadata)
    all_notes = (*extract.notes, *metadata.notes, *resolved.notes, *notes, *start_up_notes)
    has_parts = extract.error is None or extract.error.kind in _OF_METADATA
    return DistributionRecord(
        filename=parts.filename,
        kind=parts.kind,
        project=metadata.name or parts.project or project,
        version=metadata.version or parts.version,
        metadata_version=metadata.metadata_version,
        summary=metadata.summary,
        requires_python=resolved.metadata.requires_python,
        requires_dist=requires_dist,
        provides_extra=provides_extra,
        entry_points=None if extract.error and not entry_points else entry_points,
        modules=modules,
        modules_by=None if modules is None else modules_by,
        modules_grade=None if modules is None else ModulesGrade.GUESSED if extract.error else modules_grade,
        requires_by=None if requires_dist is None else requires_by,
        stubs=stubs,
        left_out=left_out,
        declared=tuple(sorted(set(declared))),
        license_expression=metadata.license_expression,
        license=metadata.license,
        license_classifiers=metadata.license_classifiers,
        project_urls=metadata.project_urls,
        import_names=metadata.import_names,
        start_up_paths=start_up_paths,
        variant=parts.variant,
        refusals=written_refusals(resolved.refusals) if has_parts else (),
        installed_metadata=resolved.installed,
        notes=_limited_notes((*all_notes, *_metadata_notes(parts, metadata, requires_dist or ()))),
        error=extract.error,
    )


def _start_up_paths(at_root: Iterable[Folder]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the sorted start-up files in the folders of `at_root`, and a note if some are skipped."""
    candidates = [folder for folder in at_root if ".pth/" in folder.others or ".start/" in folder.others]
    names = {printable(name) for folder in candidates for name in folder.other_names if name.endswith(START_UP_ENDS)}
    return bounded(sorted(names), ".pth files")


def _limited_notes(notes: Collection[str]) -> tuple[str, ...]:
    """Return the first MAX_NOTES of `notes`, distinct and printable, and the number of further ones.

    If there are too many, notes that queries search for come first, so that other notes cannot push them out.
    """
    kept = list(notes)
    if len(kept) > MAX_NOTES:
        kept = sorted(kept, key=lambda note: not note.startswith((AMBIGUOUS, START_UP_CODE)))[:MAX_NOTES]
    if len(notes) > MAX_NOTES:
        kept.append(f"{len(notes) - MAX_NOTES} more notes are left out")
    return tuple(printable(note) for note in unique(kept))


def _metadata_notes(parts: FilenameParts, metadata: CoreMetadata, requires_dist: Iterable[str]) -> list[str]:
    """Return notes on differences between the metadata and the filename, and on invalid requirements."""
    names = [] if metadata.is_empty else _name_notes(parts, metadata)
    return [*names, *requirement_notes(requires_dist, metadata.requires_python)]


def _name_notes(parts: FilenameParts, metadata: CoreMetadata) -> list[str]:
    notes = []
    if metadata.name is None:
        notes.append("the metadata have no Name: the filename's counts")
    elif parts.project is not None and normalized_name(metadata.name) != normalized_name(parts.project):
        notes.append(f"the metadata are of another project than the filename: {metadata.name}")
    if metadata.version is None:
        notes.append("the metadata have no Version: the filename's counts")
    elif parts.version is not None and not same_version(metadata.version, parts.version):
        notes.append(f"the metadata are of another version than the filename: {metadata.version}")
    return notes


def record_digest(record: DistributionRecord) -> str:
    """Return a hash of all values of `record` in hex. Records with equal digests are equal."""
    return hashlib.blake2b(_encoder.encode(record), digest_size=16).hexdigest()


def record_to_json(record: DistributionRecord, *, yanked: bool = False) -> dict[str, object]:
    """Return the record as JSON values with the column names of the data dumps. Only the index knows `yanked`."""
    values = msgspec.to_builtins(record)
    found = {name: list(value) if type(value) is tuple else value for name, value in values.items()}
    del found["metadata_version"]
    first = {name: found[name] for name in ("filename", "project", "version", "kind", "variant")}
    first |= {"installable": not record.refusals, "refusals": found["refusals"]}
    first |= {name: found[name] for name in ("installed_metadata", "sha256", "size")}
    return first | {"yanked": yanked} | found
