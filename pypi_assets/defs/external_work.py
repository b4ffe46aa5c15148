"""Shows work in Dagster that no run of Dagster did: ranges and LevelDB versions of a follower, or of commands.

No run is started for it. Ranges without a partition become one partition, with a materialization of each of their
assets. The newest version becomes another partition. That happens at most every ten minutes, since a follower makes a
range every few seconds, and Dagster's pages get slower with each partition. If the run of a partition was killed, the
partition is materialized once another process has done its work.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Any, Self

import dagster as dg

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.defs.attempts import attempts
from pypi_assets.defs.naming import Naming
from pypi_assets.defs.policy import leveldb_asset
from pypi_assets.dumps.cover import cover
from pypi_assets.leveldbs.versions.input_lists import version_name
from pypi_assets.upkeep.due import due_journal
from pypi_assets.upkeep.old_partitions import shown_ranges

REPORT_EVERY_S = 600.0
RANGE_ASSETS = ("changelog", "changed_distributions", "changed_distribution_data", "incremental_dump", "change_journal")
_RANGES_A_TICK = 10_000
_EVENTS_AT_A_TIME = 1_000
_SEPARATOR = "@"


@dataclass(frozen=True, slots=True)
class SensorCursor:
    """The cursor of a sensor: the serial or version up to which work is shown, and the unix time of its last report."""

    through: int = 0
    reported_at: float = 0.0

    @classmethod
    def parse(cls, text: str | None) -> Self:
        """Return the cursor in a text. The cursor is only a hint, so an invalid text means the beginning."""
        through, _, reported_at = (text or "").partition(_SEPARATOR)
        if not through.isdecimal():
            return cls()
        return cls(int(through), float(reported_at) if reported_at.isdecimal() else 0.0)

    def __str__(self) -> str:
        # rounded down, because a time in the future would mean that the clock was set back
        time = f"{_SEPARATOR}{int(self.reported_at)}" if self.reported_at else ""
        return f"{self.through}{time}"

    def is_due(self, now: float) -> bool:
        """Return whether enough time has passed since the last report, or the clock was set back."""
        return not 0 <= now - self.reported_at < REPORT_EVERY_S


@dataclass(frozen=True, slots=True)
class Report:
    """The partitions and materializations that a tick shows, and the cursor after it."""

    cursor: SensorCursor
    events: Sequence[dg.AssetMaterialization] = ()
    added: Sequence[dg.AddDynamicPartitionsRequest] = ()

    def result(
        self,
        reason: str,
        requests: Sequence[dg.RunRequest] = (),
        added: Sequence[dg.AddDynamicPartitionsRequest] = (),
    ) -> dg.SensorResult:
        """Return the result of the tick, with these requests as well. If it requests no run, `reason` says why."""
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else reason,
            cursor=str(self.cursor),
            dynamic_partitions_requests=[*self.added, *added],
            asset_events=self.events,
        )


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partitions of an instance that runs of `job` materialize."""

    instance: dg.DagsterInstance
    naming: Naming
    definition: dg.DynamicPartitionsDefinition
    job: str

    def existing(self, keys: Sequence[str]) -> set[str]:
        """Return which of the keys are partitions."""
        name = str(self.definition.name)
        return set(self.instance.get_existing_dynamic_partitions(name, keys)) if keys else set()

    def missing(self, keys: Sequence[str], most: int) -> list[dg.AddDynamicPartitionsRequest]:
        """Return a request to add the keys that are not partitions yet, at most the first `most` of them."""
        existing = self.existing(keys)
        missing = [key for key in keys if key not in existing][:most]
        return [self.definition.build_add_request(missing)] if missing else []

    def lacking(self, asset: str, keys: Collection[str]) -> set[str]:
        """Return the keys whose partition of the asset has no materialization."""
        if not keys:
            return set()
        wanted = dg.AssetRecordsFilter(self.naming.key(asset), asset_partitions=sorted(keys))
        found = self.instance.fetch_materializations(wanted, _EVENTS_AT_A_TIME)
        shown = {one.partition_key for one in found.records}
        while found.has_more:
            found = self.instance.fetch_materializations(wanted, _EVENTS_AT_A_TIME, cursor=found.cursor)
            shown |= {one.partition_key for one in found.records}
        return {*keys} - shown

    def is_under_way(self, key: str) -> bool:
        """Return whether a run of the partition is in progress, which will report it."""
        return attempts(self.instance, self.job, key).running

    def materialization(self, asset: str, key: str, numbers: Mapping[str, int]) -> dg.AssetMaterialization:
        """Return an event that shows the partition of the asset as done."""
        metadata: dict[str, Any] = {"done by": "another process", **numbers}
        return dg.AssetMaterialization(self.naming.key(asset), partition=key, metadata=metadata)


def report_ranges(partitions: Partitions, catalog: Catalog, cursor: SensorCursor, kept_days: float) -> Report:
    """Return the report of finished ranges after the cursor, up to the first range with a run in progress."""
    now = catalog.clock()
    if not cursor.is_due(now):
        return Report(cursor)
    start, done = cursor.through, done_through(catalog)
    ranges = [one for one in shown_ranges(catalog, kept_days, start) if start <= one.start and one.end <= done]
    ranges = ranges[:_RANGES_A_TICK]
    known = partitions.existing([one.key for one in ranges])
    lacking = {asset: partitions.lacking(asset, known) for asset in RANGE_ASSETS}
    under_way = {key for key in set().union(*lacking.values()) if partitions.is_under_way(key)}
    ranges = list(takewhile(lambda one: one.key not in under_way, ranges))
    if not ranges:
        return Report(cursor)
    joined, passed = join_ranges(ranges, known), {one.key for one in ranges}
    events = [
        partitions.materialization(asset, key, joined.get(key, {}))
        for asset in RANGE_ASSETS
        for key in sorted(lacking[asset] & passed | joined.keys())
    ]
    reached = SensorCursor(ranges[-1].end, now if events else cursor.reported_at)
    return Report(reached, events, [partitions.definition.build_add_request([*joined])] if joined else [])


def report_version(
    partitions: Partitions, published: Mapping[str, int | None], cursor: SensorCursor, now: float
) -> Report:
    """Return the report of each dataset's newest `published` version. Older versions do not become partitions."""
    newest = max(filter(None, published.values()), default=0)
    keys = {leveldb_asset(dataset): version_name(version) for dataset, version in published.items() if version}
    known = partitions.existing(sorted({*keys.values()}))
    new = {version_name(newest)} - known if newest > cursor.through and cursor.is_due(now) else set()
    events = [
        partitions.materialization(asset, key, {})
        for asset, key in keys.items()
        if key in known | new and partitions.lacking(asset, {key}) and not partitions.is_under_way(key)
    ]
    reached = SensorCursor(max(newest, cursor.through), now) if new else cursor
    return Report(reached, events, [partitions.definition.build_add_request([*new])] if new else [])


def done_through(catalog: Catalog) -> int:
    """Return the serial up to which ranges are crawled, dumped, and written into the journal."""
    with catalog.read() as connection:
        complete = complete_serial(connection)
    return min(complete, due_journal(catalog).serial or 0, cover(catalog).serial)


def join_ranges(ranges: Sequence[SerialRange], known: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the new partitions for ranges that are not `known` to Dagster, each with its numbers.

    Adjacent ranges become one partition.

    >>> join_ranges([SerialRange(0, 3), SerialRange(3, 5), SerialRange(5, 9)], {"5-9"})
    {'0-5': {'ranges': 2, 'serials': 5}}
    """
    joined = {}
    for is_known, group in groupby(ranges, key=lambda one: one.key in known):
        if not is_known:
            adjacent = list(group)
            serials = SerialRange(adjacent[0].start, adjacent[-1].end)
            joined[serials.key] = {"ranges": len(adjacent), "serials": serials.end - serials.start}
    return joined
