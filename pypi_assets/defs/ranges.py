"""Makes the assets of serial ranges in one step, so that a failing range does not stop the other ranges.

    @range_asset(kinds={"json"}, deps=["changelog"])
    def counted_events(run: RangeRun) -> RangeWork:
        catalog = run.catalog.get()
        return lambda serials: {"events": count_events(catalog, serials)}

Dagster starts no step after a failed step, and counts every partition of a run as materialized if its step succeeded.
So separate steps could not continue with the ranges that have no failure.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from graphlib import TopologicalSorter
from inspect import getdoc
from typing import Any

import dagster as dg

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.defs.expected_errors import EXPECTED, ExpectedStepError, describe_error, expected_errors_as_failures
from pypi_assets.defs.factories import AssetFactory, Declared, ForIndex, group_of_function, step
from pypi_assets.defs.policy import INDEX_POOL, beta_parameters, serial_ranges
from pypi_assets.defs.reporting import progress_log
from pypi_assets.defs.resources import CatalogResource, CrawlerResource, StorageResource
from pypi_assets.upkeep.transient import is_transient

RangeWork = Callable[[SerialRange], Mapping[str, Any]]
"""Does the work of an asset for one range, and returns the numbers to show on its partition."""


@dataclass(frozen=True)
class RangeRun:
    """The context of a run, and its resources, which are opened at first use."""

    context: dg.AssetExecutionContext
    crawler: CrawlerResource
    catalog: CatalogResource
    storage: StorageResource

    def open_crawler(self) -> Crawler:
        """Return a crawler that logs its progress. Raises SettingsError and CatalogError."""
        return self.crawler.get(progress_log(self.context), self.context.log.warning)


@dataclass(frozen=True)
class RangeAsset:
    """An asset whose partitions are serial ranges.

    `begin` opens the resources of the work, once for all ranges of a run. `totals` returns metadata for all ranges.
    """

    declared: Declared
    begin: Callable[[RangeRun], RangeWork]
    totals: Callable[[RangeRun], Mapping[str, Any]]

    @property
    def name(self) -> str:
        return self.declared.name


def range_asset(
    *, kinds: set[str], totals: Callable[[RangeRun], Mapping[str, Any]] = lambda _: {}, **declared: Any
) -> Callable[[Callable[[RangeRun], RangeWork]], RangeAsset]:
    """Return the decorator of an asset's function `begin`. The docstring of `begin` describes the asset."""

    def declare(begin: Callable[[RangeRun], RangeWork]) -> RangeAsset:
        about: dict[str, Any] = {"description": getdoc(begin), "group": group_of_function(begin)}
        asset = Declared(name=begin.__name__, kinds=kinds, partitions=serial_ranges, **about, **declared)
        return RangeAsset(asset, begin, totals)

    return declare


crawled_range_asset = partial(range_asset, kinds={"python", "sqlalchemy"})
"""The decorator of an asset whose work sends requests to the index and writes to the catalog."""


def range_step(assets: Sequence[RangeAsset]) -> AssetFactory:
    """Return the factory of the step that makes the selected ones of these assets."""
    by_name = {asset.name: asset for asset in assets}
    deps = {asset.name: [dep for dep in asset.declared.deps if dep in by_name] for asset in assets}
    in_order = [by_name[name] for name in TopologicalSorter(deps).static_order()]

    def make(index: ForIndex) -> dg.AssetsDefinition:
        keys = {index.naming.key(asset.name): asset for asset in in_order}

        def follow_ranges(
            context: dg.AssetExecutionContext,
            crawler: CrawlerResource,
            catalog: CatalogResource,
            storage: StorageResource,
        ) -> Iterator[dg.MaterializeResult[None]]:
            selected = {key: asset for key, asset in keys.items() if key in context.selected_asset_keys}
            yield from _materialize(RangeRun(context, crawler, catalog, storage), selected)

        with beta_parameters():
            specs = [dg.AssetSpec(**asset.declared.spec(index)) for asset in in_order]
            op = step(index, serial_ranges, INDEX_POOL)
            return dg.multi_asset(specs=specs, can_subset=True, **op)(follow_ranges)

    return AssetFactory("follow_ranges", make)


def _materialize(run: RangeRun, assets: Mapping[dg.AssetKey, RangeAsset]) -> Iterator[dg.MaterializeResult[None]]:
    """Do the work of each range, asset by asset. Yield the assets once all ranges are done.

    A failure of one range ends only the work of that range, and the step fails at its end. A transient error concerns
    all ranges: it ends the step at once, and Dagster tries the step again. In both cases, finished partitions are
    materialized.
    """
    context, keys = run.context, list(run.context.partition_keys)
    done: dict[tuple[dg.AssetKey, str], Mapping[str, Any]] = _done_before(run, assets)
    failed: dict[str, tuple[dg.AssetKey, Exception]] = {}
    work: dict[dg.AssetKey, RangeWork] = {}
    try:
        with expected_errors_as_failures():
            for partition in keys:
                for key, asset in assets.items():
                    try:
                        if (key, partition) not in done:
                            work[key] = work.get(key) or asset.begin(run)
                            done[key, partition] = _timed(work[key], partition)
                    except Exception as error:
                        if is_transient(error) or len(keys) == 1:
                            raise
                        failed[partition] = key, error
                        context.log.error(f"{partition}: {_reason(key, error)}")
                        break
            totals = {key: asset.totals(run) for key, asset in assets.items()}
            done = {place: {**totals[place[0]], **numbers} for place, numbers in done.items()}
            if failed:
                raise _failure(failed, len(keys))
    except BaseException:
        for (key, partition), numbers in done.items():
            context.log_event(dg.AssetMaterialization(key, partition=partition, metadata=numbers))
        raise
    for (key, partition), numbers in done.items():
        context.add_asset_metadata(numbers, key, partition_key=partition)
    for key in assets:
        yield dg.MaterializeResult(key)


def _done_before(
    run: RangeRun, assets: Mapping[dg.AssetKey, RangeAsset]
) -> dict[tuple[dg.AssetKey, str], Mapping[str, Any]]:
    """Return the finished work of earlier attempts of this step, since visiting a complete range repeats all
    requests."""
    context, done = run.context, dict[tuple[dg.AssetKey, str], Mapping[str, Any]]()
    for key in assets if context.retry_number else ():
        records_filter = dg.AssetRecordsFilter(key, asset_partitions=list(context.partition_keys))
        for record in context.instance.fetch_materializations(
            records_filter, limit=len(context.partition_keys)
        ).records:
            if record.run_id == context.run.run_id and record.asset_materialization:
                done[key, str(record.partition_key)] = record.asset_materialization.metadata
    return done


def _timed(work: RangeWork, partition: str) -> Mapping[str, Any]:
    started = time.monotonic()
    numbers = work(SerialRange.parse(partition))
    return {**numbers, "seconds": round(time.monotonic() - started, 3)}


def _reason(key: dg.AssetKey, error: Exception) -> str:
    return f"{describe_error(error)} (in {key.to_user_string()})"


def _failure(failed: Mapping[str, tuple[dg.AssetKey, Exception]], count: int) -> dg.Failure:
    """Return the failure of a step in which some of `count` ranges failed.

    It has a traceback only if there is an unexpected error.
    """
    reasons: dict[str, list[str]] = {}
    for partition, (key, error) in failed.items():
        reasons.setdefault(_reason(key, error), []).append(partition)
    texts = [f"{', '.join(partitions)}: {reason}" for reason, partitions in reasons.items()]
    text = f"{len(failed)} of {count} ranges failed: {'; '.join(texts)}"
    unexpected = next((error for _, error in failed.values() if not isinstance(error, EXPECTED)), None)
    if unexpected is None:
        return ExpectedStepError(text)
    failure = dg.Failure(text, allow_retries=False)
    failure.__cause__ = unexpected
    return failure
