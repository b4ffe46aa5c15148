"""Makes the record of a zipped egg: PKG-INFO, requires.txt, entry points and modules (setuptools' format, no PEP)."""

from collections.abc import Iterable

from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.metadata import (
    CoreMetadata,
    parse_entry_points,
    parse_metadata,
    parse_requires_txt,
    parse_top_level,
    unique,
)
from pypi_assets.distributions.module_names import find_modules
from pypi_assets.distributions.record import DistributionRecord, ErrorKind, FilenameParts
from pypi_assets.distributions.record_building import build_record

_INFO = "EGG-INFO/"
_REQUIRES = (f"{_INFO}requires.txt", f"{_INFO}depends.txt")
_KEPT = frozenset({f"{_INFO}PKG-INFO", f"{_INFO}entry_points.txt", f"{_INFO}top_level.txt", *_REQUIRES})


def wanted(names: Iterable[str]) -> list[str]:
    """Those of the members' names whose content an egg's record needs."""
    return [name for name in names if name in _KEPT]


def egg_record(parts: FilenameParts, project: str | None, extract: Extract) -> DistributionRecord:
    """The record of an egg. setuptools writes no requires.txt where nothing is required."""
    files = extract.files
    metadata = CoreMetadata()
    if f"{_INFO}PKG-INFO" in files:
        metadata = parse_metadata(files[f"{_INFO}PKG-INFO"], "PKG-INFO")
        if metadata.is_empty:
            extract.fail(ErrorKind.BAD_METADATA, "PKG-INFO has neither Metadata-Version nor Name nor Version")
    else:
        extract.fail(ErrorKind.NO_METADATA, f"no {_INFO}PKG-INFO")
    listed = [parse_requires_txt(files[name]) for name in _REQUIRES if name in files]
    if listed:
        requirements = [requirement for requires, _ in listed for requirement in requires]
        requires_dist = unique(requirements)
    else:
        requires_dist = unique(metadata.requires_dist)
    modules = find_modules(extract.members.items())
    return build_record(
        parts,
        project,
        extract,
        metadata,
        requires_dist=None if metadata.is_empty and not listed else requires_dist,
        provides_extra=unique((*metadata.provides_extra, *(extra for _, extras in listed for extra in extras))),
        entry_points=parse_entry_points(files.get(f"{_INFO}entry_points.txt", b"")),
        modules=modules.names if extract.members else None,
        modules_by="archive",
        stubs=modules.stubs,
        left_out=modules.unnameable,
        requires_by="requires.txt" if listed else "PKG-INFO",
        declared=(*parse_top_level(files.get(f"{_INFO}top_level.txt", b"")), *metadata.declared_names),
        at_root=[extract.members[""]] if "" in extract.members else (),
        notes=modules.notes,
    )
