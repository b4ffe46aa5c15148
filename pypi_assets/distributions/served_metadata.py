"""Compare the metadata that an index serves next to a file with the file's own metadata (PEP 658).

pip and uv resolve a wheel by the served metadata but install its own. pip also does so with an sdist. uv never requests
the served metadata of an sdist. Fetching does not belong here.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pypi_assets.characters import is_digits, is_printable, normalized_name
from pypi_assets.distributions.extract import ServedMetadata
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.installer_checks import (
    Refusal,
    contradictions,
    has_other_name,
    is_static,
    refused_metadata,
    refused_name,
    refused_requirement,
)
from pypi_assets.distributions.metadata import CoreMetadata, parse_metadata
from pypi_assets.distributions.record import AMBIGUOUS, FAILS, FAILS_LATE, SKIPS, DistributionKind, FilenameParts
from pypi_assets.distributions.requirements import comparable_requirement, comparable_version, differ

SERVED_METADATA = "served metadata"
"""The name of the rule for requirements in metadata that an index serves next to a file."""
_WHICH = "the metadata that the index serves next to it"
_REQUIREMENTS = "requires-dist"


@dataclass(frozen=True, slots=True)
class Resolved:
    """The `metadata` that installers resolve by.

    `installed` are the lines of the file's own metadata if the served metadata have other fields, and None otherwise.
    """

    metadata: CoreMetadata
    installed: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()


def resolved_wheel(parts: FilenameParts, own: CoreMetadata, served: ServedMetadata | None) -> Resolved:
    """Return the metadata by which installers resolve a wheel. `own` is its METADATA."""
    resolved = Resolved(own) if served is None else _served_wheel(own, served)
    of_metadata = (*refused_metadata(parts, resolved.metadata), *refused_requirement(resolved.metadata))
    return replace(resolved, refusals=(*refused_name(parts), *resolved.refusals, *of_metadata))


def resolved_sdist(
    parts: FilenameParts,
    own: CoreMetadata,
    served: ServedMetadata | None,
    requires_dist: tuple[str, ...] | None,
    provides_extra: tuple[str, ...],
) -> Resolved:
    """Return the metadata by which pip resolves an sdist, or uv if pip rejects them.

    `requires_dist` is None if the sdist's own requirements are unknown. pip reads only the served metadata and builds
    the sdist later. The name and version in the sdist's own metadata count if they are static.
    """
    reasons = list(contradictions(parts, own)) if is_static(own) else []
    if served is None:
        return Resolved(own, refusals=tuple(Refusal(SKIPS, SKIPS, reason) for reason in reasons))
    of_uv = tuple(Refusal("", SKIPS, reason) for reason in reasons)
    own = replace(
        own,
        requires_dist=requires_dist or (),
        provides_extra=provides_extra,
        dynamic=own.dynamic | {_REQUIREMENTS} if requires_dist is None else own.dynamic - {_REQUIREMENTS},
    )
    metadata, problems = _parsed(served)
    notes = [f"{AMBIGUOUS} {problem}" for problem in problems]
    differing = [] if metadata is None else list(_differing_sdist(own, metadata))
    if differing:
        which = f"{_WHICH} are not those of its files: they differ in {', '.join(differing)}"
        notes.append(f"{AMBIGUOUS} {which}")
    of_pip = [Refusal(FAILS, "", problem) for problem in problems]
    if metadata is not None:
        of_pip += [replace(refusal, uv="") for refusal in refused_metadata(parts, metadata)]
    if metadata is None or of_pip:
        return Resolved(own, None, tuple(notes), (*of_pip, *of_uv))
    if reasons and has_other_name(parts, own):
        of_uv = (*of_uv, Refusal(FAILS_LATE, "", reasons[0]))
    if _lines(own) == _lines(metadata):
        return Resolved(own, None, tuple(notes), of_uv)
    return Resolved(metadata, _lines(own), (*notes, *metadata.notes), of_uv)


def own_requirements(installed: Iterable[str]) -> tuple[str | None, list[str] | None]:
    """Return Requires-Python and Requires-Dist in the lines of a record's `installed_metadata`.

    Requires-Python is None if there is none. Requirements are None if they are dynamic and an empty list if there are
    none.

    >>> own_requirements(["Name: demo", "Requires-Dist: attrs"])
    (None, ['attrs'])
    """
    metadata = parse_metadata("\n".join(installed).encode(), "installed metadata")
    return metadata.requires_python, None if _REQUIREMENTS in metadata.dynamic else list(metadata.requires_dist)


def _parsed(served: ServedMetadata) -> tuple[CoreMetadata | None, list[str]]:
    """Return the served metadata, or None if the index does not have the file, and the reasons why pip fails."""
    if served.content is None:
        return None, [f"{_WHICH}, as its page states, are missing"]
    metadata = parse_metadata(served.content, "served METADATA")
    return metadata, [] if served.is_as_stated else [f"{_WHICH} have another sha256 than its page states"]


def _served_wheel(own: CoreMetadata, served: ServedMetadata) -> Resolved:
    metadata, problems = _parsed(served)
    notes = [f"{AMBIGUOUS} {problem}" for problem in problems]
    refusals = [Refusal(FAILS, FAILS, problem) for problem in problems]
    if metadata is None:
        return Resolved(own, None, tuple(notes), tuple(refusals))
    differing = ", ".join(_differing(own, metadata))
    what = f"{_WHICH} are not its METADATA: they differ in {differing or 'nothing that is resolved by'}"
    notes.insert(0, f"{AMBIGUOUS} {what}")
    if differing:
        refusals.append(Refusal(FAILS_LATE, "", f"{_WHICH} differ from its METADATA in {differing}"))
    has_same_lines = _lines(own) == _lines(metadata)
    return Resolved(
        own if has_same_lines else metadata,
        None if has_same_lines else _lines(own),
        (*notes, *metadata.notes),
        tuple(refusals),
    )


def _differing(own: CoreMetadata, served: CoreMetadata) -> Iterator[str]:
    """Yield the differing fields that pip compares before it installs a wheel."""
    yield from _differing_names(own, served)
    if set(map(comparable_requirement, own.requires_dist)) != set(map(comparable_requirement, served.requires_dist)):
        yield "Requires-Dist"
    if own.requires_python != served.requires_python:
        yield "Requires-Python"
    if set(map(normalized_name, own.provides_extra)) != set(map(normalized_name, served.provides_extra)):
        yield "Provides-Extra"


def _differing_sdist(own: CoreMetadata, served: CoreMetadata) -> Iterator[str]:
    """Yield the known fields of an sdist's own metadata that differ in the served metadata."""
    yield from _differing_names(own, served)
    if _REQUIREMENTS not in own.dynamic and differ(own.requires_dist, served.requires_dist):
        yield "Requires-Dist"
    is_known = own.requires_python or (is_static(own) and "requires-python" not in own.dynamic)
    if is_known and own.requires_python != served.requires_python:
        yield "Requires-Python"


def _differing_names(own: CoreMetadata, served: CoreMetadata) -> Iterator[str]:
    if normalized_name(own.name or "") != normalized_name(served.name or ""):
        yield "Name"
    if comparable_version(own.version or "") != comparable_version(served.version or ""):
        yield "Version"


def _lines(metadata: CoreMetadata) -> tuple[str, ...]:
    """Return the fields that installers resolve by as lines of METADATA."""
    single_values = {"Name": metadata.name, "Version": metadata.version, "Requires-Python": metadata.requires_python}
    return (
        *(f"{field}: {value}" for field, value in single_values.items() if value is not None),
        *(f"Requires-Dist: {requirement}" for requirement in metadata.requires_dist),
        *(f"Provides-Extra: {extra}" for extra in metadata.provides_extra),
        *(["Dynamic: Requires-Dist"] if _REQUIREMENTS in metadata.dynamic else ()),
    )


METADATA_COLUMNS = (
    *("project", "version", "filename", "kind", "outcome", "requires_python", "requires_dist", "provides_extra"),
    *("requires_by", "notes"),
)
"""The columns of a dump row that decide whether its metadata are rendered, and with which values."""
METADATA_VERSION = "2.2"
"""The first version in which fields that are not dynamic are the same in each wheel of an sdist (PEP 643)."""
_READ = "data"
_TRUSTED = {DistributionKind.WHEEL.value: "METADATA", DistributionKind.SDIST.value: "static PKG-INFO"}
"""By kind, the rule for requirements that are the same as what installers see."""
_SOURCES = ("METADATA", "PKG-INFO")
_ODD = (AMBIGUOUS, "the metadata ", *_SOURCES)
"""The starts of notes on metadata that installers may read differently."""
_NOT_RENDERED = ("License-Expression", "Classifier", "Project-URL", "Import-Name")
_HARMLESS = tuple(f"{source}: {field}" for source in _SOURCES for field in _NOT_RENDERED)
_FIRST_COUNTS = " fields; the first one counts"
"""The end of a note on repeated fields. Installers use the first one, too."""
_NOTES_LEFT_OUT = " more notes are left out"
_USUAL_PARTS = 5
"""The number of parts between dashes in the name of a wheel without a build tag."""


def metadata_of_row(row: Mapping[str, Any]) -> bytes | None:
    """Return the metadata of the file in a dump row with METADATA_COLUMNS, or None if none are rendered."""
    if row["outcome"] != _READ or row["requires_dist"] is None or row["requires_by"] != _TRUSTED.get(row["kind"]):
        return None
    if any(map(_is_odd, row["notes"] or ())):
        return None
    return render_metadata(
        row["project"],
        file_version(row["filename"], row["version"], row["project"]),
        row["requires_python"],
        row["requires_dist"],
        row["provides_extra"] or (),
    )


def metadata_sha256(row: Mapping[str, Any]) -> str | None:
    """Return the sha256 of `metadata_of_row` in hex."""
    content = metadata_of_row(row)
    return None if content is None else hashlib.sha256(content).hexdigest()


def render_metadata(
    project: str,
    version: str,
    requires_python: str | None,
    requires_dist: Iterable[str],
    provides_extra: Iterable[str],
) -> bytes | None:
    """Return these fields as core metadata, or None if a value is not one printable line.

    >>> render_metadata("Demo", "1.0", None, ["other>=2"], [])
    b'Metadata-Version: 2.2\\nName: Demo\\nVersion: 1.0\\nRequires-Dist: other>=2\\n'
    """
    lines = [f"Metadata-Version: {METADATA_VERSION}", f"Name: {project}", f"Version: {version}"]
    if requires_python:
        lines.append(f"Requires-Python: {requires_python}")
    lines += [f"Requires-Dist: {requirement}" for requirement in requires_dist]
    lines += [f"Provides-Extra: {extra}" for extra in provides_extra]
    if not is_printable("".join(lines)):
        return None
    return ("\n".join(lines) + "\n").encode(errors="replace")


@lru_cache(maxsize=16_384)
def file_version(filename: str, release: str, project: str) -> str:
    """Return the version of a file as its name writes it. Its spelling can differ from the version of the release."""
    parts = filename.split("-")
    has_build = len(parts) == _USUAL_PARTS + 1 and is_digits(parts[1][:1]) and is_digits(parts[2][:1])
    if filename.endswith(".whl") and (len(parts) == _USUAL_PARTS or has_build):
        version = parts[1]
    else:
        version = parse_filename(filename, project).version or release
    return version if "+" in version else version.replace("_", "-")


def _is_odd(note: str) -> bool:
    if note.endswith(_NOTES_LEFT_OUT):
        return True
    return note.startswith(_ODD) and not (note.startswith(_HARMLESS) or note.endswith(_FIRST_COUNTS))
