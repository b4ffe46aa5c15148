"""Reads pins from a file in the format of requirements.txt: each line pins its project with `==`."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
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
    read = list(requirement_lines(path))
    lines = [line for line in read if isinstance(line, RequirementLine)]
    constraints = _constraints(lines)
    pins = []
    remarks = [
        Remark(RemarkKind.UNKNOWN_OPTION, f"{line.where}: {option} is ignored: it is not an option of the format")
        for line in read
        for option in line.options.unknown
    ]
    for line in lines:
        if line.kind is LineKind.CONSTRAINT:
            continue
        if line.requirement is None:
            text = f"{line.where}: {shown(line.text)} is a URL or a path, and no project of an index"
            remarks.append(Remark(RemarkKind.ELSEWHERE, text, line.name and canonicalize_name(line.name)))
        else:
            pins.append(_pin(line, line.requirement, constraints))
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
        canonicalize_name(line.requirement.name): version
        for line in lines
        if line.kind is LineKind.CONSTRAINT and line.requirement is not None and (version := _pinned_version(line))
    }


def _pin(line: RequirementLine, required: Requirement, constraints: dict[str, str]) -> Pin:
    normalized = canonicalize_name(required.name)
    version = _pinned_version(line) or (None if required.specifier else constraints.get(normalized))
    if version is None:
        raise LockError(
            f"{line.where}: {shown(line.text)} pins no version: a lock has one for each project, as in"
            f" {required.name}==1.0"
        )
    return Pin(
        name=required.name,
        normalized=normalized,
        version=version,
        where=line.where,
        marker=None if required.marker is None else str(required.marker),
        extras=frozenset(map(canonicalize_name, required.extras)),
        files=tuple(LockedFile(None, hashes_of(text, line.where)) for text in line.hashes),
    )


def _pinned_version(line: RequirementLine) -> str | None:
    """The version of `==` or `===`; None where there is another operator, several, or a wildcard."""
    version = line.pinned_version
    return None if version is None else checked_version(version, f"{line.where}: ")
