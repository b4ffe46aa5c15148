"""Counts of files follow outcomes and what is live, also where two transactions change both of one file."""

from threading import Thread

from sqlalchemy import insert, update

from pypi_assets.catalog.coordination.claims import WORKER_DIED
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.file_counts import counting_files, failed_reads_by_kind, live_outcomes, recount_files
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.tables import distribution_data, live_intervals
from pypi_assets_tests.catalog.claimed_queues import Reads


def entered(catalog: Catalog, count: int) -> list[int]:
    """Files that are live from serial 1 on."""
    ids = Reads(catalog, count).items
    with catalog.write() as connection, counting_files(connection, ids):
        connection.execute(insert(live_intervals), [{"distribution_id": id_, "start": 1} for id_ in ids])
    return ids


def set_outcome(catalog: Catalog, id_: int, outcome: Outcome, kind: str | None = None) -> None:
    with catalog.write() as connection, counting_files(connection, [id_]):
        of_file = update(distribution_data).where(distribution_data.c.distribution_id == id_)
        connection.execute(of_file.values(outcome=outcome, error_kind=kind))


def test_each_file_counts_by_its_outcome_while_it_is_live(catalog: Catalog) -> None:
    one, two, three = entered(catalog, 3)
    set_outcome(catalog, one, Outcome.DATA)
    set_outcome(catalog, two, Outcome.ERROR, "corrupt archive")
    set_outcome(catalog, three, Outcome.EXHAUSTED)
    with catalog.write() as connection:
        assert live_outcomes(connection) == {"data": 1, "error": 1, "gave up": 1}
        with counting_files(connection, [two]):
            connection.execute(update(live_intervals).where(live_intervals.c.distribution_id == two).values(end=9))
        assert live_outcomes(connection) == {"data": 1, "gave up": 1}
        assert failed_reads_by_kind(connection, "error", "gave up") == {"corrupt archive": 1, WORKER_DIED: 1}
        assert failed_reads_by_kind(connection, "gave up") == {WORKER_DIED: 1}
        assert sum(recount_files(connection).values()) == 4


def test_a_file_that_is_entered_in_the_block_counts(catalog: Catalog) -> None:
    ids = Reads(catalog, 2).items
    with catalog.write() as connection:
        with counting_files(connection, []) as new:
            connection.execute(insert(live_intervals), [{"distribution_id": id_, "start": 1} for id_ in ids])
            new += ids
        assert live_outcomes(connection) == {"pending": 2}


def test_a_read_that_ends_while_the_file_is_removed_counts_once(catalog: Catalog) -> None:
    [id_] = entered(catalog, 1)
    reading = Thread(target=set_outcome, args=(catalog, id_, Outcome.DATA))
    with catalog.write() as connection:
        with counting_files(connection, [id_]):
            reading.start()
            reading.join(0.3)
            connection.execute(update(live_intervals).values(end=9))
        assert reading.is_alive()
    reading.join()
    with catalog.read() as connection:
        assert live_outcomes(connection) == recount_files(connection) == {}
