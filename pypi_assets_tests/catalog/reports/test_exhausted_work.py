"""How much work is exhausted, in all and as a share of what is known."""

from pypi_assets.catalog.coordination.claims import WORKER_DIED
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.read_outcomes import FinishedRead, Outcome
from pypi_assets.catalog.reports.catalog_status import ExhaustedWork, read_exhausted
from pypi_assets.catalog.reports.failures import VISIT
from pypi_assets.catalog.work.read_queue import claim_reads, finish_reads
from pypi_assets_tests.catalog.claimed_queues import Reads


def test_the_share_is_of_all_known_and_zero_in_an_empty_catalog(catalog: Catalog):
    with catalog.read() as connection:
        empty = read_exhausted(connection)
    assert (empty, empty.count, empty.percent) == (ExhaustedWork({VISIT: 0}, 0), 0, 0)
    assert ExhaustedWork({"transient": 3, VISIT: 1}, 200).percent == 2.0


def test_errors_that_the_same_bytes_repeat_are_not_exhausted_work(catalog: Catalog):
    queue = Reads(catalog, 3)
    with catalog.write() as connection:
        reads = claim_reads(connection, queue.workload, None, worker="one", now=1.0, until=9.0, limit=3)
        outcomes = (Outcome.ERROR, Outcome.EXHAUSTED, Outcome.PENDING)
        finished = [FinishedRead(one.distribution_id, outcome) for one, outcome in zip(reads, outcomes, strict=True)]
        finish_reads(connection, finished, "one", 1.0)
        assert read_exhausted(connection) == ExhaustedWork({WORKER_DIED: 1, VISIT: 0}, 4)  # 3 files of 1 project
