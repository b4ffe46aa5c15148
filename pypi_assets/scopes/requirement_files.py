"""Reads requirements.txt, with the files that it includes. Its simplest form is one name a line."""

from pathlib import Path

from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.requirement_lines import LineKind, requirement_lines
from pypi_assets.scopes.roots import Roots, RootsError, joined_roots


def read_requirements(path: Path) -> Roots:
    """The projects that the file and those behind its `-r` require. Raises RootsError.

    Versions and markers make no difference: a root is followed whatever environment it is for. The files behind `-c`
    are checked and require nothing.
    """
    try:
        lines = [line for line in requirement_lines(path) if line.kind is LineKind.REQUIREMENT]
    except LockError as error:
        raise RootsError(str(error)) from error
    skipped = [
        f"{line.where}: {line.required.line!r} is a URL or a path, and no project of an index"
        for line in lines
        if line.is_elsewhere
    ]
    required = ((line.required.name, line.required.extras) for line in lines if not line.is_elsewhere)
    return joined_roots(required, skipped)
