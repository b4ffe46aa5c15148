"""The counts that are kept, counted again from the rows themselves."""

from sqlalchemy import Connection, func, literal_column, select

from pypi_assets.catalog.counters import read_counts
from pypi_assets.catalog.derived.file_history import UNEXPLAINED
from pypi_assets.catalog.derived.recompute import UNEXPLAINED_CHANGES
from pypi_assets.catalog.reads.file_counts import recount_files
from pypi_assets.catalog.tables import changes, read_queue
from pypi_assets.catalog.work.read_queue import QUEUED_READS


def count_again(connection: Connection) -> dict[str, int]:
    """Every count, by its name, from the rows. Reads all of them: on a large catalog it takes minutes."""
    unexplained = select(func.count()).where(changes.c.cause == literal_column(f"'{UNEXPLAINED}'"))
    counted = recount_files(connection)
    counted[UNEXPLAINED_CHANGES] = connection.scalar(unexplained) or 0
    counted[QUEUED_READS] = connection.scalar(select(func.count()).select_from(read_queue)) or 0
    return {name: count for name, count in counted.items() if count}


def count_differences(connection: Connection) -> dict[str, int]:
    """By how much the rows exceed each count that is kept, without counts that are right. Both are of one moment."""
    kept, counted = read_counts(connection), count_again(connection)
    names = sorted(kept.keys() | counted.keys())
    return {name: counted.get(name, 0) - kept.get(name, 0) for name in names if counted.get(name) != kept.get(name)}
