"""What a follower has done, as partitions of Dagster: its ranges joined into one, and its newest LevelDB version.

A follower makes a range every few seconds, and Dagster's pages cost more with each partition. So at most every ten
minutes one partition is added for all ranges that are done, with a materialization of each of their assets, and one for
the newest version: no more than 144 a day of either. Nothing is run: it is reported what was done elsewhere. What is a
partition already, and had a run that was killed or never began, is reported by itself, whoever did it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Self

import dagster as dg

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import complete_ranges, complete_serial
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.defs.attempts import attempts
from pypi_assets.defs.naming import Naming
from pypi_assets.defs.policy import leveldb_asset
from pypi_assets.dumps.cover import cover
from pypi_assets.leveldbs.versions.leveldb_paths import version_name
from pypi_assets.upkeep.due import due_journal

REPORT_EVERY_S = 600.0
LOOKED_BACK_S = 3_600.0
"""How long ago a range can have been completed elsewhere, and still be reported, where no follower is at work."""
RANGE_ASSETS = ("changelog", "changed_distributions", "changed_distribution_data", "incremental_dump", "change_journal")
_LAST_RANGES = 1_000
_EVENTS_AT_A_TIME = 1_000
_SEPARATOR = "@"


@dataclass(frozen=True, slots=True)
class Entered:
    """The cursor of a sensor: the serial, or the version, up to which Dagster has the partitions; and while a follower
    does the work, when it was last reported what that has done (unix seconds)."""

    through: int = 0
    reported_at: float | None = None

    @classmethod
    def parse(cls, cursor: str | None) -> Self:
        """The cursor of this text. It is a hint: of any other text, the beginning."""
        through, _, reported_at = (cursor or "").partition(_SEPARATOR)
        if not through.isdecimal():
            return cls()
        return cls(int(through), float(reported_at) if reported_at.isdecimal() else None)

    def __str__(self) -> str:
        time = "" if self.reported_at is None else f"{_SEPARATOR}{self.reported_at:.0f}"
        return f"{self.through}{time}"

    def is_due(self, now: float) -> bool:
        """Whether enough time has passed since the last report."""
        return self.reported_at is None or now - self.reported_at >= REPORT_EVERY_S


@dataclass(frozen=True, slots=True)
class Report:
    """What a tick reports, and the cursor after it. `joined` are the ranges of this report (`key`: its partition), or
    of one that waits for its time (None): they become no partitions of their own."""

    entered: Entered
    key: str | None = None
    events: Sequence[dg.AssetMaterialization] = ()
    joined: Collection[SerialRange] = ()

    def added(
        self, instance: dg.DagsterInstance, partitions: dg.DynamicPartitionsDefinition
    ) -> list[dg.AddDynamicPartitionsRequest]:
        """The request that adds the partition, unless it is there."""
        is_new = self.key is not None and not instance.has_dynamic_partition(str(partitions.name), self.key)
        return [partitions.build_add_request([self.key])] if is_new and self.key else []

    def alone(self, reason: str, joins: Sequence[dg.AddDynamicPartitionsRequest]) -> dg.SensorResult:
        """The result of a tick that reports this, with the request `joins`, and requests no run."""
        return dg.SensorResult(
            skip_reason=reason, cursor=str(self.entered), dynamic_partitions_requests=joins, asset_events=self.events
        )


def done_through(catalog: Catalog) -> int:
    """The serial up to which ranges are crawled, in the journal and dumped."""
    with catalog.read() as connection:
        complete = complete_serial(connection)
    return min(complete, due_journal(catalog).serial or 0, cover(catalog).serial)


def last_done(catalog: Catalog, done: int, since: float) -> list[SerialRange]:
    """The ranges that were completed after `since` (unix seconds), up to the serial `done`: 1,000 at most."""
    with catalog.read() as connection:
        entries = complete_ranges(connection, _LAST_RANGES)
    return [one.serials for one in entries if one.serials.end <= done and (one.completed_at or 0.0) > since]


def with_not_shown(
    report: Report,
    instance: dg.DagsterInstance,
    naming: Naming,
    partitions: dg.DynamicPartitionsDefinition,
    done: Mapping[str, Iterable[str]],
    job: str,
) -> Report:
    """The report with a materialization of each of the keys in `done`, by asset, that is one of the `partitions` and
    lacks it: what their runs did not do was done elsewhere. Of a key whose run of `job` is under way, that reports it.
    """
    keys = {asset: list(of_asset) for asset, of_asset in done.items()}
    known = set(instance.get_existing_dynamic_partitions(str(partitions.name), sorted(set().union(*keys.values()))))
    lacking: list[tuple[str, str]] = []
    for asset, of_asset in keys.items():
        if wanted := sorted(known.intersection(of_asset)):
            shown = _materialized(instance, naming.key(dg.AssetKey(asset)), wanted)
            lacking += [(asset, key) for key in wanted if key not in shown]
    ended = {key for key in {key for _, key in lacking} if not attempts(instance, job, key).running}
    added = [_materialization(naming, asset, key, "another process", {}) for asset, key in lacking if key in ended]
    return replace(report, events=[*report.events, *added])


def _materialized(instance: dg.DagsterInstance, asset: dg.AssetKey, keys: Sequence[str]) -> set[str | None]:
    """Those of these partitions of the asset that have a materialization."""
    wanted = dg.AssetRecordsFilter(asset, asset_partitions=keys)
    found = instance.fetch_materializations(wanted, _EVENTS_AT_A_TIME)
    shown = {one.partition_key for one in found.records}
    while found.has_more:
        found = instance.fetch_materializations(wanted, _EVENTS_AT_A_TIME, cursor=found.cursor)
        shown |= {one.partition_key for one in found.records}
    return shown


def join_ranges(
    naming: Naming,
    entered: Entered,
    ranges: Iterable[SerialRange],
    known: Collection[str],
    done: int,
    now: float,
    *,
    at_work: bool,
) -> Report:
    """The report of those `ranges`, in order, that a follower has done: they end at the serial `done` or before, and
    are not `known` to Dagster as partitions yet. `at_work`: a follower is at work now."""
    ours = [one for one in ranges if one.start >= entered.through and one.end <= done]
    passed = list(takewhile(lambda one: one.key in known, ours))
    through = passed[-1].end if passed else entered.through
    joined = list(takewhile(lambda one: one.key not in known, ours[len(passed) :]))
    if not joined:
        if at_work:
            return Report(Entered(through, entered.reported_at or 0.0))
        return Report(Entered(through, None if entered.is_due(now) else entered.reported_at))
    if not entered.is_due(now):
        return Report(Entered(through, entered.reported_at), joined=joined)
    serials = SerialRange(joined[0].start, joined[-1].end)
    numbers = {"ranges": len(joined), "serials": serials.end - serials.start}
    events = _materializations(naming, dict.fromkeys(RANGE_ASSETS, serials.key), numbers)
    return Report(Entered(serials.end, now), serials.key, events, joined)


def report_version(
    naming: Naming, entered: Entered, newest: Mapping[str, int | None], now: float, *, at_work: bool
) -> Report:
    """The report of the newest version that a follower has published: of each dataset that has it in `newest`. Versions
    between two reports become no partitions."""
    version = max((one for one in newest.values() if one is not None), default=0)
    if version <= entered.through or not entered.is_due(now):
        passed = max(version, entered.through)
        if at_work:
            return Report(Entered(entered.through, entered.reported_at or 0.0))
        return Report(Entered(passed, None if entered.is_due(now) else entered.reported_at))
    key = version_name(version)
    built = {leveldb_asset(dataset): key for dataset, one in newest.items() if one == version}
    return Report(Entered(version, now), key, _materializations(naming, built, {"version": version}))


def _materializations(
    naming: Naming, keys: Mapping[str, str], numbers: Mapping[str, int]
) -> list[dg.AssetMaterialization]:
    return [_materialization(naming, asset, key, "a follower", numbers) for asset, key in keys.items()]


def _materialization(
    naming: Naming, asset: str, key: str, done_by: str, numbers: Mapping[str, int]
) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        naming.key(dg.AssetKey(asset)), partition=key, metadata={"done by": done_by, **numbers}
    )
