"""The names of dumps and LevelDB versions that were deleted long ago, allocated in the catalog.

Which of them still have files is for the caller to find out: what does is never forgotten.
"""

from collections.abc import Callable, Collection
from functools import partial

from sqlalchemy import Connection, delete, func, select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import lock_state
from pypi_assets.catalog.publications.dump_registry import DumpState
from pypi_assets.catalog.tables import catalog_state, dump_files, dumps, leveldb_builds, leveldb_versions

NAMES_AT_A_TIME = 1_000


def forget_dumps(catalog: Catalog, before: float, there: Collection[str]) -> int:
    """Deletes the rows of dropped dumps that were opened `before` (unix seconds), and returns their count.

    Those whose directory is still `there` stay, and so does the newest dump, since names are counted by it.
    """

    def forget(connection: Connection, after: int) -> tuple[int, int | None]:
        lock_state(connection, exclusive=True)
        newest = select(func.max(dumps.c.id)).scalar_subquery()
        is_old = (dumps.c.state == DumpState.DROPPED, dumps.c.opened_at < before, dumps.c.id < newest)
        columns = select(dumps.c.id, dumps.c.directory, dumps.c.end)
        query = columns.where(*is_old, dumps.c.id > after).order_by(dumps.c.id).limit(NAMES_AT_A_TIME)
        found = connection.execute(query).all()
        gone = [row for row in found if row.directory not in there]
        if gone:
            ids, end = [row.id for row in gone], max(row.end for row in gone)
            connection.execute(delete(dump_files).where(dump_files.c.dump_id.in_(ids)))
            connection.execute(delete(dumps).where(dumps.c.id.in_(ids)))
            through = catalog_state.c.dumps_forgotten_through
            connection.execute(update(catalog_state).where(through < end).values(dumps_forgotten_through=end))
        return len(gone), found[-1].id if len(found) == NAMES_AT_A_TIME else None

    return _repeated(catalog, forget)


def forget_versions(catalog: Catalog, before: float, there: Collection[tuple[str, str]]) -> int:
    """Deletes the rows of versions allocated `before` (unix seconds) and of their builds; returns the versions' count.

    A version stays while a directory of one of its builds is `there`, given as (dataset, directory), and so does the
    newest one, since versions are counted by it.
    """

    def forget(connection: Connection, after: int) -> tuple[int, int | None]:
        lock_state(connection, exclusive=True)  # or else a build of one of them could begin
        version, builds = leveldb_versions.c.version, leveldb_builds.c
        newest = select(func.max(version)).scalar_subquery()
        is_old = (leveldb_versions.c.requested_at < before, version < newest, version > after)
        found = connection.scalars(select(version).where(*is_old).order_by(version).limit(NAMES_AT_A_TIME)).all()
        named = select(builds.version, builds.dataset, builds.directory).where(builds.version.in_(found))
        kept = {row.version for row in connection.execute(named) if (row.dataset, row.directory) in there}
        gone = sorted({*found} - kept)
        connection.execute(delete(leveldb_builds).where(builds.version.in_(gone)))
        connection.execute(delete(leveldb_versions).where(version.in_(gone)))
        return len(gone), found[-1] if len(found) == NAMES_AT_A_TIME else None

    return _repeated(catalog, forget)


def _repeated(catalog: Catalog, forget: Callable[..., tuple[int, int | None]]) -> int:
    """The count of all rows that `forget` deletes, in a transaction for each time that it returns where to go on."""
    forgotten, after = 0, 0
    while True:
        count, last = catalog.transact(partial(forget, after=after))
        forgotten += count
        if last is None:
            return forgotten
        after = last
