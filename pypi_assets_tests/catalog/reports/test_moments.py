"""A moment is a serial or a time; each means one exact serial, or has no answer."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import insert

from pypi_assets.catalog.reports.moments import Moment, NoMomentError, NotExactError, parse_moment, serial_of
from pypi_assets.catalog.tables import events, full_crawls
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import small_catalog

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1350", 1350),
        ("2026-03-03", datetime(2026, 3, 3, tzinfo=UTC)),
        ("2026-03-03T12:00", NOON),
        ("2026-03-03T12:00:00Z", NOON),
        ("2026-03-03T14:00+02:00", NOON.astimezone(timezone(timedelta(hours=2)))),
    ],
)
def test_serials_and_times_are_read(text: str, expected: Moment):
    assert parse_moment(text) == expected


def test_anything_else_is_refused(subtests: pytest.Subtests):
    cases = [
        *((text, False) for text in ("", "-1", "1.5", "yesterday", "٣", "9" * 19, "2026-3-3", "2026-03-03\n")),
        *((text, True) for text in ("2026-02-30", "2026-03-03T25:00")),
    ]
    for text, is_time in cases:
        with subtests.test(text=text, is_time=is_time):
            with pytest.raises(NoMomentError) as raised:
                parse_moment(text)
            assert raised.value.is_time == is_time


def test_each_moment_means_a_serial_or_has_no_answer(tmp_path: Path):
    small = small_catalog(tmp_path, clock=lambda: NOON.timestamp() + 3_600)
    small.add(3, "demo", "1.0", "demo-1.0.zip")
    small.complete(7)
    at = {3: NOON - timedelta(hours=2), 7: NOON}
    with small.catalog.write() as connection:
        connection.execute(insert(full_crawls).values(serial=3, selection="[]", opened_at=0.0, completed_at=0.0))
        rows = [
            {"serial": serial, "project_id": 1, "name": "demo", "timestamp": int(time.timestamp())}
            for serial, time in at.items()
        ]
        connection.execute(insert(events), [{**row, "action": "create", "kind": "create project"} for row in rows])
    found = [serial_of(small.catalog, one) for one in (None, 5, NOON, NOON - timedelta(hours=1))]
    assert found == [7, 5, 7, 6]
    for moment, values in (
        (8, (8, 0, 7)),
        (NOON + timedelta(hours=2), ("2026-03-03T14:00:00Z",)),
        (NOON - timedelta(hours=3), ("2026-03-03T09:00:00Z", "2026-03-03T10:00:00Z")),
    ):
        with pytest.raises(NotExactError, match=naming(*values)):
            serial_of(small.catalog, moment)
    small.catalog.close()
