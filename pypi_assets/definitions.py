"""What workspace.yaml loads: all definitions of Dagster, put together from the settings.

Loading it contacts no index and opens no database. Settings that are wrong fail the run or tick that needs them, with
their message.
"""

import logging
import pkgutil
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cache, partial
from importlib import import_module
from typing import TypeVar
from urllib.parse import urlsplit

import dagster as dg

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.projects import SHARDS_IN_A_PART
from pypi_assets.crawl.run_size import SHARDS_IN_ONE_RUN, shards_in_one_run
from pypi_assets.defs import assets, checks, health
from pypi_assets.defs.assets import group_of
from pypi_assets.defs.confusion import CONFUSION_SCHEDULE, confusion_job, no_name_became_public
from pypi_assets.defs.jobs import FEW_RUNS, MANY_RUNS, OF_ONE_PARTITION
from pypi_assets.defs.journal_topics import has_kafka, journal_topics, new_journal_records_sensor, publish_journal_job
from pypi_assets.defs.maintenance_jobs import MAINTENANCE_JOBS
from pypi_assets.defs.naming import BARE, Job, Naming
from pypi_assets.defs.package_index import PACKAGE_INDEX
from pypi_assets.defs.partitions import leveldb_versions, project_parts, serial_ranges
from pypi_assets.defs.policy import in_runs_of
from pypi_assets.defs.resources import build_resources
from pypi_assets.defs.run_notices import build_failed_check_sensor, build_failed_run_sensor, next_steps
from pypi_assets.defs.schedules import build_schedules
from pypi_assets.defs.sensors import build_sensors
from pypi_assets.defs.solvability import build_solvability, first_day
from pypi_assets.distributions.reader_pool import ReaderPool
from pypi_assets.index.protocol import PackageIndex
from pypi_assets.logs import set_up_logs
from pypi_assets.setting_variables import read_all_indexes, read_variables, selected_index
from pypi_assets.settings import Settings, SettingsError, load_settings
from pypi_assets.storage.store import Storage
from pypi_assets.workspace import ATTRIBUTE_PREFIX, name_in_dagster

_Asset = TypeVar("_Asset", dg.AssetsDefinition, dg.AssetSpec)


def _assets_by_group() -> Iterator[dg.AssetsDefinition]:
    """The assets of each module in `defs/assets`, in its group, with the page of the docs that describes them."""
    for module in pkgutil.iter_modules(assets.__path__):
        group = group_of(module.name)
        found = dg.load_assets_from_modules([import_module(f"{assets.__name__}.{module.name}")], group_name=group.name)
        of_group = (asset for asset in found if isinstance(asset, dg.AssetsDefinition))
        yield from dg.map_asset_specs(partial(_described, page=group.page), of_group)


def _described(spec: dg.AssetSpec, page: str) -> dg.AssetSpec:
    return spec.merge_attributes(metadata={"docs": dg.MetadataValue.text(page)})


def _as_set(settings: Settings | SettingsError, assets: Sequence[_Asset]) -> Sequence[_Asset]:
    """Return the assets, with the owners and the freshness policy of the settings; the default ones if these are wrong.

    Only assets that a followed index keeps materializing have the policy.
    """
    owners, hours = Settings.model_fields["owners"].default, None
    if isinstance(settings, Settings):
        owners, hours = settings.owners, settings.freshness_hours
    policy = None if hours is None else dg.FreshnessPolicy.time_window(timedelta(hours=hours))

    def as_set(spec: dg.AssetSpec) -> dg.AssetSpec:
        is_materialized_often = spec.partitions_def in {serial_ranges, leveldb_versions}
        return spec.replace_attributes(owners=list(owners), freshness_policy=policy if is_materialized_often else None)

    return list(dg.map_asset_specs(as_set, assets))


def _in_runs(settings: Settings | SettingsError, assets: Sequence[dg.AssetsDefinition]) -> list[dg.AssetsDefinition]:
    """The assets, with runs of a full crawl as large as these settings need."""
    most: int | None = SHARDS_IN_ONE_RUN
    if isinstance(settings, Settings):
        most = shards_in_one_run(settings.resolved_database_url, len(settings.projects))
    parts = None if most is None else most // SHARDS_IN_A_PART
    return in_runs_of(parts, project_parts, assets)


def _index_asset(settings: Settings | SettingsError, naming: Naming) -> dg.AssetSpec:
    """Return the external asset of the index, with its address if the settings are right."""
    [found] = _as_set(settings, [PACKAGE_INDEX.replace_attributes(key=naming.key(PACKAGE_INDEX.key))])
    if isinstance(settings, SettingsError):
        return found
    parts = urlsplit(settings.index_url)
    url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()  # without a login
    return found.merge_attributes(metadata={"url": dg.MetadataValue.url(url)})


ASSETS = list(_assets_by_group())
CHECKS = dg.load_asset_checks_from_modules([checks, health])


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
    """The definitions for `settings`, with the names of their index; a private one is compared with public ones too.

    An index, a catalog, a storage or readers that are given are used in place of those of the settings, and closed by
    their giver.
    """
    interval_s, on = (
        (settings.sensor_interval_s, settings.sensors_on) if isinstance(settings, Settings) else (60, False)
    )
    publishes, since = has_kafka(settings), first_day(settings)
    solved = [build_solvability(since)] if since else []
    wanted = _as_set(settings, [*ASSETS, *(one.asset for one in solved), *([journal_topics] if publishes else [])])
    bare_jobs: list[Job] = [
        *FEW_RUNS,
        *MANY_RUNS,
        *MAINTENANCE_JOBS,
        *(one.job for one in solved),
        *([confusion_job] if is_private else []),
        *([publish_journal_job] if publishes else []),
    ]
    jobs = [naming.job(job) for job in bare_jobs]
    sensors, schedules = (
        [
            *build_sensors(interval_s, naming, on=on),
            *([new_journal_records_sensor(naming, interval_s, on=on)] if publishes else []),
        ],
        build_schedules(
            naming, [*(one.schedule for one in solved), *([CONFUSION_SCHEDULE] if is_private else [])], on=on
        ),
    )
    of_one_partition = [naming.job(job) for job in OF_ONE_PARTITION]
    of_assets = (
        *CHECKS,
        *(check for one in solved for check in one.checks),
        *([no_name_became_public] if is_private else []),
    )
    checks = [naming.asset(check) for check in of_assets]
    return dg.Definitions(
        assets=[_index_asset(settings, naming), *(naming.asset(asset) for asset in _in_runs(settings, wanted))],
        asset_checks=checks,
        jobs=jobs,
        sensors=[
            *sensors,
            build_failed_run_sensor(naming, next_steps(jobs, sensors, schedules), of_one_partition, on=on),
            build_failed_check_sensor(naming, checks, on=on),
        ],
        schedules=schedules,
        resources=build_resources(
            settings, naming=naming, index=index, catalog=catalog, storage=storage, readers=readers
        ).by_name(),
        executor=dg.in_process_executor,
    )


def _loaded(naming: Naming | None = None) -> dg.Definitions:
    """The definitions of the selected index, with the names that are given, or those that follow from the settings.

    They load whatever the settings are. A variable that names no setting is logged, once for each process.
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
    """The definitions of the index that has this name in Dagster."""
    naming = Naming(name)
    try:
        indexes = read_all_indexes()
    except SettingsError as error:
        return build_defs(error, naming)
    names = indexes.names if indexes else []
    with selected_index(next((one for one in names if name_in_dagster(one) == name), name)):
        return _loaded(naming)


def __getattr__(name: str) -> dg.Definitions:
    """The definitions of another index than the default one, such as `index_company`: see `workspace.py`."""
    if name.startswith(ATTRIBUTE_PREFIX):
        return _of_index(name.removeprefix(ATTRIBUTE_PREFIX))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


set_up_logs(is_guest=True)
defs = _loaded()
