"""Dagster makes requested visits, unless a follower does."""

import dagster as dg

from pypi_assets.catalog.reports.visit_requests import RequestState, find_request
from pypi_assets.catalog.work.requested_visits import request_visits
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets_tests.defs.conftest import Pipeline
from pypi_assets_tests.served_index import ServedIndex


def test_requested_visit_is_made_by_a_run(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.skipped("requested_visits")
    index.wheel("demo", "1.0")
    crawl_full(pipeline.crawler)
    catalog = pipeline.catalog
    pipeline.skipped("requested_visits")
    [id_] = catalog.transact(lambda connection: request_visits(connection, ["demo"], catalog.clock()))
    assert isinstance(pipeline.tick("requested_visits"), dg.RunRequest)
    assert pipeline.run("visit_requested").success
    with catalog.read() as connection:
        found = find_request(connection, id_, catalog.clock())
    assert found is not None
    assert (found.state, found.outcome) == (RequestState.DONE, "full")
    pipeline.skipped("requested_visits")
