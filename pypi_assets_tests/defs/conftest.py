"""A served index, a Dagster instance, and definitions that follow the index and run on the instance."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.event_log import InMemoryEventLogStorage
from dagster._core.storage.event_log import in_memory as events_in_memory
from dagster._core.storage.runs import in_memory as runs_in_memory
from sqlalchemy import Connection

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.components import storage_from
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.definitions import build_defs
from pypi_assets.defs.factories import AssetFactory, ForIndex
from pypi_assets.defs.policy import RANGE_END_TAG, RANGE_START_TAG
from pypi_assets.defs.ranges import RangeAsset, range_step
from pypi_assets.defs.resources import Resources, build_resources
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.settings import Settings, load_settings
from pypi_assets.storage.store import Storage
from pypi_assets_tests.served_index import ServedIndex, served_index, shared_readers


@dataclass
class Pipeline:
    """The definitions of one home, with their own resources."""

    settings: Settings
    instance: dg.DagsterInstance
    ahead_s: float = 0.0  # the offset of the catalog's clock to the true time
    cursors: dict[str, str | None] = field(default_factory=dict)
    resources: Resources = field(init=False)
    defs: dg.Definitions = field(init=False)

    def __post_init__(self) -> None:
        catalog = open_catalog(self.settings.resolved_database_url, lambda: time.time() + self.ahead_s)
        storage = storage_from(self.settings)
        given: dict[str, Any] = {"catalog": catalog, "storage": storage, "readers": shared_readers()}
        self.resources, self.defs = build_resources(self.settings, **given), build_defs(self.settings, **given)

    @property
    def catalog(self) -> Catalog:
        return self.resources.catalog.get()

    @property
    def storage(self) -> Storage:
        return self.resources.storage.get()

    @property
    def crawler(self) -> Crawler:
        return self.resources.crawler.get()

    def change_settings(self, **changed: object) -> None:
        """Change the settings that ticks and checks see from now on. Runs of jobs keep the old settings."""
        self.resources.settings.loaded.value = self.settings.model_copy(update=changed)

    def close(self) -> None:
        self.resources.close()
        self.catalog.close()

    def run(self, job: str, key: str | None = None, **options: Any) -> dg.ExecuteInProcessResult:
        """Run a job for one partition, or as launched without a partition."""
        return self.defs.resolve_job_def(job).execute_in_process(instance=self.instance, partition_key=key, **options)

    def materialize(
        self,
        asset: dg.AssetsDefinition | AssetFactory | RangeAsset,
        first: str | None = None,
        last: str | None = None,
        **options: Any,
    ) -> dg.ExecuteInProcessResult:
        """Materialize only this asset, for one partition or for all partitions from `first` to `last`."""
        tags = {RANGE_START_TAG: first, RANGE_END_TAG: last} if first and last else {}
        resources = self.resources.by_name()
        options = {"raise_on_error": False} | options
        factory = range_step([asset]) if isinstance(asset, RangeAsset) else asset
        made = factory.make(ForIndex()) if isinstance(factory, AssetFactory) else factory
        return dg.materialize(
            [made],
            instance=self.instance,
            partition_key=None if last else first,
            tags=tags,
            resources=resources,
            **options,
        )

    def tick(self, sensor: str) -> dg.SensorResult | dg.RunRequest | dg.SkipReason:
        """Return the result of a sensor tick. Like the daemon, store its cursor and add its partitions and events."""
        cursor, resources = self.cursors.get(sensor), self.resources.by_name()
        with dg.build_sensor_context(instance=self.instance, cursor=cursor, resources=resources) as context:
            result = self.defs.resolve_sensor_def(sensor)(context)
        if isinstance(result, dg.SensorResult):
            self.cursors[sensor] = result.cursor or cursor
            for request in result.dynamic_partitions_requests or []:
                self.instance.add_dynamic_partitions(request.partitions_def_name, request.partition_keys)
            for reported in result.asset_events:
                assert isinstance(reported, dg.AssetMaterialization)
                self.instance.report_runless_asset_event(reported)
        return result  # type: ignore[return-value]

    def check(self, name: str) -> dg.AssetCheckResult:
        """Run only the check of that name, and return its result."""
        checks = [one for one in self.defs.asset_checks or () if isinstance(one, dg.AssetChecksDefinition)]
        [check] = [one for one in checks if [key.name for key in one.check_keys] == [name]]
        resources = self.resources.by_name()
        used = {key: resources[key] for key in check.required_resource_keys if key in resources}
        has_context = "context" in signature(check.op.compute_fn.decorated_fn).parameters  # type: ignore[union-attr]
        result = check(*([dg.build_asset_check_context()] if has_context else []), **used)
        assert isinstance(result, dg.AssetCheckResult)
        return result

    def asset(self, key: str) -> dg.AssetsDefinition:
        assets = [one for one in self.defs.assets or () if isinstance(one, dg.AssetsDefinition)]
        return next(asset for asset in assets if dg.AssetKey(key) in asset.keys)

    def requested(self, sensor: str) -> list[str]:
        """Return the partition keys that a tick of `sensor` requests."""
        result = self.tick(sensor)
        assert isinstance(result, dg.SensorResult), result
        return [str(request.partition_key) for request in result.run_requests or []]

    def skipped(self, sensor: str) -> str:
        """Return the reason why a tick of `sensor` requests no run."""
        result = self.tick(sensor)
        reason = result.skip_reason if isinstance(result, dg.SensorResult) else result
        assert isinstance(reason, dg.SkipReason), result
        return str(reason.skip_message)

    def marked(self, asset: str) -> list[str]:
        """Return the key of each materialization of `asset`, sorted."""
        records = self.instance.fetch_materializations(dg.AssetKey(asset), limit=5_000).records
        return sorted(str(record.partition_key) for record in records)

    def states(self, asset: str, keys: Sequence[str]) -> list[str]:
        """Return the status that Dagster shows for each partition of an asset: materialized, failed or missing."""
        partitions = self.asset(asset).partitions_def
        found = self.instance.get_status_by_partition(dg.AssetKey(asset), list(keys), partitions)  # type: ignore[arg-type]
        assert found is not None
        return [state.value.lower() if (state := found.get(key)) else "missing" for key in keys]

    def run_ranges(self, job: str, keys: Sequence[str], **options: Any) -> dg.ExecuteInProcessResult:
        """Run a job over all these ranges at once, like a run of a backfill."""
        return self.run(job, raise_on_error=False, tags={RANGE_START_TAG: keys[0], RANGE_END_TAG: keys[-1]}, **options)

    def metadata(self, asset: str, key: str | None = None) -> dict[str, Any]:
        """Return the metadata of the newest materialization of one partition."""
        for record in self.instance.fetch_materializations(dg.AssetKey(asset), limit=5_000).records:
            if record.partition_key == key and record.asset_materialization:
                return {name: value.value for name, value in record.asset_materialization.metadata.items()}
        raise KeyError((asset, key))

    def crawled(self, shards: int = 1) -> None:
        """Crawl and dump everything without Dagster."""
        crawl_full(self.crawler)
        full_dump(self.catalog, self.storage, shards)


@contextmanager
def _held_connection(storage: InMemoryEventLogStorage) -> Iterator[Connection]:
    with storage._db_lock, storage._held_conn.begin():
        yield storage._held_conn


@pytest.fixture(scope="session", autouse=True)
def _instances_in_memory_are_quick() -> Iterator[None]:
    """Speed up Dagster's in-memory storages.

    They open a connection for each transaction, read the columns of a table for each event, and read all schema
    revisions to record the newest.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InMemoryEventLogStorage, "_connect", _held_connection)
        patch.setattr(InMemoryEventLogStorage, "_has_asset_key_col_on_connection", lambda *_: True)
        for module in (events_in_memory, runs_in_memory):
            patch.setattr(module, "stamp_alembic_rev", lambda *_: None)
        yield


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ServedIndex]:
    with served_index(tmp_path / "served") as served:
        served.wheel("alpha", "1.0", requires_dist=["beta>=1"])
        served.sdist("alpha", "1.0")
        served.wheel("beta", "1.0")
        served.wheel("gamma", "2.0")
        yield served


def settings_for(url: str, home: Path, **options: object) -> Settings:
    """Load settings without pauses, so that tests need not wait."""
    quick = {"requests_per_second": 10_000, "request_attempts": 1, "retry_pause_s": 0.01, "retry_deadline_s": 0.05}
    exact = {"revisit_share": 0}  # otherwise one range in a hundred visits one more project
    return load_settings(index_url=url, home=home, **(quick | exact | options))


@pytest.fixture
def pipeline(index: ServedIndex, tmp_path: Path) -> Iterator[Pipeline]:
    with dg.DagsterInstance.ephemeral() as instance:
        made = Pipeline(settings_for(index.url, tmp_path / "home"), instance)
        yield made
        made.close()


def failure_text(result: dg.ExecuteInProcessResult) -> str:
    """Return the text that the failed step shows."""
    (event,) = [event for event in result.all_events if event.is_step_failure]
    failure = event.step_failure_data
    return str(failure.user_failure_data.description if failure.user_failure_data else failure.error)


def lose_state(catalog: Catalog) -> None:
    """Remove catalog state that every run needs, until `restore_state`."""
    with catalog.write() as connection:
        connection.exec_driver_sql("CREATE TABLE kept AS SELECT * FROM catalog_state")
        connection.exec_driver_sql("DELETE FROM catalog_state")


def restore_state(catalog: Catalog) -> None:
    with catalog.write() as connection:
        connection.exec_driver_sql("INSERT INTO catalog_state SELECT * FROM kept")
