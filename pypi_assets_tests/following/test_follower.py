"""The follower writes uploads to the journal, dumps and LevelDBs without commands, even if other workers are active."""

import threading
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.retry_failures import retry
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.journal.publishing import missing_ranges
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets_tests.crawl.failing_requests import fail
from pypi_assets_tests.following.followers import (
    assert_exact,
    begin,
    following,
    is_answered,
    journal_files,
)
from pypi_assets_tests.served_index import ServedIndex, served_index
from pypi_assets_tests.waiting import until


def test_upload_reaches_the_journal_dumps_and_leveldbs(index: ServedIndex, catalog: Catalog, tmp_path: Path):
    begin(index, catalog)
    with following(index.crawler(catalog), tmp_path) as one:
        index.wheel("second", "1.0")
        until(lambda: is_answered(index, "first_module", "second_module"))
        until(lambda: len(one.logged("leveldb")) == len(DATASETS))
    assert one.is_clean
    [range_of_it] = [step["range"] for step in one.logged("allocated")]
    for step in ("crawl", "journal", "dump"):
        assert range_of_it in [line["range"] for line in one.logged(step)]
    [crawl] = one.logged("crawl")
    assert (crawl["read"], crawl["failed"], crawl["gave_up"]) == (1, 0, 0)
    assert one.steps[0]["step"] == "started"
    assert one.steps[-1] == {"step": "stopped", "clean": True}
    assert_exact(index, catalog)
    assert missing_ranges(catalog) == []
    assert set(journal_files(index)) == {filename for filename, _ in index.shown()}
    versions = {step["version"] for step in one.logged("leveldb")}
    assert len(versions) == 1
    for name in DATASETS:
        newest = published_versions(index.storage, name)[-1]
        assert verify(name, newest, storage=index.storage, deep=True).problems == ()


def test_remaining_work_is_done_at_the_start(index: ServedIndex, catalog: Catalog, tmp_path: Path):
    begin(index, catalog)
    index.wheel("second", "1.0")
    crawl_incremental(index.crawler(catalog))  # neither in the journal nor dumped
    with following(index.crawler(catalog), tmp_path) as one:
        until(lambda: is_answered(index, "second_module"))
        until(lambda: missing_ranges(catalog) == [])
    assert one.logged("allocated") == one.logged("crawl") == []
    assert_exact(index, catalog)


def test_follower_waits_for_a_complete_full_crawl(index: ServedIndex, catalog: Catalog, tmp_path: Path):
    with following(index.crawler(catalog), tmp_path) as one:
        until(lambda: bool(one.logged("waiting")))
        crawl_full(index.crawler(catalog))
        index.wheel("second", "1.0")
        until(lambda: bool(one.logged("journal")) and bool(one.logged("crawl")))
    assert one.error is None
    assert one.logged("waiting")[0].keys() == {"step", "for"}
    assert_exact(index, catalog)


def test_follower_survives_index_errors(index: ServedIndex, catalog: Catalog, tmp_path: Path):
    begin(index, catalog)
    index.faults = lambda _: Response(status_code=503)
    with following(index.crawler(catalog), tmp_path) as one:
        index.wheel("second", "1.0")
        until(lambda: bool(one.logged("error")))
        index.faults = None
        until(lambda: is_answered(index, "second_module"))
    assert {step["what"] for step in one.logged("error")} == {"poll"}
    assert_exact(index, catalog)


def test_index_that_went_backwards_needs_an_operator(index: ServedIndex, catalog: Catalog, tmp_path: Path):
    begin(index, catalog)
    with served_index(tmp_path / "other") as younger:
        younger.storage = index.storage
        backwards = index.crawler(catalog)
        index.wheel("second", "1.0")
        crawl_incremental(backwards)
        client = younger.client()
        client.index_url = index.url
        object.__setattr__(backwards, "index", client)
        with following(backwards, tmp_path) as one:
            until(lambda: one.error is not None)
    assert isinstance(one.error, CatalogError)


@pytest.mark.nightly
def test_failing_page_delays_no_other_range(index: ServedIndex, catalog: Catalog, tmp_path: Path):
    begin(index, catalog)
    fails = threading.Event()
    fails.set()

    def fault(request: Request) -> Response | None:
        return Response(status_code=503) if fails.is_set() and request.url.path == "/simple/bad/" else None

    index.faults = fault
    patient = index.crawler(
        catalog, retry_deadline_s=600.0, page_attempts=10_000
    )  # it does not continue without the page
    with following(patient, tmp_path) as one:
        index.wheel("bad", "1.0")
        until(lambda: len(one.logged("allocated")) == 1)
        index.wheel("good", "1.0")
        until(lambda: [step["read"] for step in one.logged("crawl")] == [1])
        fails.clear()
        until(lambda: is_answered(index, "good_module", "bad_module"))
    assert_exact(index, catalog)


def test_late_read_is_answered_without_new_events(index: ServedIndex, catalog: Catalog, tmp_path: Path):
    index.wheel("late", "1.0")
    index.faults = fail("late-1.0")
    begin(index, catalog)
    with following(index.crawler(catalog), tmp_path) as one:
        assert not is_answered(index, "late_module")
        index.faults = None
        assert retry(index.crawler(catalog)).reads.data == 1
        until(lambda: is_answered(index, "late_module"))
        assert [step["rows"] for step in one.logged("late dump")] == [1]


@pytest.mark.nightly
def test_other_worker_can_do_the_same_work_concurrently(index: ServedIndex, catalog: Catalog, tmp_path: Path):
    begin(index, catalog)
    other = index.crawler(catalog)
    with following(index.crawler(catalog), tmp_path) as one:
        for number in range(5):
            for part in range(4):
                index.wheel(f"project{number}-{part}", "1.0")
            crawl_incremental(other)
            list(write_missing_ranges(catalog, index.storage))
        names = [f"project{number}_{part}_module" for number in range(5) for part in range(4)]
        until(lambda: is_answered(index, *names))
        until(lambda: missing_ranges(catalog) == [])
    assert one.is_clean
    assert_exact(index, catalog)
    assert set(journal_files(index).values()) == {1}
