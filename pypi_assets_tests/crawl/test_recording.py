"""A step-by-step recording of the server that runs PyPI: after each step, the catalog equals its pages."""

import json
import math
import re
import xmlrpc.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.range_ledger import SIMPLE
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.reports.moments import answerable_serial
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.index.client import IndexClient
from pypi_assets.index.rate import RateLimit, Rates
from pypi_assets.index.transport import Retries
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.index.loopback import Answer, Request, serving
from pypi_assets_tests.index.recording import load_recording, replay
from pypi_assets_tests.served_index import live, shared_readers

RECORDING = load_recording()
STEPS = RECORDING["steps"]
((CHANGELOG,), _) = xmlrpc.client.loads(RECORDING["odd_requests"][7]["response"]["body"])
PAGES = [f"/simple/{project}/" for project in ("demo-pkg", "demo-lib", "other-proj")]


def shown(step: dict[str, Any]) -> set[tuple[str, bool]]:
    """Return the (filename, yanked) pairs that the pages of the step show."""
    answers = [each["response"] for each in step["exchanges"] if each["request"]["path"] in PAGES]
    assert len(answers) == len(PAGES)
    pages = [json.loads(answer["body"]) for answer in answers if answer["status"] == 200]
    return {(file["filename"], bool(file["yanked"])) for page in pages for file in page["files"]}


def answer(exchanges: list[dict[str, Any]], request: Request, index: str, files: str) -> Answer:
    """Return the recorded answer. Changelog requests with an unrecorded serial are answered with a part of the whole
    changelog.
    """
    recorded = replay(exchanges, request, index, files)
    since = re.search(rb"changelog_since_serial.*?<int>(\d+)</int>", request.body, re.DOTALL)
    if recorded.status != 501 or since is None:
        return recorded
    last = exchanges[0]["response"]["body"]
    through = int(re.search(r"<int>(\d+)</int>", last)[1])
    rows = [event for event in CHANGELOG if int(since[1]) < event[4] <= through]
    body = xmlrpc.client.dumps((rows,), methodresponse=True, allow_none=True).encode()
    return Answer(200, body, {"Content-Type": "text/xml"})


@contextmanager
def recorded_index(folder: Path, catalog: Catalog, exchanges: list[dict[str, Any]]) -> Iterator[Crawler]:
    """Yield a crawler of an index that answers from `exchanges`, which may be replaced meanwhile."""
    urls: list[str] = []
    with serving(lambda request: answer(exchanges, request, *urls)) as loopback:
        urls += [loopback.url, loopback.other_url]
        index = IndexClient(
            f"{loopback.url}/simple/",
            changelog_url=f"{loopback.url}/pypi",
            rates=Rates(RateLimit(math.inf), RateLimit(math.inf)),
            allowed_file_hosts=["localhost"],
            retries=Retries(1),
        )
        with index:
            yield Crawler(
                index=index,
                catalog=catalog,
                storage=open_storage((folder / "storage").as_uri()),
                readers=shared_readers(),
                selection=Selection(),
                connections=4,
                retry_pause_s=0.01,
                retry_deadline_s=0.02,
            )


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(0, len(STEPS), 3), ids=lambda start: f"from step {start}")
def test_catalog_has_the_files_of_the_pages_after_each_step(tmp_path: Path, start: int):
    catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    exchanges: list[dict[str, Any]] = []
    with recorded_index(tmp_path, catalog, exchanges) as crawler:
        for number, step in enumerate(STEPS[start:]):
            exchanges[:] = [*step["exchanges"], *RECORDING["files"]]
            crawl_incremental(crawler) if number else crawl_full(crawler)
            assert catalog_status(catalog).complete_serial == step["serial_after"]
            assert live(catalog) == shown(step), step["event"]
        crawl_full(crawler)
        assert live(catalog) == shown(STEPS[-1])
        for step in STEPS[start:]:
            assert live(catalog, answerable_serial(catalog, step["serial_after"])) == shown(step), step["event"]
    catalog.close()


@pytest.mark.nightly
def test_catalog_without_changelog_has_the_files_of_the_pages_after_each_step(tmp_path: Path):
    """The recorded list is cached once, so its serial can be that of an earlier step."""
    catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    exchanges: list[dict[str, Any]] = []
    exact: dict[int, set[tuple[str, bool]]] = {}
    with recorded_index(tmp_path, catalog, exchanges) as crawler:
        crawler = replace(crawler, lister=SIMPLE)
        for number, step in enumerate(STEPS):
            exchanges[:] = [*step["exchanges"], *RECORDING["files"]]
            crawl_incremental(crawler) if number else crawl_full(crawler)
            complete = catalog_status(catalog).complete_serial
            if complete == step["serial_after"]:
                assert live(catalog) == shown(step), step["event"]
                exact[complete] = shown(step)
        for serial, expected in exact.items():
            assert live(catalog, answerable_serial(catalog, serial)) == expected
    assert len(exact) >= len(STEPS) // 2
    catalog.close()


def test_last_step_with_history_knows_all_earlier_steps(tmp_path: Path):
    catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    exchanges = [*STEPS[-1]["exchanges"], *RECORDING["files"], *RECORDING["odd_requests"]]  # with the whole changelog
    with recorded_index(tmp_path, catalog, exchanges) as crawler:
        crawl_full(crawler, with_history=True)
    for step in STEPS:
        assert live(catalog, answerable_serial(catalog, step["serial_after"])) == shown(step), step["event"]
    assert {name for name, _ in live(catalog, 4)} == {"demo_pkg-1.0-py3-none-any.whl"}
    catalog.close()
