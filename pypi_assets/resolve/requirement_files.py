"""Reads what is to be resolved from files in the format of requirements.txt."""

import re
from collections.abc import Iterable
from pathlib import Path

from pypi_assets.locks.lock_content import shown
from pypi_assets.locks.requirement_lines import LineKind, RequirementLine, requirement_lines
from pypi_assets.resolve.questions import ResolveError, Wanted, parse_wanted

_OPTIONS = re.compile(r"\s--[a-z].*", re.DOTALL)
"""What can stand behind a requirement: `--hash` and such."""


def read_requirements(
    files: Iterable[Path], constraint_files: Iterable[Path] = ()
) -> tuple[tuple[Wanted, ...], tuple[Wanted, ...]]:
    """The requirements of files, and the constraints: those that the files include by `-c`, and those of other files.

    Raises LockError and ResolveError, with the file and the line: also where a line names a URL or a path.
    """
    wanted: dict[LineKind, list[Wanted]] = {kind: [] for kind in LineKind}
    for file in files:
        before = sum(map(len, wanted.values()))
        for line in requirement_lines(file):
            wanted[line.kind].append(_wanted(line))
        if sum(map(len, wanted.values())) == before:
            raise ResolveError(f"{file}: it names no requirement")
    constraints = wanted[LineKind.CONSTRAINT]
    for file in constraint_files:
        constraints += map(_wanted, requirement_lines(file))
    return tuple(wanted[LineKind.REQUIREMENT]), tuple(constraints)


def _wanted(line: RequirementLine) -> Wanted:
    text = _OPTIONS.sub("", line.required.line).strip()
    if line.is_elsewhere:
        raise ResolveError(
            f"{line.where}: {shown(text)} is a URL or a path, and no project of the index: leave it out, or name a"
            " version instead"
        )
    try:
        return parse_wanted(text)
    except ResolveError as error:
        raise ResolveError(f"{line.where}: {error}") from None
