"""Reads requirements.txt, with the files that it includes. Its simplest form is one name a line."""

from pathlib import Path

from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.requirement_lines import LineKind, RequirementLine, requirement_lines
from pypi_assets.scopes.roots import Roots, RootsError, joined_roots


def read_requirements(path: Path) -> Roots:
    """The projects that the file and those behind its `-r` require. Raises RootsError.

    Versions and markers make no difference: a root is followed whatever environment it is for. The files behind `-c`
    are checked and require nothing.
    """
    try:
        read = list(requirement_lines(path))
    except LockError as error:
        raise RootsError(str(error)) from error
    skipped = [
        f"{line.where}: {option} is not an option of the format" for line in read for option in line.options.unknown
    ]
    lines = [line for line in read if isinstance(line, RequirementLine) and line.kind is LineKind.REQUIREMENT]
    skipped += [
        f"{line.where}: {line.text!r} is a URL or a path, and no project of an index"
        for line in lines
        if line.requirement is None
    ]
    required = ((one.name, one.extras) for line in lines if (one := line.requirement) is not None)
    return joined_roots(required, skipped)
