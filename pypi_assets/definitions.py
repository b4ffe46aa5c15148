"""All Dagster definitions, built from the settings, for workspace.yaml.

Loading them contacts no index and opens no database. With wrong settings, the definitions still load, and each run or
tick that needs the settings fails with their error message.
"""

import logging
import pkgutil
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import dagster as dg

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.projects import SHARDS_IN_A_PART
from pypi_assets.crawl.full_crawl import shards_in_one_run
from pypi_assets.defs import assets
from pypi_assets.defs.checks import CHECKS
from pypi_assets.defs.confusion import CONFUSION_SCHEDULE, confusion_job, no_name_became_public
from pypi_assets.defs.factories import AssetFactory, ForIndex, factories_in
from pypi_assets.defs.health import HEALTH_CHECKS
from pypi_assets.defs.jobs import FEW_RUNS, MANY_RUNS, OF_ONE_PARTITION
from pypi_assets.defs.journal_topics import has_kafka, journal_topics, new_journal_records, publish_journal_job
from pypi_assets.defs.maintenance_jobs import MAINTENANCE_JOBS
from pypi_assets.defs.naming import BARE, JobFactory, Naming
from pypi_assets.defs.ranges import RangeAsset, range_step
from pypi_assets.defs.resources import build_resources
from pypi_assets.defs.run_notices import build_failed_check_sensor, build_failed_run_sensor, next_steps
from pypi_assets.defs.schedules import build_schedules
from pypi_assets.defs.sensors import SENSORS
from pypi_assets.defs.solvability_days import build_solvability, first_day
from pypi_assets.distributions.reader_pool import ReaderPool
from pypi_assets.index.protocol import PackageIndex
from pypi_assets.logs import set_up_logs
from pypi_assets.setting_sources import read_all_indexes, read_variables, selected_index
from pypi_assets.settings import Settings, SettingsError, load_settings
from pypi_assets.storage.store import Storage
from pypi_assets.workspace import ATTRIBUTE_PREFIX, name_in_dagster


def _asset_factories() -> Iterator[AssetFactory]:
    """Yield the assets of each module in `defs/assets`. The assets of serial ranges are one step."""
    of_ranges: list[RangeAsset] = []
    for module in pkgutil.iter_modules(assets.__path__):
        declared = vars(import_module(f"{assets.__name__}.{module.name}")).values()
        of_ranges += [one for one in declared if isinstance(one, RangeAsset)]
        yield from factories_in(declared)
    yield range_step(of_ranges)


def _for_index(settings: Settings | SettingsError, naming: Naming) -> ForIndex:
    """Return the common part of an index's definitions. If the settings are wrong, it has their default values."""
    if isinstance(settings, SettingsError):
        return ForIndex(naming)
    hours = settings.freshness_hours
    shards = shards_in_one_run(settings.resolved_database_url, len(settings.projects))
    return ForIndex(
        naming,
        settings.owners,
        None if hours is None else dg.FreshnessPolicy.time_window(timedelta(hours=hours)),
        None if shards is None else shards // SHARDS_IN_A_PART,
    )


def _package_index(settings: Settings | SettingsError, index: ForIndex) -> dg.AssetSpec:
    """Return the external asset at the start of all lineage, with the index's address if the settings are correct."""
    metadata: dict[str, dg.MetadataValue[Any]] = {"docs": dg.MetadataValue.text("docs/indexes.md")}
    if isinstance(settings, Settings):
        parts = urlsplit(settings.index_url)
        url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()  # without a login
        metadata["url"] = dg.MetadataValue.url(url)
    return dg.AssetSpec(
        index.naming.key("package_index"),
        group_name="package_index",
        description="The followed package index: its list of projects, their pages, its changelog and its files.",
        metadata=metadata,
        kinds={"python"},
        owners=list(index.owners),
    )


ASSETS = list(_asset_factories())


def build_defs(
    settings: Settings | SettingsError,
    naming: Naming = BARE,
    *,
    is_private: bool = False,
    index: PackageIndex | None = None,
    catalog: Catalog | None = None,
    storage: Storage | None = None,
    readers: ReaderPool | None = None,
) -> dg.Definitions:
    """Return the definitions for `settings`, named after their index. A private index is also compared with public
    ones.

    An index, a catalog, a storage or readers that are passed replace the ones in the settings. The caller closes them.
    """
    interval_s, on = 60, False
    if isinstance(settings, Settings):
        interval_s, on = settings.sensor_interval_s, settings.sensors_on
    publishes, since = has_kafka(settings), first_day(settings)
    for_index = _for_index(settings, naming)
    solved = [build_solvability(since, for_index)] if since else []
    factories: list[JobFactory] = [
        *FEW_RUNS,
        *MANY_RUNS,
        *MAINTENANCE_JOBS,
        *(one.job for one in solved),
        *([confusion_job] if is_private else []),
        *([publish_journal_job] if publishes else []),
    ]
    jobs = [naming.job(factory) for factory in factories]
    sensors = [one.make(naming, interval_s, on=on) for one in [*SENSORS, *([new_journal_records] if publishes else [])]]
    extra = [*(one.schedule for one in solved), *([CONFUSION_SCHEDULE] if is_private else [])]
    schedules = build_schedules(naming, extra, on=on)
    of_assets = [*CHECKS, *HEALTH_CHECKS, *([no_name_became_public] if is_private else [])]
    checks = [*(one.make(naming) for one in of_assets), *(check for one in solved for check in one.checks)]
    return dg.Definitions(
        assets=[
            _package_index(settings, for_index),
            *(one.make(for_index) for one in [*ASSETS, *([journal_topics] if publishes else [])]),
            *(one.asset for one in solved),
        ],
        asset_checks=checks,
        jobs=jobs,
        sensors=[
            *sensors,
            build_failed_run_sensor(
                naming, next_steps(jobs, sensors, schedules), [naming.job(one) for one in OF_ONE_PARTITION], on=on
            ),
            build_failed_check_sensor(naming, checks, on=on),
        ],
        schedules=schedules,
        resources=build_resources(
            settings, naming=naming, index=index, catalog=catalog, storage=storage, readers=readers
        ).by_name(),
        executor=dg.in_process_executor,
    )


def _loaded(naming: Naming | None = None) -> dg.Definitions:
    """Return the definitions of the selected index, with the given names or names from the settings.

    They load even if the settings are wrong. A variable that is not a setting is logged once for each process.
    """
    is_private = False
    try:
        variables = read_variables()
        for warning in variables.warnings() if naming is None else ():
            logging.getLogger("pypi_assets").warning(warning)
        if table := variables.index:
            is_private = table.is_private
            naming = naming or (BARE if table.is_default else Naming(name_in_dagster(table.name)))
        return build_defs(load_settings(), naming or BARE, is_private=is_private)
    except SettingsError as error:
        return build_defs(error, naming or BARE, is_private=is_private)


@cache
def _of_index(name: str) -> dg.Definitions:
    """Return the definitions of the index with this name in Dagster."""
    naming = Naming(name)
    try:
        indexes = read_all_indexes()
    except SettingsError as error:
        return build_defs(error, naming)
    names = indexes.names if indexes else []
    with selected_index(next((one for one in names if name_in_dagster(one) == name), name)):
        return _loaded(naming)


def __getattr__(name: str) -> dg.Definitions:
    """Return the definitions of an index that is not the default, such as `index_company`: see `workspace.py`."""
    if name.startswith(ATTRIBUTE_PREFIX):
        return _of_index(name.removeprefix(ATTRIBUTE_PREFIX))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


set_up_logs(is_guest=True)
defs = _loaded()
