"""Work of a follower in Dagster: few partitions per day, and each range in exactly one, however often it starts and
stops.
"""

import random
from dataclasses import dataclass
from typing import Any

import dagster as dg
import pytest

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.defs import external_work
from pypi_assets.defs.external_work import (
    RANGE_ASSETS,
    REPORT_EVERY_S,
    Partitions,
    SensorCursor,
    report_ranges,
    report_version,
)
from pypi_assets.defs.naming import Naming
from pypi_assets.defs.policy import leveldb_versions, serial_ranges

COMPANY = Naming("company")
TICK_S, HOURS = 60, 4


@dataclass
class Clock:
    """A catalog that only has a clock."""

    now: float = 1_000_000.0

    def clock(self) -> float:
        return self.now


def apply(instance: dg.DagsterInstance, report: external_work.Report) -> None:
    """Add the partitions and events of a report, as the daemon does."""
    for request in report.added:
        instance.add_dynamic_partitions(request.partitions_def_name, request.partition_keys)
    for event in report.events:
        instance.report_runless_asset_event(event)


def test_cursor_round_trips() -> None:
    cases = [(None, (0, 0.0)), ("x", (0, 0.0)), ("7", (7, 0.0)), ("7@12", (7, 12.0))]
    for text, expected in cases:
        found = SensorCursor.parse(text)
        assert (found.through, found.reported_at) == expected
        assert SensorCursor.parse(str(found)) == found
    reported = SensorCursor(7, 5_000.0)
    times = (5_000.0, 5_000.0 + REPORT_EVERY_S - 1, 5_000.0 + REPORT_EVERY_S, 4_999.0)
    assert [reported.is_due(now) for now in times] == [False, False, True, True]
    for reported_at in (5_000.0, 5_000.1, 5_000.9):
        stored = SensorCursor.parse(str(SensorCursor(7, reported_at)))
        assert not stored.is_due(reported_at)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
def test_each_range_is_in_one_of_few_partitions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, catalog = random.Random(seed), Clock()
    ranges, serial, at_work, cursor = list[SerialRange](), 100, True, SensorCursor(100)
    monkeypatch.setattr(external_work, "done_through", lambda _: serial)
    monkeypatch.setattr(external_work, "shown_ranges", lambda *_: [one for one in ranges if one.end > cursor.through])
    reports: Any = []
    with dg.DagsterInstance.ephemeral() as instance:
        partitions = Partitions(instance, COMPANY, COMPANY.partitions(serial_ranges), "company__incremental_crawl")
        for tick in range(HOURS * 3_600 // TICK_S):
            catalog.now += TICK_S
            at_work = at_work if seed == 0 or drawn.random() < 0.95 else not at_work
            if at_work:
                for _ in range(12):
                    ranges.append(SerialRange(serial, serial := serial + 1))
            elif tick % 10 == 0:  # a range of the sensor whose run has finished
                ranges.append(SerialRange(serial, serial := serial + 50))
                instance.add_dynamic_partitions("company__serial_ranges", [ranges[-1].key])
            report = report_ranges(partitions, catalog, SensorCursor.parse(str(cursor)), 90)  # type: ignore[arg-type]
            apply(instance, report)
            cursor = report.cursor
            reports += report.added
        keys = instance.get_dynamic_partitions("company__serial_ranges")
        for asset in RANGE_ASSETS:
            shown = instance.get_materialized_partitions(dg.AssetKey(["company", asset]))
            assert cursor.through - 50 <= max(SerialRange.parse(key).end for key in shown) <= cursor.through
    assert len(reports) <= HOURS * 3_600 / REPORT_EVERY_S
    assert seed or len(reports) == HOURS * 3_600 / REPORT_EVERY_S
    reached = 100
    for one in sorted((SerialRange.parse(key) for key in keys), key=lambda one: one.start):
        assert one.start in {reached, *(own.start for own in ranges if own.start >= cursor.through)}
        reached = one.end
    assert serial - cursor.through <= 12 * REPORT_EVERY_S / TICK_S + 50


def test_running_range_is_reported_by_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = [SerialRange(1, 3), SerialRange(3, 4), SerialRange(4, 9), SerialRange(9, 12)]
    under_way = {"4-9"}
    monkeypatch.setattr(external_work, "done_through", lambda _: 12)
    monkeypatch.setattr(external_work, "shown_ranges", lambda *_: ranges)
    monkeypatch.setattr(Partitions, "is_under_way", lambda _, key: key in under_way)
    catalog: Any = Clock()
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("company__serial_ranges", ["4-9"])
        partitions = Partitions(instance, COMPANY, COMPANY.partitions(serial_ranges), "company__incremental_crawl")
        for through, keys in ((4, {"1-4"}), (12, {"1-4", "4-9", "9-12"})):
            report = report_ranges(partitions, catalog, SensorCursor(), 90)
            apply(instance, report)
            assert report.cursor.through == through
            assert instance.get_materialized_partitions(dg.AssetKey(["company", "changelog"])) == keys
            ranges = [one for one in ranges if one.end > through]
            under_way.clear()


def test_only_the_newest_version_is_shown_every_ten_minutes() -> None:
    cursor, reported = SensorCursor(3), list[str]()
    with dg.DagsterInstance.ephemeral() as instance:
        partitions = Partitions(instance, COMPANY, COMPANY.partitions(leveldb_versions), "company__update_leveldbs")
        for now in range(0, 6 * 3_600, TICK_S):
            newest = {"modules": 4 + now // 5, "depgraph": 4 + now // 5, "simple": 2, "hashes": None}
            report = report_version(partitions, newest, cursor, 1_000_000.0 + now)
            apply(instance, report)
            cursor = SensorCursor.parse(str(report.cursor))
            if report.added:
                reported += report.added[0].partition_keys
                assert [event.asset_key.to_user_string() for event in report.events] == [
                    "company/modules_leveldb",
                    "company/depgraph_leveldb",
                ]
    assert len(reported) == len(set(reported)) == 6 * 3_600 / REPORT_EVERY_S
