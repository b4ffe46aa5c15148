from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from pypi_assets.service.pages.timeline import (
    LEFT,
    NARROW,
    WIDTH,
    Timeline,
    TimelineMoment,
    moments,
    timeline,
    timelines,
)
from pypi_assets_tests.named import unnamed

DAY_S = 86_400.0


def release(version: str, *uploaded: str | None) -> dict[str, Any]:
    return {"version": version, "files": [{"uploaded_at": one} for one in uploaded]}


def entry(at: str | None, kind: str, version: str | None = None) -> dict[str, Any]:
    return {"at": at, "kind": kind, "version": version, "text": f"{kind} {version}"}


def released(*days: float, version: str = "1.0") -> list[TimelineMoment]:
    return [
        TimelineMoment(day * DAY_S, "released", f"{version}.{n} released", version=f"{version}.{n}")
        for n, day in enumerate(days)
    ]


def drawn(found: list[TimelineMoment]) -> Timeline:
    return timeline(found)


def test_release_begins_with_its_first_file_even_if_removed():
    found = moments(
        [release("1.0", "2026-03-05T00:00:00Z", "2026-03-03T00:00:00Z"), release("2.0", None)],
        [
            entry("2026-03-02T00:00:00Z", "add file", "0.9"),
            entry("2026-03-04T00:00:00Z", "add file", "1.0"),
            entry("2026-03-06T00:00:00Z", "remove release", "0.9"),
            entry(None, "yank release", "1.0"),
            entry("2026-03-07T00:00:00Z", "ignored"),
            entry("2026-03-08T00:00:00Z", "unyank release", "1.0"),
        ],
    )
    assert [(datetime.fromtimestamp(mark.at, UTC).day, mark.lane, mark.text, mark.is_end) for mark in found] == [
        (2, "released", "0.9 released", False),
        (3, "released", "1.0 released", False),
        (6, "removed", "remove release 0.9", False),
        (8, "yanked", "unyank release 1.0", True),
    ]


def test_impossible_upload_times_are_skipped():
    times = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1969-12-31", "soon", "")
    assert moments([release("1", *times)], [entry(time, "add file", "2") for time in times]) == []


def test_timeline_without_events_has_no_picture():
    assert timelines([]) == []


def test_timeline_has_pictures_for_wide_screens_and_phones():
    found = released(*range(0, 4_000, 7))
    wide, narrow = timelines(found)
    assert (wide.width, narrow.width) == (WIDTH, NARROW)
    for picture in (wide, narrow):
        assert all(LEFT <= mark.x <= picture.width for lane in picture.lanes for mark in lane.marks)
        assert all(other.x - one.x > 40 for one, other in pairwise(picture.ticks))
    assert 2 <= len(narrow.ticks) < len(wide.ticks)
    assert narrow.summary == wide.summary


def test_day_is_named_once_and_no_lane_is_empty():
    picture = drawn([TimelineMoment(DAY_S, "yanked", "1.0 yanked"), TimelineMoment(DAY_S + 1, "yanked", "2.0 yanked")])
    assert unnamed(picture.summary, 2, "1970-01-02") == []
    assert picture.summary.count("1970") == 1
    assert [lane.name for lane in picture.lanes] == ["yanked"]


def test_marks_are_ordered_within_bounds_and_empty_lanes_are_omitted():
    found = [*released(0, 50, 100), TimelineMoment(70 * DAY_S, "yanked", "1.0 yanked")]
    picture = drawn(sorted(found))
    assert [lane.name for lane in picture.lanes] == ["released", "yanked"]
    places = [mark.x for mark in picture.lanes[0].marks]
    assert places == sorted(places)
    assert LEFT < places[0] < places[-1] < WIDTH
    assert all(lane.y < picture.height for lane in picture.lanes)
    assert unnamed(picture.summary, 3, 1, "1970-01-01", "1970-04-11") == []


def test_single_event_is_drawn_in_the_middle():
    [mark] = drawn(released(10)).lanes[0].marks
    assert LEFT + 200 < mark.x < WIDTH - 200
    assert unnamed(mark.text, "1.0.0", "1970-01-11") == []


def test_picture_is_bounded_for_any_number_of_releases():
    picture = drawn(released(*range(20_000)))
    assert len(picture.lanes[0].marks) < 100
    assert len(picture.labels) < 30
    assert len(picture.ticks) <= 8
    assert "20,000 releases" in picture.summary
    assert max(mark.radius for mark in picture.lanes[0].marks) <= 8


def test_labels_include_the_last_release_and_do_not_overlap():
    found = [TimelineMoment(n * DAY_S, "released", "", version=f"{n // 10}.{n % 10}") for n in range(200)]
    labels = drawn(found).labels
    assert "19.9" in {label.text for label in labels}
    places = sorted((label.x - len(label.text) * 3, label.x + len(label.text) * 3) for label in labels)
    assert all(end <= start for (_, end), (start, _) in pairwise(places))


def test_tick_unit_depends_on_the_span():
    assert [label.text for label in drawn(released(0, 4_000)).ticks] == ["1970", "1972", "1974", "1976", "1978", "1980"]
    assert [label.text for label in drawn(released(0, 100)).ticks] == ["1970-01", "1970-02", "1970-03", "1970-04"]
    assert [label.text for label in drawn(released(0, 3)).ticks][:2] == ["1970-01-01", "1970-01-02"]
