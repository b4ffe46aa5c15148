"""Allocate LevelDB version numbers, and the names of their directories and of Parquet exports, each only once.

Whether a version or export exists is decided by the input lists and manifests in the storage, not by the catalog.
"""

import re
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, insert, select, update

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.range_ledger import lock_state
from pypi_assets.catalog.tables import leveldb_builds, leveldb_versions, parquet_exports

_NUMBER = re.compile(r"[0-9]{1,18}")  # as many digits as fit into the column


class UnknownVersionError(CatalogError):
    """A LevelDB version that the catalog has not allocated."""


@dataclass(frozen=True, slots=True)
class AllocatedVersion:
    """A version number. `serial` is the serial of the cover for which it was allocated."""

    version: int
    serial: int
    requested_at: float


@dataclass(frozen=True, slots=True)
class Build:
    """One attempt to build a version of a dataset, with its own directory name."""

    id: int
    dataset: str
    version: int
    directory: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """The start of a build, in unix seconds, and whether it is known to be published."""

    started_at: float
    is_published: bool


def allocate_version(catalog: Catalog, serial: int) -> int:
    """Allocate the next version number, which is shared by all datasets."""

    def allocate(connection: Connection) -> int:
        lock_state(connection, exclusive=True)
        row = insert(leveldb_versions).values(requested_at=catalog.clock(), serial=serial)
        return int(connection.scalar(row.returning(leveldb_versions.c.version)) or 0)

    return catalog.transact(allocate)


def allocated_versions(catalog: Catalog, after: int = 0) -> list[AllocatedVersion]:
    """Return the allocated version numbers that are greater than `after`, in order."""
    return _allocated(catalog, leveldb_versions.c.version > after)


def last_allocated_version(catalog: Catalog) -> AllocatedVersion | None:
    """Return the greatest allocated version number; None if there is none."""
    greatest = select(func.max(leveldb_versions.c.version)).scalar_subquery()
    found = _allocated(catalog, leveldb_versions.c.version == greatest)
    return found[0] if found else None


def require_version(catalog: Catalog, name: str) -> AllocatedVersion:
    """Return the version with this name, such as `00042`. Raises UnknownVersionError if it was never allocated."""
    number = int(name) if _NUMBER.fullmatch(name) else 0
    for allocated in _allocated(catalog, leveldb_versions.c.version == number):
        if name == f"{allocated.version:05d}":
            return allocated
    raise UnknownVersionError(
        f"LevelDB version {name} was never allocated, or was deleted long ago; `pypi-assets leveldb update` allocates"
        " the next one"
    )


def _allocated(catalog: Catalog, condition: ColumnElement[bool]) -> list[AllocatedVersion]:
    query = select(leveldb_versions).where(condition).order_by(leveldb_versions.c.version)
    with catalog.read() as connection:
        return [AllocatedVersion(row.version, row.serial, row.requested_at) for row in connection.execute(query)]


def attempts(catalog: Catalog, dataset: str) -> dict[str, Attempt]:
    """Return the attempts to build versions of `dataset`, by their directories."""
    columns = leveldb_builds.c.directory, leveldb_builds.c.started_at, leveldb_builds.c.published_at
    with catalog.read() as connection:
        rows = connection.execute(select(*columns).where(leveldb_builds.c.dataset == dataset))
        return {row.directory: Attempt(row.started_at, row.published_at is not None) for row in rows}


def begin_build(catalog: Catalog, dataset: str, version: int) -> Build:
    """Allocate a directory for one attempt: `00042`, then `00042.2` and so on. Raises UnknownVersionError."""

    def begin(connection: Connection) -> Build:
        lock_state(connection, exclusive=True)
        if connection.scalar(select(leveldb_versions.c.version).where(leveldb_versions.c.version == version)) is None:
            raise UnknownVersionError(
                f"LevelDB version {version} was never allocated; `pypi-assets leveldb update` allocates the next one"
            )
        attempts = connection.scalar(
            select(func.count()).where(leveldb_builds.c.dataset == dataset, leveldb_builds.c.version == version)
        )
        directory = f"{version:05d}.{attempts + 1}" if attempts else f"{version:05d}"
        row = insert(leveldb_builds).values(
            dataset=dataset, version=version, directory=directory, started_at=catalog.clock()
        )
        build_id = connection.execute(row.returning(leveldb_builds.c.id)).scalar_one()
        return Build(build_id, dataset, version, directory)

    return catalog.transact(begin)


def mark_published(catalog: Catalog, build: Build, serial: int, base_version: int | None) -> None:
    """Record that the build's input list was written."""
    published = (
        update(leveldb_builds)
        .where(leveldb_builds.c.id == build.id)
        .values(published_at=catalog.clock(), serial=serial, base_version=base_version)
    )
    catalog.transact(lambda connection: connection.execute(published))


def allocate_export(catalog: Catalog, serial: int) -> str:
    """Allocate a directory for one attempt to export the files live at `serial`: `0-1350`, then `0-1350.2`, ..."""

    def allocate(connection: Connection) -> str:
        lock_state(connection, exclusive=True)
        attempts = connection.scalar(select(func.count()).where(parquet_exports.c.serial == serial)) or 0
        directory = f"0-{serial}.{attempts + 1}" if attempts else f"0-{serial}"
        row = {"serial": serial, "directory": directory, "started_at": catalog.clock()}
        connection.execute(insert(parquet_exports).values(**row))
        return directory

    return catalog.transact(allocate)
