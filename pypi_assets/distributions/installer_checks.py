"""Decide whether pip and uv skip a file or fail because its name or metadata are invalid.

These are the rules of pip 26.3 and uv 0.13. `served_metadata.py` decides which metadata the installers see.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pypi_assets.characters import is_digits, normalized_name, printable
from pypi_assets.distributions.filenames import wheel_problems
from pypi_assets.distributions.metadata import CoreMetadata, refused_requirements
from pypi_assets.distributions.record import FAILS, FAILS_LATE, SKIPS, FilenameParts
from pypi_assets.distributions.requirements import is_requirement, is_version, same_version

_OTHER_VERSION = "the metadata have the Version"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The actions of pip and uv on a file, and the reason. An action is empty if the installer accepts the file."""

    pip: str
    uv: str
    reason: str

    @property
    def is_late(self) -> bool:
        """Check whether the file is resolved before it fails."""
        return FAILS_LATE in {self.pip, self.uv}


def refused_name(parts: FilenameParts) -> Iterator[Refusal]:
    """Yield the reasons why installers reject a wheel with this name."""
    for problem in wheel_problems(parts.filename):
        yield Refusal(SKIPS, SKIPS, problem)


def refused_metadata(parts: FilenameParts, metadata: CoreMetadata) -> Iterator[Refusal]:
    """Yield the reasons why installers reject a file by the metadata that they see without a build."""
    if metadata.name is None:
        yield Refusal(FAILS, SKIPS, "the metadata have no Name")
    if metadata.version is None or not is_version(metadata.version):
        yield Refusal(FAILS, SKIPS, f"the metadata have no valid Version: {metadata.version}")
    for reason in contradictions(parts, metadata):
        yield Refusal(SKIPS, "" if reason.startswith(_OTHER_VERSION) else FAILS, reason)


def refused_requirement(metadata: CoreMetadata) -> Iterator[Refusal]:
    """Yield the reasons why pip rejects a wheel with an invalid Requires-Dist. uv repairs some of these lines."""
    for requirement in refused_requirements(metadata.requires_dist):
        if not is_requirement(requirement):
            reason = f"the metadata have a Requires-Dist that is not a requirement: {printable(requirement, 100)}"
            yield Refusal(SKIPS, "", reason)


def contradictions(parts: FilenameParts, metadata: CoreMetadata) -> Iterator[str]:
    """Yield the name and the version of the metadata if they differ from the filename."""
    if has_other_name(parts, metadata):
        yield f"the metadata have the Name {metadata.name}"
    if metadata.version and parts.version and not same_version(metadata.version, parts.version):
        yield f"{_OTHER_VERSION} {metadata.version}"


def has_other_name(parts: FilenameParts, metadata: CoreMetadata) -> bool:
    """Check whether the metadata belong to another project than the filename."""
    if not metadata.name or not parts.project:
        return False
    return normalized_name(metadata.name) != normalized_name(parts.project)


def is_static(metadata: CoreMetadata) -> bool:
    """Check whether an sdist's metadata guarantee that a build keeps its name and version (metadata 2.2 or later)."""
    major, _, minor = (metadata.metadata_version or "").partition(".")
    return is_digits(major) and is_digits(minor) and (int(major[:9]), int(minor[:9])) >= (2, 2)


def written_refusals(refusals: Iterable[Refusal]) -> tuple[str, ...]:
    """Return the first action of each installer with its reason, in the format of records."""
    by_installer: dict[str, str] = {}
    for refusal in sorted(refusals, key=lambda refusal: refusal.is_late):
        for installer, action in (("pip", refusal.pip), ("uv", refusal.uv)):
            if action:
                by_installer.setdefault(installer, f"{installer} {action}: {refusal.reason}")
    return tuple(by_installer.values())
