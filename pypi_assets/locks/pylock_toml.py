"""Reads pylock.toml by PEP 751."""

from collections.abc import Iterator, Mapping
from typing import Any

from packaging.pylock import Package, PackageSdist, PackageWheel, Pylock, PylockUnsupportedVersionError
from packaging.pylock import PylockValidationError as InvalidPylockError

from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.locks.entries import Entry
from pypi_assets.locks.lock_content import LockError, tables_at
from pypi_assets.locks.pins import LockedFile


def pylock_entries(content: Mapping[str, Any]) -> Iterator[Entry]:
    """The packages of a lock. Raises LockError, which names the key."""
    tables_at(content, "packages", "")
    try:
        lock = Pylock.from_dict(content)
    except (InvalidPylockError, PylockUnsupportedVersionError) as error:
        raise LockError(str(error).partition("\n")[0]) from None
    except (RecursionError, AttributeError, TypeError, ValueError) as error:  # of values that it does not expect
        reason = str(error).partition("\n")[0]
        raise LockError(f"it is no lock by PEP 751: {type(error).__name__}: {reason}") from None
    for number, package in enumerate(lock.packages, start=1):
        yield Entry(
            where=f"packages {number} ({package.name})",
            name=package.name,
            version=_version(package),
            marker=None if package.marker is None else str(package.marker),
            files=tuple(map(_file, [*([package.sdist] if package.sdist else ()), *(package.wheels or ())])),
            elsewhere=_elsewhere(package),
            index=package.index,
            requires_python=None if package.requires_python is None else str(package.requires_python),
        )


def _version(package: Package) -> str | None:
    """Return the version of a package: as stated, else that of the names of its files. Raises LockError."""
    if package.version is not None:
        return str(package.version)
    files = [*([package.sdist] if package.sdist else ()), *(package.wheels or ())]
    found = (parse_filename(file.filename, package.name).version for file in files)
    versions = {version for version in found if version is not None}
    if len(versions) > 1:
        raise LockError(f"package {package.name}: it has no version, and files of several: {', '.join(versions)}")
    return versions.pop() if versions else None


def _elsewhere(package: Package) -> str | None:
    elsewhere = (("version control", package.vcs), ("a folder", package.directory), ("a URL", package.archive))
    return next((kind for kind, where in elsewhere if where is not None), None)


def _file(file: PackageSdist | PackageWheel) -> LockedFile:
    return LockedFile(file.filename, {algorithm.lower(): digest.lower() for algorithm, digest in file.hashes.items()})
