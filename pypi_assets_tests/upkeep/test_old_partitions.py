"""Displayed ranges and versions: unused ones, recent ones, and the newest version."""

from sqlalchemy import update

from pypi_assets.catalog.ledger.range_ledger import allocate_range, ledger
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.allocated_names import allocate_version
from pypi_assets.catalog.tables import serial_ranges
from pypi_assets.dumps.cover import cover
from pypi_assets.upkeep.old_partitions import old_partitions, runs_kept_since, shown_ranges, shown_versions
from pypi_assets_tests.upkeep.simulated_upkeep import Upkeep

DAYS = 90
DAY_HOURS = 24.0


def dump_new_range(upkeep: Upkeep) -> SerialRange:
    """Complete and dump a new range, and return it."""
    upkeep.dump_range()
    with upkeep.catalog.write() as connection:
        of_range = serial_ranges.c.start == upkeep.last_range.start
        connection.execute(update(serial_ranges).where(of_range).values(completed_at=upkeep.catalog.clock()))
    return upkeep.last_range


def test_range_is_shown_for_some_days_after_its_dump_is_used(upkeep: Upkeep) -> None:
    baseline = upkeep.last_range
    first = dump_new_range(upkeep)
    upkeep.wait(60 * DAY_HOURS)
    second = dump_new_range(upkeep)
    assert shown_ranges(upkeep.catalog, DAYS) == [first, second]  # the baseline is not an incremental range
    assert old_partitions(upkeep.catalog, DAYS).ranges == {baseline.key}
    upkeep.wait(60 * DAY_HOURS)
    assert shown_ranges(upkeep.catalog, DAYS) == [second]
    assert old_partitions(upkeep.catalog, DAYS).ranges == {baseline.key, first.key}


def test_unused_range_is_shown_at_any_age(upkeep: Upkeep) -> None:
    old = dump_new_range(upkeep)
    undumped = upkeep.change()
    upkeep.wait(1000 * DAY_HOURS)
    assert cover(upkeep.catalog).serial == old.end < undumped.end
    assert shown_ranges(upkeep.catalog, DAYS) == [undumped]
    assert undumped.key not in old_partitions(upkeep.catalog, DAYS).ranges
    assert old.key in old_partitions(upkeep.catalog, DAYS).ranges


def test_ranges_after_a_serial_are_new_or_unused(upkeep: Upkeep) -> None:
    first = dump_new_range(upkeep)
    second, undumped = dump_new_range(upkeep), upkeep.change()
    assert shown_ranges(upkeep.catalog, DAYS) == [first, second, undumped]
    assert shown_ranges(upkeep.catalog, DAYS, after=first.end) == [second, undumped]
    assert shown_ranges(upkeep.catalog, DAYS, after=undumped.end) == [undumped]


def test_each_range_is_either_shown_or_old(upkeep: Upkeep) -> None:
    for _ in range(3):
        dump_new_range(upkeep)
        upkeep.wait(40 * DAY_HOURS)
    with upkeep.catalog.write() as connection:  # written by an older version of the code
        of_range = serial_ranges.c.end == upkeep.last_range.start
        connection.execute(update(serial_ranges).where(of_range).values(completed_at=None))
    upkeep.change()
    with upkeep.catalog.write() as connection:
        allocate_range(connection, upkeep.last_range.end + 3, upkeep.catalog.clock())
    with upkeep.catalog.read() as connection:
        known = {entry.serials.key for entry in ledger(connection)}
    for days in (1, 60, 100, DAYS, 1000):
        shown = {serials.key for serials in shown_ranges(upkeep.catalog, days)}
        old = old_partitions(upkeep.catalog, days).ranges
        assert (shown | old, shown & old) == (known, set())


def test_newest_version_is_shown_at_any_age(upkeep: Upkeep) -> None:
    assert shown_versions(upkeep.catalog, DAYS) == []
    numbers = []
    for _ in range(3):
        numbers.append(allocate_version(upkeep.catalog, upkeep.serial))
        upkeep.wait(40 * DAY_HOURS)
    assert shown_versions(upkeep.catalog, DAYS) == numbers[1:]
    assert shown_versions(upkeep.catalog, DAYS, after=numbers[1]) == numbers[2:]
    assert shown_versions(upkeep.catalog, DAYS, after=numbers[2]) == numbers[2:]
    assert old_partitions(upkeep.catalog, DAYS).versions == {f"{numbers[0]:05d}"}
    upkeep.wait(1000 * DAY_HOURS)
    assert shown_versions(upkeep.catalog, DAYS) == numbers[2:]


def test_runs_are_kept_for_the_same_number_of_days(upkeep: Upkeep) -> None:
    clock = upkeep.catalog.clock
    before = clock()
    assert before - DAYS * 86_400 <= runs_kept_since(upkeep.catalog, DAYS) <= clock() - DAYS * 86_400
