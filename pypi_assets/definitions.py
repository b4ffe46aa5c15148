"""What workspace.yaml loads: everything that Dagster is to know, put together from the settings.

Loading it asks no index and opens no database; what is wrong with the settings is told by the run or tick that needs
them.
"""

import dagster as dg

from pypi_assets.catalog.database import Catalog
from pypi_assets.defs.assets.changes import changed_distribution_data, changed_distributions, changelog
from pypi_assets.defs.assets.crawl import crawled_distribution_data, crawled_projects, project_listing
from pypi_assets.defs.assets.dumps import compacted_dump, full_dump, incremental_dump
from pypi_assets.defs.assets.leveldbs import depgraph_leveldb, modules_leveldb
from pypi_assets.defs.assets.parquet import parquet_export
from pypi_assets.defs.checks import CHECKS
from pypi_assets.defs.health import HEALTH_CHECKS
from pypi_assets.defs.jobs import JOBS
from pypi_assets.defs.parts import Parts
from pypi_assets.defs.run_notices import build_failed_check_sensor, build_failed_run_sensor
from pypi_assets.defs.schedules import build_schedules
from pypi_assets.defs.sensors import build_sensors
from pypi_assets.distributions.reader_pool import ReaderPool
from pypi_assets.index.client import IndexClient
from pypi_assets.settings import Settings, SettingsError, load_settings
from pypi_assets.storage.store import Storage

ASSETS = [
    project_listing,
    crawled_projects,
    crawled_distribution_data,
    changelog,
    changed_distributions,
    changed_distribution_data,
    full_dump,
    incremental_dump,
    compacted_dump,
    modules_leveldb,
    depgraph_leveldb,
    parquet_export,
]


def build_defs(
    settings: Settings | SettingsError,
    *,
    index: IndexClient | None = None,
    catalog: Catalog | None = None,
    storage: Storage | None = None,
    readers: ReaderPool | None = None,
) -> dg.Definitions:
    """The definitions for `settings`; an index, a catalog, a storage or readers that are given are used in their place.

    What is given is closed by its giver.
    """
    interval_s, on = (
        (settings.sensor_interval_s, settings.sensors_on) if isinstance(settings, Settings) else (60, False)
    )
    checks = [*CHECKS, *HEALTH_CHECKS]
    return dg.Definitions(
        assets=ASSETS,
        asset_checks=checks,
        jobs=JOBS,
        sensors=[
            *build_sensors(interval_s, on=on),
            build_failed_run_sensor(on=on),
            build_failed_check_sensor(checks, on=on),
        ],
        schedules=build_schedules(on=on),
        resources={"parts": Parts(settings, index=index, catalog=catalog, storage=storage, readers=readers)},
        executor=dg.in_process_executor,
    )


def _loaded() -> Settings | SettingsError:
    try:
        return load_settings()
    except SettingsError as error:
        return error


defs = build_defs(_loaded())
