"""Renders core metadata from what was read of a file: the fields that installers resolve by, and no others.

Installers compare these fields with the file's own when they install it. So they are rendered only where nothing odd
was noted about the file's metadata, and of an sdist only where it declares its requirements as static.
"""

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from pypi_assets.characters import is_digits, is_printable
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.record import AMBIGUOUS, DistributionKind

METADATA_COLUMNS = (
    *("project", "version", "filename", "kind", "outcome", "requires_python", "requires_dist", "provides_extra"),
    *("requires_by", "notes"),
)
"""The columns of a row of a dump from which it follows whether metadata are rendered, and which."""
METADATA_VERSION = "2.2"
"""The first in which fields that are not named as dynamic are the same in each wheel of an sdist (PEP 643)."""
_READ = "data"
_TRUSTED = {DistributionKind.WHEEL.value: "METADATA", DistributionKind.SDIST.value: "static PKG-INFO"}
"""By kind, the rule by which the requirements are those that installers see."""
_SOURCES = ("METADATA", "PKG-INFO")
_ODD = (AMBIGUOUS, "the metadata ", *_SOURCES)
"""How notes begin that can be of metadata which installers see otherwise."""
_NOT_RENDERED = ("License-Expression", "Classifier", "Project-URL", "Import-Name")
_HARMLESS = tuple(f"{source}: {field}" for source in _SOURCES for field in _NOT_RENDERED)
_FIRST_COUNTS = " fields; the first one counts"
"""For installers too."""
_NOTES_LEFT_OUT = " more notes are left out"
_USUAL_PARTS = 5
"""Of the name of a wheel without a build tag, between dashes."""


def metadata_of_row(row: Mapping[str, Any]) -> bytes | None:
    """The metadata of the file of a row of a dump, which needs METADATA_COLUMNS; None where none are rendered."""
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
    """The sha256 of `metadata_of_row`, in hex."""
    content = metadata_of_row(row)
    return None if content is None else hashlib.sha256(content).hexdigest()


def render_metadata(
    project: str,
    version: str,
    requires_python: str | None,
    requires_dist: Iterable[str],
    provides_extra: Iterable[str],
) -> bytes | None:
    """These fields as core metadata; None where a value is not one printable line.

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
    """The version of a file as its name writes it, which can differ in spelling from that of its release."""
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
