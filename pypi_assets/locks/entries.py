"""What locks in TOML have in common: entries, each a package that an index has, or that comes from elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from pypi_assets.locks.lock_content import LockError, shown, text_at
from pypi_assets.locks.pins import LockedFile


@dataclass(frozen=True, slots=True)
class Entry:
    """A package of a lock. `where` is its place, for people.

    `elsewhere` describes where it comes from, if from no index. `version` is None where the lock leaves it open.
    `requires_python` is the specifier without which an installer ends.
    """

    where: str
    name: str
    version: str | None
    marker: str | None = None
    files: tuple[LockedFile, ...] = ()
    elsewhere: str | None = None
    index: str | None = None
    requires_python: str | None = None


def required_name(package: Mapping[str, Any], where: str) -> str:
    """The name of a package. Raises LockError where it has none."""
    name = text_at(package, "name", f"{where}: ")
    if not name:
        raise LockError(f"{where}: it has no name")
    return name


def file_of_url(url: str) -> str | None:
    """The name of the file that a URL or a path leads to.

    >>> file_of_url("https://example.org/a/demo-1.0%2Bcpu-py3-none-any.whl#sha256=00")
    'demo-1.0+cpu-py3-none-any.whl'
    """
    try:
        path = urlsplit(url).path
    except ValueError:  # brackets that are no address
        return None
    return unquote(path.replace("\\", "/").rpartition("/")[2]) or None


def hashes_of(text: str | None, where: str) -> dict[str, str]:
    """The hash of `sha256:HEX`, by algorithm. Raises LockError for anything else."""
    if text is None:
        return {}
    algorithm, colon, digest = text.partition(":")
    if not colon or not algorithm or not digest:
        raise LockError(f"{where}: expected a hash as sha256:HEX, not {shown(text)}")
    return {algorithm.lower(): digest.lower()}
