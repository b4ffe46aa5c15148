"""Reads the lines of files in the format of requirements.txt, those of the files that they include too."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from pip_requirements_parser import InstallRequirement, RequirementsFile

from pypi_assets.locks.lock_content import (
    LARGEST_REQUIREMENTS_BYTES,
    MOST_ENTRIES,
    LockError,
    read_bytes,
    shown,
)


class LineKind(StrEnum):
    """Whether a line requires a project, or only constrains its version (`-c`)."""

    REQUIREMENT = "requirements"
    CONSTRAINT = "constraints"


@dataclass(frozen=True, slots=True)
class RequirementLine:
    """A line that names a project, a URL or a path; `where` is its file and number."""

    kind: LineKind
    where: str
    required: InstallRequirement

    @property
    def is_elsewhere(self) -> bool:
        """Whether it leads to no project of an index: a URL, a path, version control."""
        return self.required.is_editable or self.required.link is not None or self.required.name is None


@dataclass(frozen=True, slots=True)
class OptionLine:
    """A line with options for all requirements but `-r` and `-c`: by name, as the parser spells them. There are none
    where it has options of a requirement, and no requirement.
    """

    where: str
    options: Mapping[str, Any]


def requirement_lines(path: Path) -> Iterator[RequirementLine]:
    """The lines of a file, and of those that it includes by `-r` and `-c`. Raises LockError."""
    return (line for line in requirement_and_option_lines(path) if isinstance(line, RequirementLine))


def requirement_and_option_lines(path: Path) -> Iterator[RequirementLine | OptionLine]:
    """The same, and the lines with other options. Raises LockError."""
    return _lines(path, LineKind.REQUIREMENT, ())


def _lines(path: Path, kind: LineKind, through: tuple[Path, ...]) -> Iterator[RequirementLine | OptionLine]:
    content = read_bytes(path, LARGEST_REQUIREMENTS_BYTES)
    if content.count(b"\n") > MOST_ENTRIES * 10:
        raise LockError(f"{path}: has more than {MOST_ENTRIES * 10:,} lines")
    if path.resolve() in through:
        raise LockError(f"{path}: it includes itself")
    for line in _parsed(path, kind):
        if isinstance(line, RequirementLine | OptionLine):
            yield line
        else:
            included_kind, included = line
            is_constraint = LineKind.CONSTRAINT in {kind, included_kind}
            inner = LineKind.CONSTRAINT if is_constraint else LineKind.REQUIREMENT
            yield from _lines(included, inner, (*through, path.resolve()))


def _parsed(path: Path, kind: LineKind) -> Iterator[RequirementLine | OptionLine | tuple[LineKind, Path]]:
    """The lines of one file, and the files that it includes, in their order."""
    try:
        parsed = RequirementsFile.from_file(str(path))
    except Exception as error:  # whatever the parser raises for bytes that are no text
        raise LockError(f"{path}: cannot be read as requirements: {type(error).__name__}: {error}") from error
    for broken in parsed.invalid_lines:
        reason = broken.error_message.splitlines()[0].removeprefix("Invalid requirement: ").lstrip(": ")
        raise LockError(f"{path}:{broken.line_number}: {shown(broken.line)} is no requirement: {reason}")
    for line in sorted([*parsed.options, *parsed.requirements], key=lambda one: one.line_number):
        if isinstance(line, InstallRequirement):
            yield RequirementLine(kind, f"{path}:{line.line_number}", line)
            continue
        for included_kind in LineKind:
            for included in line.options.get(included_kind.value, ()):
                if "://" in included:
                    raise LockError(
                        f"{path}:{line.line_number}: {included} is not a local file: download it, and include that"
                    )
                yield included_kind, path.parent / included
        others = {name: value for name, value in line.options.items() if name not in set(LineKind)}
        if others or not line.options:
            yield OptionLine(f"{path}:{line.line_number}", others)
