"""Decide which installers accept a file, from the `refusals` of its record."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

File = TypeVar("File")
_INSTALLERS = ("pip", "uv")


def action_of(refusals: Iterable[str] | None, installer: str) -> str | None:
    """Return what `installer` (pip or uv) does if it rejects the file, such as `skips`, or None if it accepts the file.

    >>> action_of(["uv fails: the metadata have the Name other"], "uv")
    'fails'
    """
    begins = f"{installer} "
    refusal = next((text for text in refusals or () if text.startswith(begins)), None)
    return None if refusal is None else refusal.removeprefix(begins).partition(":")[0]


def is_installable(refusals: Iterable[str] | None) -> bool:
    """Check whether at least one installer accepts the file. Unknown `refusals` (None) count as none.

    >>> is_installable(["pip skips: the metadata have the Version 2"])
    True
    """
    return not refusals or any(action_of(refusals, installer) is None for installer in _INSTALLERS)


def installable_or_all(files: Sequence[File], refusals_of: Callable[[File], Iterable[str] | None]) -> Sequence[File]:
    """Return the files that an installer accepts, or all of them if none is accepted."""
    return accepted_or_all(files, lambda file: not is_installable(refusals_of(file)))


def accepted_or_all(files: Sequence[File], is_rejected: Callable[[File], bool]) -> Sequence[File]:
    """Return the files for which `is_rejected` is False, or all of them if none is left.

    `is_rejected` says whether all installers reject a file.
    """
    return [file for file in files if not is_rejected(file)] or files
