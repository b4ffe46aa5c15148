"""Makes the record of a wheel: METADATA, entry points and modules (PEP 427, PEP 491)."""

from collections.abc import Iterable

from pypi_assets.characters import normalized_name
from pypi_assets.distributions.extract import Extract, printable
from pypi_assets.distributions.metadata import (
    CoreMetadata,
    parse_entry_points,
    parse_metadata,
    parse_top_level,
    unique,
)
from pypi_assets.distributions.module_names import find_modules
from pypi_assets.distributions.record import DistributionRecord, ErrorKind, FilenameParts
from pypi_assets.distributions.record_building import build_record, same_version

_KEPT = (".dist-info/METADATA", ".dist-info/entry_points.txt", ".dist-info/top_level.txt")
_INSTALLED_DATA = frozenset({"purelib", "platlib"})


def wanted(names: Iterable[str]) -> list[str]:
    """Those of the members' names whose content a wheel's record needs."""
    return [name for name in names if name.endswith(_KEPT) and name.count("/") == 1]


def wheel_record(parts: FilenameParts, project: str | None, extract: Extract) -> DistributionRecord:
    """The record of a wheel: what is in the archive is the truth."""
    notes: list[str] = []
    metadata = CoreMetadata()
    dist_info = _choose_dist_info(parts, extract, notes)
    read = dist_info is not None and f"{dist_info}/METADATA" in extract.files
    if dist_info is not None and read:
        metadata = parse_metadata(extract.files[f"{dist_info}/METADATA"], "METADATA")
        if metadata.is_empty:
            extract.fail(ErrorKind.BAD_METADATA, "METADATA has neither Metadata-Version nor Name nor Version")
    elif dist_info is not None:
        extract.fail(ErrorKind.NO_METADATA, f"no {printable(dist_info)}/METADATA")
    members = extract.members.items()
    installed = [(place, each) for folder, each in members if (place := _installed_folder(folder)) is not None]
    modules = find_modules(installed)
    return build_record(
        parts,
        project,
        extract,
        metadata,
        requires_dist=None if metadata.is_empty else unique(metadata.requires_dist),
        provides_extra=metadata.provides_extra,
        entry_points=parse_entry_points(extract.files.get(f"{dist_info}/entry_points.txt", b"")),
        modules=modules.names if extract.members else None,
        modules_by="archive",
        stubs=modules.stubs,
        left_out=modules.unnameable,
        requires_by="METADATA",
        declared=(*parse_top_level(extract.files.get(f"{dist_info}/top_level.txt", b"")), *metadata.declared_names),
        at_root=[each for place, each in installed if not place],
        notes=(*notes, *modules.notes),
    )


def _choose_dist_info(parts: FilenameParts, extract: Extract, notes: list[str]) -> str | None:
    """The `.dist-info` folder at the root that fits the filename, or the only one; else the extract gets an error."""
    tops = [folder.partition("/")[0] for folder in extract.members if ".dist-info" in folder]
    folders = unique(top for top in tops if top.endswith(".dist-info"))
    fitting = [folder for folder in folders if _fits(folder, parts)]
    if len(fitting) == 1:
        if others := [folder for folder in folders if folder not in fitting]:
            notes.append(f"further .dist-info folders, with which pip refuses it: {printable(', '.join(others))}")
        return fitting[0]
    if len(folders) == 1:
        notes.append(f"the .dist-info folder does not fit the filename: {printable(folders[0])}")
        return folders[0]
    if folders:
        extract.fail(
            ErrorKind.BAD_METADATA,
            f"{len(folders)} .dist-info folders, of which {len(fitting)} fit the filename: "
            + printable(", ".join(folders)),
        )
    else:
        extract.fail(ErrorKind.NO_METADATA, "no .dist-info folder at the root")
    return None


def _fits(folder: str, parts: FilenameParts) -> bool:
    name, _, version = folder.removesuffix(".dist-info").rpartition("-")
    return (
        parts.project is not None
        and parts.version is not None
        and (name == parts.project or normalized_name(name) == normalized_name(parts.project))
        and same_version(version, parts.version)
    )


def _installed_folder(folder: str) -> str | None:
    """Where files of this folder come under site-packages; of `*.data` only purelib and platlib come there."""
    if ".d" not in folder:
        return folder
    top, _, rest = folder.partition("/")
    if top.endswith(".data"):
        scheme, _, rest = rest.partition("/")
        return rest if scheme in _INSTALLED_DATA else None
    return None if top.endswith(".dist-info") else folder
