"""The share of uploads, among those old enough, that were soon removed or quarantined, on both databases."""

import itertools
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select, update

from pypi_assets.catalog.publications.dump_rows import project_rows_at
from pypi_assets.catalog.reads.past_generations import keep_past_generations
from pypi_assets.catalog.reports.removals import (
    DAY_S,
    Removals,
    RemovalWindow,
    answerable_before,
    answerable_changes,
    changed_serials,
    count_removals,
)
from pypi_assets.catalog.tables import changes, distributions, events, live_intervals, serial_ranges
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets_tests.examples import examples
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

START = 1_770_000_000
WINDOWS = (1, 3, 7)
SECOND = 1 / DAY_S
QUARANTINE, CLEAR = "quarantine project", "unquarantine project"


class Story:
    """A catalog with events on given days after the start, each with its own serial."""

    def __init__(self, small: SmallCatalog) -> None:
        self.small = small
        self._serials = itertools.count(1)

    def happen(self, day: float, what: str, *filenames: str) -> int:
        serial = next(self._serials)
        for filename in filenames:
            if what == "add file":
                self.small.add(serial, "demo", "1.0", filename)
            elif what == CLEAR:
                self.small._begin(live_intervals, serial, [filename], what)
            else:
                self.small._end(live_intervals, serial, [filename], what)
        self.event(serial, day, what)
        return serial

    def event(self, serial: int, day: float, what: str) -> None:
        row = {"serial": serial, "project_id": 1, "name": "demo", "timestamp": START + int(day * DAY_S)}
        with self.small.catalog.write() as connection:
            connection.execute(insert(events).values(**row, action=what, kind=what))

    def count(self, serial: int) -> Removals:
        with self.small.catalog.read() as connection:
            return count_removals(connection, serial, WINDOWS)


@pytest.fixture
def story(tmp_path: Path, database_url: str) -> Iterator[Story]:
    made = small_catalog(tmp_path, database_url)
    yield Story(made)
    made.catalog.close()


def test_uploads_count_once_they_are_old_enough(story: Story) -> None:
    story.happen(0, "add file", "stays.zip")
    story.happen(0, "add file", "removed.zip")
    story.happen(0, "add file", "quarantined.zip")
    story.happen(0.5, "add file", "both.zip")
    story.happen(1, "remove file", "removed.zip")  # exactly a day later
    story.happen(1.2, QUARANTINE, "quarantined.zip", "both.zip")
    story.happen(2.4, CLEAR, "both.zip")
    story.happen(3.4, "remove release", "both.zip")
    story.happen(4, "add file", "young.zip")
    soon = story.happen(4.5, "remove project", "young.zip")
    last = story.happen(6, "add file", "last.zip")
    found = story.count(last)
    assert found == Removals(
        last,
        datetime.fromtimestamp(START + 6 * DAY_S, UTC),
        6,
        datetime.fromtimestamp(START, UTC),
        (RemovalWindow(1, 5, 2, 1, 3), RemovalWindow(3, 4, 2, 2, 3), RemovalWindow(7, 0, 0, 0, 0)),
    )
    assert [found.windows[0].share(found.windows[0].removed), found.windows[2].share(0)] == [0.4, None]
    assert [(window.uploads, window.either) for window in story.count(soon).windows] == [(4, 2), (4, 3), (0, 0)]


def test_file_without_event_is_not_an_upload_or_removal(story: Story) -> None:
    assert story.count(0) == Removals(0, None, 0, None, tuple(RemovalWindow(days, 0, 0, 0, 0) for days in WINDOWS))
    story.happen(0, "add file", "vanished.zip")
    story.small.add(2, "demo", "1.0", "baseline.zip")
    with story.small.catalog.write() as connection:
        connection.execute(changes.update().where(changes.c.serial == 2).values(cause="baseline"))
    story.small._end(live_intervals, 3, ["vanished.zip"], "unexplained")
    story.event(2, 0.1, "ignored")
    story.event(3, 0.2, "ignored")
    story.event(9, 10, "ignored")
    assert story.count(9).windows == tuple(RemovalWindow(days, 1, 0, 0, 0) for days in WINDOWS)


def test_change_published_twice_counts_once(story: Story) -> None:
    story.happen(0, "add file", "demo.zip")
    story.happen(0.5, "remove file", "demo.zip")
    story.event(3, 9, "ignored")
    with story.small.catalog.write() as connection:
        for serial, cause in ((1, "add file"), (2, "remove file")):
            one = {"distribution_id": story.small._files["demo.zip"], "serial": serial, "cause": cause}
            connection.execute(insert(changes).values(**one, logged_serial=9))
    assert story.count(3).windows == tuple(RemovalWindow(days, 1, 1, 0, 1) for days in WINDOWS)


def test_later_serial_with_the_same_time_does_not_count(story: Story) -> None:
    story.happen(0, "add file", "demo.zip")
    story.event(2, 1, "ignored")
    next(story._serials)
    assert story.happen(1, "remove file", "demo.zip") == 3
    assert [story.count(serial).windows[0].removed for serial in (2, 3)] == [0, 1]


STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.5, 1.0, 2.5]),
        st.sampled_from(["add file", "remove file", "remove release", QUARANTINE, CLEAR]),
        st.sampled_from(["a.zip", "b.zip", "c.zip"]),
    ),
    max_size=14,
)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_removals_equal_a_search_over_all_steps(steps: list[tuple[float, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        story = Story(small_catalog(Path(folder)))
        uploads: dict[str, float] = {}
        ends: list[tuple[str, str, float]] = []
        is_live: dict[str, bool] = {}
        day = last = 0.0
        serial = 0
        for pause, what, name in steps:
            day += pause
            needed = {"add file": None, CLEAR: False}.get(what, True)
            if is_live.get(name) is not needed:
                continue
            serial, last = story.happen(day, what, name), day
            is_live[name] = what in ("add file", CLEAR)
            if what == "add file":
                uploads[name] = day
            elif what != CLEAR:
                ends.append((name, what, day))
        found = story.count(serial)
        story.small.catalog.close()
    assert found.uploads == len(uploads)
    for window in found.windows:
        old = {name: at for name, at in uploads.items() if last - at >= window.within_days - SECOND}
        soon = {
            (name, what) for name, what, at in ends if name in old and at - old[name] <= window.within_days + SECOND
        }
        removed = {name for name, what in soon if what != QUARANTINE}
        quarantined = {name for name, what in soon if what == QUARANTINE}
        expected = RemovalWindow(
            window.within_days, len(old), len(removed), len(quarantined), len(removed | quarantined)
        )
        assert window == expected


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path, database_url)
    small.add(3, "Demo", "1.0", "demo-1.0.tar.gz")
    small.add(5, "other", "1.0", "other-1.0.tar.gz")
    small.add(7, "Demo", "1.0", "demo-1.0-py3-none-any.whl")
    small.yank(9, "demo-1.0.tar.gz")
    small.unyank(11, "demo-1.0.tar.gz")
    small.remove(13, "demo-1.0-py3-none-any.whl")
    small.show_again(17, "demo-1.0-py3-none-any.whl")
    for end in (8, 12, 20):
        small.complete(end)
    with small.catalog.write() as connection:
        [id_] = connection.scalars(select(distributions.c.id).where(distributions.c.filename == "demo-1.0.tar.gz"))
        keep_past_generations(connection, {id_: 15})
        connection.execute(distributions.update().where(distributions.c.id == id_).values(sha256="99" * 32))
    yield small
    small.catalog.close()


def test_changed_serials_are_where_dumps_differ(small: SmallCatalog):
    def rows(serial: int) -> list[object]:
        return [as_dumped(row) for row in project_rows_at(small.catalog, serial, "demo")]

    expected = [serial for serial in range(1, 21) if rows(serial) != rows(serial - 1)]
    assert expected == [3, 7, 9, 11, 13, 15, 17]
    with small.catalog.read() as connection:
        assert changed_serials(connection, "demo", 0, 20) == expected
        assert changed_serials(connection, "demo", 7, 13) == [9, 11, 13]
        assert changed_serials(connection, "demo", 7, 7) == []
        assert changed_serials(connection, "nothing\0", 0, 20) == []
        assert answerable_changes(connection, "demo", 0, 20) == expected


def test_change_without_events_counts_at_the_next_answerable_serial(small: SmallCatalog):
    with small.catalog.write() as connection:
        connection.execute(update(serial_ranges).where(serial_ranges.c.start == 8).values(exact_from=12))
    with small.catalog.read() as connection:
        assert answerable_changes(connection, "demo", 0, 20) == [3, 7, 12, 13, 15, 17]
        assert answerable_changes(connection, "demo", 7, 12) == [12]
        assert answerable_before(connection, 12) == 8
        assert answerable_before(connection, 13) == 12
        assert answerable_before(connection, 8) == 7
