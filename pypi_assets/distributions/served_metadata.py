"""Compares the metadata that an index serves next to a wheel with the wheel's own METADATA (PEP 658).

Installers resolve by the former and install the latter. How the served ones are fetched does not belong here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pypi_assets.characters import normalized_name
from pypi_assets.distributions.extract import ServedMetadata
from pypi_assets.distributions.metadata import CoreMetadata, parse_metadata
from pypi_assets.distributions.record import AMBIGUOUS, FAILS, FAILS_LATE
from pypi_assets.distributions.requirements import comparable_requirement, comparable_version

SERVED_METADATA = "served metadata"
"""The rule by which requirements are known that an index serves next to a wheel."""
_WHICH = "the metadata that the index serves next to it"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What pip and uv do with a file, each empty if it takes the file, and why."""

    pip: str
    uv: str
    reason: str

    @property
    def is_late(self) -> bool:
        """Whether the file is resolved before it fails."""
        return FAILS_LATE in {self.pip, self.uv}


@dataclass(frozen=True, slots=True)
class Resolved:
    """The `metadata` that installers resolve by.

    `installed` are the lines of the wheel's METADATA if that states other fields than what is served, else None.
    """

    metadata: CoreMetadata
    installed: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()


def resolved_by(own: CoreMetadata, served: ServedMetadata | None) -> Resolved:
    """Return what installers resolve a wheel with this METADATA by, if the index serves something else next to it."""
    if served is None:
        return Resolved(own)
    if served.content is None:
        problem = f"{_WHICH}, as its page states, are missing"
        return Resolved(own, None, (f"{AMBIGUOUS} {problem}",), (Refusal(FAILS, FAILS, problem),))
    found = parse_metadata(served.content, "served METADATA")
    differing = ", ".join(_differing(own, found))
    notes = [f"{AMBIGUOUS} {_WHICH} are not its METADATA: they differ in {differing or 'nothing that is resolved by'}"]
    refusals = []
    if not served.is_as_stated:
        reason = f"{_WHICH} have another sha256 than its page states"
        notes.append(f"{AMBIGUOUS} {reason}")
        refusals.append(Refusal(FAILS, FAILS, reason))
    if differing:
        refusals.append(Refusal(FAILS_LATE, "", f"{_WHICH} differ from its METADATA in {differing}"))
    has_same_lines = _lines(own) == _lines(found)
    return Resolved(
        own if has_same_lines else found,
        None if has_same_lines else _lines(own),
        (*notes, *found.notes),
        tuple(refusals),
    )


def _differing(own: CoreMetadata, served: CoreMetadata) -> Iterator[str]:
    """Yield the fields that pip compares before it installs a wheel, and finds to be different."""
    if normalized_name(own.name or "") != normalized_name(served.name or ""):
        yield "Name"
    if comparable_version(own.version or "") != comparable_version(served.version or ""):
        yield "Version"
    if set(map(comparable_requirement, own.requires_dist)) != set(map(comparable_requirement, served.requires_dist)):
        yield "Requires-Dist"
    if own.requires_python != served.requires_python:
        yield "Requires-Python"
    if set(map(normalized_name, own.provides_extra)) != set(map(normalized_name, served.provides_extra)):
        yield "Provides-Extra"


def _lines(metadata: CoreMetadata) -> tuple[str, ...]:
    """Return the fields that installers resolve by as lines of METADATA."""
    one = {"Name": metadata.name, "Version": metadata.version, "Requires-Python": metadata.requires_python}
    return (
        *(f"{field}: {value}" for field, value in one.items() if value is not None),
        *(f"Requires-Dist: {requirement}" for requirement in metadata.requires_dist),
        *(f"Provides-Extra: {extra}" for extra in metadata.provides_extra),
    )
