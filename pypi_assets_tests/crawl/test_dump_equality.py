"""A full dump and the dumps of all ranges after it equal a new full dump, whatever happened in between."""

import json
import tempfile
from pathlib import Path

import pytest
import requests
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.range_ledger import RangeState, ledger
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_registry import open_range_dump, range_dump_rows
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_range, open_ranges
from pypi_assets.crawl.retry_failures import retry
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets_tests.crawl.test_exactness import changes, do
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.served_index import JSON, ServedIndex, live, served_index

Rows = dict[str, dict[str, object]]

steps = st.one_of(
    st.tuples(st.just("change"), changes),
    st.tuples(st.just("change"), changes),
    st.tuples(
        st.sampled_from(["allocate", "crawl", "crawl", "dump", "dump", "full crawl", "retry"]), st.integers(0, 5)
    ),
    st.tuples(st.sampled_from(["hide a file", "no page", "no files", "heal"]), st.sampled_from(["alpha", "beta-pkg"])),
)


class Following:
    """A catalog that follows an index while both have their troubles, and the rows of its dumps."""

    def __init__(self, index: ServedIndex, catalog: Catalog) -> None:
        self.index, self.catalog = index, catalog
        self.ranges: dict[SerialRange, list[dict[str, object]]] = {}

    @property
    def crawler(self) -> Crawler:
        return self.index.crawler(self.catalog, retry_deadline_s=0.0)

    def full_dump(self) -> Rows:
        directory = full_dump(self.catalog, self.index.storage, 1).directory
        return {str(row["filename"]): row for row in iter_dump(self.index.storage, directory)}

    def undumped(self) -> list[SerialRange]:
        with self.catalog.read() as connection:
            complete = [entry.serials for entry in ledger(connection) if entry.state == RangeState.COMPLETE]
        return [serials for serials in complete if serials.start > 0 and serials not in self.ranges]

    def step(self, kind: str, choice: object) -> None:
        if kind == "change":
            do(self.index, *choice)  # type: ignore[misc]
        elif kind == "allocate":
            allocate_next_ranges(self.crawler)
        elif kind == "crawl" and (ranges := open_ranges(self.crawler)):
            crawl_range(self.crawler, ranges[int(str(choice)) % len(ranges)])
        elif kind == "dump" and (ranges := self.undumped()):
            serials = ranges[int(str(choice)) % len(ranges)]
            self.ranges[serials] = list(
                map(as_dumped, range_dump_rows(self.catalog, open_range_dump(self.catalog, serials)))
            )
        elif kind == "full crawl":
            crawl_full(self.crawler)
        elif kind == "retry":
            retry(self.crawler)
        elif kind == "heal":
            self.index.faults = None
        elif kind in {"hide a file", "no page", "no files"}:
            self.trouble(kind, str(choice))

    def trouble(self, kind: str, project: str) -> None:
        page = f"/simple/{project}/"
        self.index.faults = None
        answer = requests.get(f"{self.index.url}{project}/", headers={"Accept": JSON}, timeout=60)
        shown = answer.json() if answer.ok else {"files": []}
        kept = json.dumps(shown | {"files": shown["files"][1:]})

        def faults(request: Request) -> Response | None:
            if kind == "no files" and "/packages/" in request.url.path:
                return PlainTextResponse("", 503)
            if request.url.path != page or kind == "no files":
                return None
            return PlainTextResponse("", 404) if kind == "no page" else Response(kept, media_type=JSON)

        self.index.faults = faults if answer.ok else None

    def finish(self) -> None:
        """All is well again: whatever is left is crawled and dumped."""
        self.index.faults = None
        self.index.wheel("last", f"1.{self.index.serial}")
        allocate_next_ranges(self.crawler)
        for serials in open_ranges(self.crawler):
            crawl_range(self.crawler, serials)
        for _ in self.undumped():
            self.step("dump", 0)


DRIFT = [("hide a file", "alpha"), ("full crawl", 0), ("heal", "alpha")]


@pytest.mark.nightly
@settings(max_examples=examples(5), suppress_health_check=[HealthCheck.too_slow])
@given(before=st.lists(changes, max_size=5), happening=st.lists(steps, min_size=4, max_size=16))
@example(before=[("wheel", "Alpha", "1.0")], happening=DRIFT)
@example(
    before=[("wheel", "Alpha", "1.0")],
    happening=[("change", ("sdist", "Alpha", "1.0")), ("allocate", 0), ("crawl", 0), ("dump", 0), *DRIFT],
)
@example(
    before=[("wheel", "Alpha", "1.0")],
    happening=[
        ("no files", "alpha"),
        ("change", ("sdist", "Alpha", "1.0")),
        ("allocate", 0),
        ("crawl", 0),
        ("dump", 0),
        ("heal", "alpha"),
        ("retry", 0),
    ],
)
def test_a_full_dump_and_the_ranges_after_it_equal_a_new_full_dump(before, happening):
    with tempfile.TemporaryDirectory() as folder, served_index(Path(folder)) as index:
        index.wheel("first", "1.0")
        for change in before:
            do(index, *change)
        catalog = open_catalog(sqlite_database(Path(folder, "catalog.sqlite")))
        following = Following(index, catalog)
        crawl_full(following.crawler)
        dumped = following.full_dump()
        for kind, choice in happening:
            following.step(kind, choice)
        following.finish()
        for serials in sorted(following.ranges):
            for row in following.ranges[serials]:
                if row["tombstone"]:
                    dumped.pop(str(row["filename"]), None)
                else:
                    dumped[str(row["filename"])] = row
        assert dumped == following.full_dump()
        retry(following.crawler)
        crawl_full(following.crawler)
        following.finish()
        assert live(catalog) == index.shown()
        catalog.close()
