"""However often a follower makes a range, and is started and stopped: few partitions a day, and each range in one."""

import random

import pytest

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.defs.done_elsewhere import RANGE_ASSETS, REPORT_EVERY_S, Entered, join_ranges, report_version
from pypi_assets.defs.naming import BARE, Naming

DAY_S = 86_400
MOST_A_DAY = 144


@pytest.mark.parametrize(
    ("text", "entered"), [(None, (0, None)), ("x", (0, None)), ("7", (7, None)), ("7@12", (7, 12.0))]
)
def test_a_cursor_is_its_text(text: str | None, entered: tuple[int, float | None]) -> None:
    found = Entered.parse(text)
    assert (found.through, found.reported_at) == entered
    assert Entered.parse(str(found)) == found


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_a_day_of_ranges_every_few_seconds(seed: int) -> None:
    drawn = random.Random(seed)
    entered, ranges, serial = Entered(100), list[SerialRange](), 100
    known, joined = set[str](), list[SerialRange]()
    at_work, last_own = True, 0
    for now in range(0, DAY_S, 60):
        at_work = at_work if seed == 0 or drawn.random() < 0.95 else not at_work
        if at_work:
            for _ in range(12):
                ranges.append(SerialRange(serial, serial := serial + 1))
        elif now - last_own >= REPORT_EVERY_S:  # as the sensor allocates them itself
            ranges.append(SerialRange(serial, serial := serial + 50))
            last_own = now
        before = entered
        report = join_ranges(BARE, entered, ranges[-20_000:], known, serial, float(now), at_work=at_work)
        entered = Entered.parse(str(report.entered))
        if report.key is not None:
            joined += [SerialRange.parse(report.key)]
            known.add(report.key)
            assert len(report.events) == len(RANGE_ASSETS)
            assert {one.partition for one in report.events} == {report.key}
        if not at_work:
            shown = [one for one in ranges if one.end > report.entered.through and one not in set(report.joined)]
            known.update(one.key for one in shown if before.reported_at is None or one.end - one.start == 50)
            if report.entered.reported_at is None and shown:
                entered = Entered(shown[-1].end)
    assert len(joined) <= MOST_A_DAY
    assert seed or len(joined) == MOST_A_DAY
    covered = sorted([*joined, *(SerialRange.parse(key) for key in known)])
    reached = covered[0].start
    for one in covered:
        assert one.start <= reached, "a range is shown nowhere"
        reached = max(reached, one.end)
    assert serial - reached <= 12 * REPORT_EVERY_S / 60


def test_only_the_newest_version_is_shown_and_at_most_every_ten_minutes() -> None:
    naming, entered, reported = Naming("company"), Entered(3), []
    for now in range(0, DAY_S, 60):
        newest = {"modules": 4 + now // 5, "depgraph": 4 + now // 5, "simple": 2, "hashes": None}
        report = report_version(naming, entered, newest, float(now), at_work=True)
        entered = Entered.parse(str(report.entered))
        if report.key is not None:
            reported.append(report.key)
            assert [one.asset_key.to_user_string() for one in report.events] == [
                "company/modules_leveldb",
                "company/depgraph_leveldb",
            ]
    assert len(reported) == len(set(reported)) == MOST_A_DAY
    gone = report_version(naming, entered, {"modules": 99_999}, entered.reported_at or 0.0, at_work=False)
    assert (gone.key, gone.entered.through) == (None, 99_999)
