"""Counts of files, and the contents that files had before they were replaced."""

from threading import Thread

from sqlalchemy import insert, select, update

from pypi_assets.catalog.coordination.claims import WORKER_DIED
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_rows import project_rows_at, requiring_releases, version_yanks_at
from pypi_assets.catalog.reads.file_counts import counting_files, failed_reads_by_kind, live_outcomes, recount_files
from pypi_assets.catalog.reads.past_generations import keep_past_generations, past_generations_of
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.catalog.reports.past_pages import page_at
from pypi_assets.catalog.reports.past_releases import PastReleases, count_dependents, live_files_of
from pypi_assets.catalog.tables import distribution_data, distributions, live_intervals
from pypi_assets.distributions.served_metadata import metadata_sha256
from pypi_assets_tests.catalog.claimed_queues import Reads
from pypi_assets_tests.small_catalog import SmallCatalog


def test_past_content_keeps_its_facts_and_record(small: SmallCatalog) -> None:
    small.add(3, "demo", "1.0", "demo-1.0.tar.gz", modules=("demo",), requires_dist=("base",))
    catalog: Catalog = small.catalog
    with catalog.write() as connection:
        row = connection.execute(select(distributions.c.id, distributions.c.project_id, distributions.c.sha256)).one()
        for _ in range(2):  # a second run must change nothing
            keep_past_generations(connection, {row.id: 9})
        keep_past_generations(connection, {})
        [past] = past_generations_of(connection, row.project_id)
    assert (past.filename, past.generation, past.until, past.sha256) == ("demo-1.0.tar.gz", 1, 9, row.sha256)
    assert past.facts["modules"] == ["demo"]
    assert past.facts["requires_dist"] == ["base"]
    assert past.facts["outcome"] == "data"
    assert past.facts["url"] == "https://files.example.org/demo-1.0.tar.gz"
    catalog.close()


def test_past_generation_keeps_its_installer_support(small: SmallCatalog) -> None:
    refusals = ("pip skips: odd", "uv skips: odd")
    small.add(3, "demo", "1.0", "demo-1.0.zip", requires_dist=("base",))
    small.add(4, "demo", "2.0", "demo-2.0.zip", requires_dist=("base",), refusals=refusals)
    catalog = small.catalog
    with catalog.write() as connection:
        keep_past_generations(connection, dict.fromkeys(connection.scalars(select(distributions.c.id)), 9))
        data = distribution_data.c
        swapped = update(distribution_data).values(is_rejected=~data.is_rejected)
        connection.execute(swapped)
    small.complete(10)
    for serial, version in ((8, "1.0"), (9, "2.0")):
        assert list(version_yanks_at(catalog, serial, ["demo"])) == [("demo", version, False)], serial
        assert list(requiring_releases(catalog, serial, "base")) == [("demo", version, 0)], serial
        rejected = {file.version for file in live_files_of(catalog, serial, ["demo"]) if file.is_rejected}
        assert rejected == {"1.0", "2.0"} - {version}, serial
        assert count_dependents(catalog, serial, ["base"]) == {"base": 1}
    catalog.close()


def test_python_versions_are_those_of_the_index_or_of_the_past_content(small: SmallCatalog) -> None:
    """Each way to an answer at a serial shows the same versions of Python, whether the index states them or not."""
    catalog = small.catalog
    small.add(3, "demo", "1.0", "demo-1.0.zip", modules=("demo",), requires_dist=(), requires_python=">=3.9")
    small.add(4, "demo", "2.0", "demo-2.0.zip", modules=("demo",), requires_dist=())
    read = update(distribution_data)
    with catalog.write() as connection:
        connection.execute(read.values(requires_python=">=3.10"))
        keep_past_generations(connection, dict.fromkeys(connection.scalars(select(distributions.c.id)), 9))
        connection.execute(read.values(requires_python=">=3.12"))
        connection.execute(update(distributions).values(requires_python=None))
    small.complete(10)
    for serial, expected in ((8, {"1.0": ">=3.9", "2.0": ">=3.10"}), (9, {"1.0": ">=3.12", "2.0": ">=3.12"})):
        page = page_at(catalog, serial, "demo")
        assert page is not None
        releases = PastReleases(catalog, serial)
        [files] = releases.files([(one, ("1.0", "2.0")) for one in releases.projects(["demo"]).values()])
        for found in (
            {file.version: file.requires_python for file in page.files},
            {file.version: file.requires_python for file in live_files(catalog, serial)},
            {file["version"]: file["requires_python"] for file in files},
            {row["version"]: row["requires_python"] for row in project_rows_at(catalog, serial, "demo")},
        ):
            assert found == expected
        hashes = {file.version: file.metadata_sha256 for file in page.files}
        rows = {row["version"]: row for row in project_rows_at(catalog, serial, "demo")}
        assert hashes == {version: metadata_sha256(row) for version, row in rows.items()}
    catalog.close()


def entered(catalog: Catalog, count: int) -> list[int]:
    """Enter and return files that are live from serial 1 on."""
    ids = Reads(catalog, count).items
    with catalog.write() as connection, counting_files(connection, ids):
        connection.execute(insert(live_intervals), [{"distribution_id": id_, "start": 1} for id_ in ids])
    return ids


def set_outcome(catalog: Catalog, id_: int, outcome: ReadOutcome, kind: str | None = None) -> None:
    with catalog.write() as connection, counting_files(connection, [id_]):
        of_file = update(distribution_data).where(distribution_data.c.distribution_id == id_)
        connection.execute(of_file.values(outcome=outcome, error_kind=kind))


def test_live_file_counts_by_its_outcome(catalog: Catalog) -> None:
    one, two, three = entered(catalog, 3)
    set_outcome(catalog, one, ReadOutcome.DATA)
    set_outcome(catalog, two, ReadOutcome.ERROR, "corrupt archive")
    set_outcome(catalog, three, ReadOutcome.EXHAUSTED)
    with catalog.write() as connection:
        assert live_outcomes(connection) == {"data": 1, "error": 1, "gave up": 1}
        with counting_files(connection, [two]):
            connection.execute(update(live_intervals).where(live_intervals.c.distribution_id == two).values(end=9))
        assert live_outcomes(connection) == {"data": 1, "gave up": 1}
        assert failed_reads_by_kind(connection, "error", "gave up") == {"corrupt archive": 1, WORKER_DIED: 1}
        assert failed_reads_by_kind(connection, "gave up") == {WORKER_DIED: 1}
        assert sum(recount_files(connection).values()) == 4


def test_file_entered_in_the_block_counts(catalog: Catalog) -> None:
    ids = Reads(catalog, 2).items
    with catalog.write() as connection:
        with counting_files(connection, []) as new:
            connection.execute(insert(live_intervals), [{"distribution_id": id_, "start": 1} for id_ in ids])
            new += ids
        assert live_outcomes(connection) == {"pending": 2}


def test_read_ending_during_removal_counts_once(catalog: Catalog) -> None:
    [id_] = entered(catalog, 1)
    reading = Thread(target=set_outcome, args=(catalog, id_, ReadOutcome.DATA))
    with catalog.write() as connection:
        with counting_files(connection, [id_]):
            reading.start()
            reading.join(0.3)
            connection.execute(update(live_intervals).values(end=9))
        assert reading.is_alive()
    reading.join()
    with catalog.read() as connection:
        assert live_outcomes(connection) == recount_files(connection) == {}
