"""Reads pins from a file in the format of requirements.txt: each line pins its project with `==`."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.utils import canonicalize_name

from pypi_assets.locks.entries import hashes_of
from pypi_assets.locks.lock_content import LockError, checked_version, shown
from pypi_assets.locks.pins import LockedFile, Pin, Remark, RemarkKind
from pypi_assets.locks.requirement_lines import LineKind, RequirementLine, requirement_lines


def requirement_pins(path: Path) -> tuple[list[Pin], list[Remark]]:
    """The pins of a file and of those that it includes, and remarks about lines that lead to no index.

    A requirement without a version has the one that a constraint (`-c`) pins. Raises LockError, also where two lines
    contradict each other.
    """
    lines = list(requirement_lines(path))
    constraints = _constraints(lines)
    pins, remarks = [], []
    for line in lines:
        if line.kind is LineKind.CONSTRAINT:
            continue
        if line.is_elsewhere:
            text = f"{line.where}: {shown(line.required.line)} is a URL or a path, and no project of an index"
            remarks.append(
                Remark(RemarkKind.ELSEWHERE, text, line.required.name and canonicalize_name(line.required.name))
            )
        else:
            pins.append(_pin(line, constraints))
    _refuse_contradictions(pins)
    return pins, remarks


def _refuse_contradictions(pins: Iterable[Pin]) -> None:
    """Raises LockError where a project has two versions for all, or for the same environments."""
    versions: defaultdict[str, dict[str, Pin]] = defaultdict(dict)  # by marker; pip refuses what it needs twice
    for pin in pins:
        others = versions[pin.normalized]
        rivals = list(others.values()) if pin.marker is None else [others.get(""), others.get(pin.marker)]
        for other in rivals:
            if other is not None and other.version != pin.version:
                raise LockError(
                    f"{pin.where}: {pin.text} contradicts {other.text} of {other.where}: leave one out, or give both"
                    " markers that differ"
                )
        others.setdefault(pin.marker or "", pin)


def _constraints(lines: Iterable[RequirementLine]) -> dict[str, str]:
    """The version that constraints pin, by normalized name."""
    return {
        canonicalize_name(line.required.name): version
        for line in lines
        if line.kind is LineKind.CONSTRAINT and not line.is_elsewhere and (version := _pinned_version(line))
    }


def _pin(line: RequirementLine, constraints: dict[str, str]) -> Pin:
    required = line.required
    normalized = canonicalize_name(required.name)
    version = _pinned_version(line) or (None if required.specifier else constraints.get(normalized))
    if version is None:
        raise LockError(
            f"{line.where}: {shown(required.line)} pins no version: a lock has one for each project, as in"
            f" {required.name}==1.0"
        )
    return Pin(
        name=required.name,
        normalized=normalized,
        version=version,
        where=line.where,
        marker=None if required.marker is None else str(required.marker),
        extras=frozenset(map(canonicalize_name, required.extras)),
        files=tuple(_files(line)),
    )


def _pinned_version(line: RequirementLine) -> str | None:
    """The version of `==` or `===`; None where there is another operator, several, or a wildcard."""
    if not line.required.is_pinned:
        return None
    version = str(line.required.get_pinned_version)
    return None if version.endswith(".*") else checked_version(version, f"{line.where}: ")


def _files(line: RequirementLine) -> Iterator[LockedFile]:
    for text in line.required.hash_options:
        yield LockedFile(None, hashes_of(text, line.where))
