"""A run takes all shards where no second machine could help."""

import pytest

from pypi_assets.crawl.full_crawl import SHARDS_IN_ONE_RUN, SMALL_SELECTION, shards_in_one_run

POSTGRESQL = "postgresql+psycopg://host/catalog"


def test_a_catalog_in_sqlite_is_crawled_by_one_machine_in_one_run():
    assert shards_in_one_run("sqlite:////data/catalog.sqlite", 0) is None


@pytest.mark.parametrize(
    ("selected", "most"),
    [(0, SHARDS_IN_ONE_RUN), (1, None), (SMALL_SELECTION, None), (SMALL_SELECTION + 1, SHARDS_IN_ONE_RUN)],
)
def test_several_machines_share_all_but_a_small_selection(selected: int, most: int | None):
    assert shards_in_one_run(POSTGRESQL, selected) == most
