"""A run takes all shards if a second machine could not help."""

import pytest

from pypi_assets.crawl.full_crawl import SHARDS_IN_ONE_RUN, SMALL_SELECTION, shards_in_one_run

POSTGRESQL = "postgresql+psycopg://host/catalog"


def test_sqlite_catalog_is_crawled_by_one_machine_in_one_run():
    assert shards_in_one_run("sqlite:////data/catalog.sqlite", 0) is None


@pytest.mark.parametrize(
    ("selected", "most"),
    [(0, SHARDS_IN_ONE_RUN), (1, None), (SMALL_SELECTION, None), (SMALL_SELECTION + 1, SHARDS_IN_ONE_RUN)],
)
def test_several_machines_share_a_crawl_unless_it_is_small(selected: int, most: int | None):
    assert shards_in_one_run(POSTGRESQL, selected) == most
