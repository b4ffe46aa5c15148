"""Reads requirements.txt, with the files that it includes. Its simplest form is one name a line."""

from collections.abc import Iterator
from pathlib import Path

from pip_requirements_parser import RequirementsFile

from pypi_assets.scopes.roots import Roots, RootsError, joined_roots, read_bytes


def read_requirements(path: Path) -> Roots:
    """The projects that the file and those behind its `-r` require. Raises RootsError.

    Versions and markers make no difference: a root is followed whatever environment it is for. The files behind `-c`
    are checked and require nothing.
    """
    skipped: list[str] = []
    required = list(_required(path, (), skipped))
    return joined_roots(required, skipped)


def _required(path: Path, through: tuple[Path, ...], skipped: list[str]) -> Iterator[tuple[str, set[str]]]:
    if path.resolve() in through:
        raise RootsError(f"{path}: it includes itself")
    read_bytes(path)
    try:
        parsed = RequirementsFile.from_file(str(path))
    except Exception as error:  # whatever the parser raises for bytes that are no text
        raise RootsError(f"{path}: cannot be read as requirements: {type(error).__name__}: {error}") from error
    for broken in parsed.invalid_lines:
        reason = broken.error_message.splitlines()[0].removeprefix("Invalid requirement: ").lstrip(": ")
        raise RootsError(f"{path}:{broken.line_number}: {broken.line!r} is no requirement: {reason}")
    for option in parsed.options:
        for kind in ("requirements", "constraints"):
            for included in option.options.get(kind, ()):
                if "://" in included:
                    raise RootsError(
                        f"{path}:{option.line_number}: {included} is not a local file: download it, and include that"
                    )
                nested = _required(path.parent / included, (*through, path.resolve()), skipped)
                yield from (each for each in nested if kind == "requirements")
    for line in parsed.requirements:
        if line.is_editable or line.link is not None or line.name is None:
            skipped.append(f"{path}:{line.line_number}: {line.line!r} is a URL or a path, and no project of an index")
        else:
            yield line.name, line.extras
