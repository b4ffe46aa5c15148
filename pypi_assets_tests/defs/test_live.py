"""Dagster's real webserver and daemon run the pipeline, without any replacement."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from starlette.requests import Request

from pypi_assets.catalog.reports.range_states import ShownState, range_statuses
from pypi_assets.components import catalog_from, storage_from
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets.lookup.latest import open_latest
from pypi_assets.settings import Settings, load_settings
from pypi_assets_tests.defs.conftest import lose_state, restore_state
from pypi_assets_tests.served_dagster import RANGE_ASSETS, ServedDagster, served_dagster
from pypi_assets_tests.served_index import ServedIndex, served_index


def providers(settings: Settings, module: str) -> list[object] | None:
    try:
        with open_latest("modules", storage_from(settings)) as reader:
            return list(reader.module(module).results) or None
    except LeveldbError:
        return None


@pytest.mark.nightly
def test_new_file_is_answered_and_failed_range_is_backfilled_by_graphql(tmp_path: Path) -> None:
    with served_index(tmp_path / "served") as index:
        index.wheel("one", "1.0")
        variables = {
            "PYPI_ASSETS_HOME": str(tmp_path / "home"),
            "PYPI_ASSETS_INDEX_URL": index.url,
            "PYPI_ASSETS_SENSORS_ON": "true",
            "PYPI_ASSETS_SENSOR_INTERVAL_S": "5",
        }
        settings = load_settings(home=tmp_path / "home", index_url=index.url)
        baseline(settings, index)
        (tmp_path / "dagster").mkdir()
        with served_dagster(tmp_path / "dagster", variables) as dagster:
            found = dagster.until(lambda: providers(settings, "one_module"), 120)
            assert found == [{"module": "one_module", "project": "one", "versions": ["1.0"]}]

            index.faults = losing_the_state(settings)
            index.wheel("two", "1.0")
            [failed] = dagster.until(lambda: failed_ranges(dagster), 150)
            keys_of = '{assetNodeOrError(assetKey: {path: ["changelog"]}) {... on AssetNode {partitionKeys}}}'
            assert dagster.query(keys_of)["assetNodeOrError"]["partitionKeys"][-1] == failed
            assert failed.endswith(f"-{index.serial}")
            assert states_of_ranges(settings)[failed] == ShownState.FAILED

            index.faults = None
            with closing(catalog_from(settings)) as catalog:
                restore_state(catalog)
            backfill = dagster.backfill(RANGE_ASSETS, [failed])
            assert dagster.until(lambda: dagster.backfill_ended(backfill), 120) == "COMPLETED_SUCCESS"
            assert failed_ranges(dagster) is None
            assert set(states_of_ranges(settings).values()) == {ShownState.COMPLETE}
            dagster.add_range("1-2")
            backfill = dagster.backfill(RANGE_ASSETS, [failed, "1-2"])
            assert dagster.until(lambda: dagster.backfill_ended(backfill), 120) != "COMPLETED_SUCCESS"
            assert {asset: dagster.failed_partitions(asset) for asset in RANGE_ASSETS} == {
                asset: ["1-2"] for asset in RANGE_ASSETS
            }
            found = dagster.until(lambda: providers(settings, "two_module"), 120)
            assert found == [{"module": "two_module", "project": "two", "versions": ["1.0"]}]


def losing_the_state(settings: Settings) -> Callable[[Request], None]:
    """Return faults that make every run fail as soon as a page is requested."""

    def lose(request: Request) -> None:
        if request.url.path == "/simple/two/":
            with closing(catalog_from(settings)) as catalog:
                lose_state(catalog)

    return lose


def baseline(settings: Settings, index: ServedIndex) -> None:
    """Run a full crawl and a full dump with the domain code. Other tests cover the runs of 1,000 shards."""
    catalog = catalog_from(settings)
    crawl_full(index.crawler(catalog))
    full_dump(catalog, storage_from(settings), 1)
    catalog.close()


def failed_ranges(dagster: ServedDagster) -> list[str] | None:
    """Return the ranges that the UI shows as failed, or None if there are none."""
    return dagster.failed_partitions("changed_distributions") or None


def states_of_ranges(settings: Settings) -> dict[str, ShownState]:
    catalog = catalog_from(settings)
    with catalog.read() as connection:
        found = {status.serials.key: status.state for status in range_statuses(connection, catalog.clock())}
    catalog.close()
    return found
