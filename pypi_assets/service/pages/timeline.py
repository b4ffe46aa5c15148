"""The timeline of a project as a picture: the position of each mark. The macro `picture` of the templates draws it.

The number of marks is bounded, however many releases there are: marks that would overlap become one.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pypi_assets.index.actions import Action
from pypi_assets.service.pages.rendering import counted, unix_seconds
from pypi_assets.version_order import version_key

WIDTH, NARROW, LEFT, RIGHT = 760, 330, 66, 24
TOP, LANE, AXIS = 42, 34, 30
_BIN = 9
_LETTER = 6.4
"""The approximate width of a letter in a label."""
_LONGEST_LABEL = 12
_TICK = 85
"""The width that a date on the axis needs."""
_LATEST_S = 4_102_444_800.0
"""The year 2100. Times come from the index. A time after 2100 or before 1970 cannot be the time of an upload."""
_DAY_S = 86_400.0
RELEASED, YANKED, REMOVED = "released", "yanked", "removed"
LANES = (RELEASED, YANKED, REMOVED)
_LANE_OF = {
    Action.YANK_RELEASE: YANKED,
    Action.YANK_FILE: YANKED,
    Action.UNYANK_RELEASE: YANKED,
    Action.UNYANK_FILE: YANKED,
    Action.REMOVE_FILE: REMOVED,
    Action.REMOVE_RELEASE: REMOVED,
    Action.REMOVE_PROJECT: REMOVED,
    Action.QUARANTINE_PROJECT: REMOVED,
    Action.QUARANTINE_RELEASE: REMOVED,
    Action.UNQUARANTINE_PROJECT: REMOVED,
    Action.UNQUARANTINE_RELEASE: REMOVED,
}
_ENDS = frozenset({Action.UNYANK_RELEASE, Action.UNYANK_FILE, Action.UNQUARANTINE_PROJECT, Action.UNQUARANTINE_RELEASE})
"""Kinds of events that end a yank or a quarantine. Their marks are hollow."""


class TimelineMoment(NamedTuple):
    """Something that happened `at` a time in unix seconds. `version` is set for a release."""

    at: float
    lane: str
    text: str
    is_end: bool = False
    version: str | None = None


class Mark(NamedTuple):
    """The mark of one moment, or of several moments close together."""

    x: float
    radius: float
    text: str
    is_end: bool


class Lane(NamedTuple):
    name: str
    y: int
    marks: list[Mark]


class Label(NamedTuple):
    x: float
    text: str


class Timeline(NamedTuple):
    """A picture of `width` and `height`. `summary` describes the picture in a sentence."""

    width: int
    height: int
    left: int
    lanes: list[Lane]
    labels: list[Label]
    ticks: list[Label]
    summary: str


def moments(releases: Iterable[Mapping[str, Any]], history: Iterable[Mapping[str, Any]]) -> list[TimelineMoment]:
    """Return what happened to a project, in order, from its releases, as the API answers them, and from its history.

    A release begins with its first upload, even if its files were deleted since.
    """
    began: dict[str, float] = {}
    found: list[TimelineMoment] = []
    for entry in history:
        at = _time(entry["at"])
        if at is None:
            continue
        if entry["kind"] == Action.ADD_FILE and entry["version"]:
            began[entry["version"]] = min(at, began.get(entry["version"], at))
        elif lane := _LANE_OF.get(entry["kind"]):
            found.append(TimelineMoment(at, lane, entry["text"], entry["kind"] in _ENDS))
    for release in releases:
        times = [at for file in release["files"] if (at := _time(file["uploaded_at"])) is not None]
        if times:
            began[release["version"]] = min(*times, began.get(release["version"], times[0]))
    found += (TimelineMoment(at, RELEASED, f"{version} released", version=version) for version, at in began.items())
    return sorted(found)


def timelines(found: Sequence[TimelineMoment]) -> list[Timeline]:
    """Return the pictures of these sorted moments, for wide screens and for phones. Without moments there are none."""
    return [timeline(found, width) for width in (WIDTH, NARROW)] if found else []


def timeline(found: Sequence[TimelineMoment], width: int = WIDTH) -> Timeline:
    """Return the picture of these moments, which are sorted and not empty."""
    first, last = found[0].at, found[-1].at
    margin = max((last - first) * 0.02, _DAY_S / 2)
    first, last = first - margin, last + margin

    def place(at: float) -> float:
        return round(LEFT + (at - first) / (last - first) * (width - LEFT - RIGHT), 1)

    used = [lane for lane in LANES if any(one.lane == lane for one in found)]
    lanes = [
        Lane(lane, TOP + number * LANE, list(_marks((one for one in found if one.lane == lane), place)))
        for number, lane in enumerate(used)
    ]
    height = TOP + (len(lanes) - 1) * LANE + AXIS + 16
    ticks = [Label(place(at), text) for at, text in _ticks(first, last, (width - LEFT) // _TICK)]
    return Timeline(width, height, LEFT, lanes, _labels(found, place, width), ticks, _summary(found))


def _time(text: str | None) -> float | None:
    at = unix_seconds(text)
    return at if at is not None and 0 <= at < _LATEST_S else None


def _marks(found: Iterable[TimelineMoment], place: Any) -> Iterator[Mark]:
    """Yield the marks of a lane. Moments in the same bin share a mark in their middle."""
    bins: defaultdict[tuple[int, bool], list[TimelineMoment]] = defaultdict(list)
    for one in found:
        bins[int(place(one.at) // _BIN), one.is_end].append(one)
    for (_, is_end), some in sorted(bins.items()):
        x = sum(place(one.at) for one in some) / len(some)
        yield Mark(round(x, 1), round(4 + min(math.log2(len(some)), 4), 1), _text(some), is_end)


def _text(some: Sequence[TimelineMoment]) -> str:
    first, last = _day(some[0].at), _day(some[-1].at)
    if len(some) == 1:
        return f"{some[0].text}, {first}"
    days = first if first == last else f"{first} to {last}"
    return f"{len(some)} of them, {days}: {some[0].text} … {some[-1].text}"


def _labels(found: Sequence[TimelineMoment], place: Any, width: int) -> list[Label]:
    """Return the versions to label: the last one, the first of each major version, and others that fit in between."""
    released = [one for one in found if one.version]
    firsts: dict[object, TimelineMoment] = {}
    for one in released:
        firsts.setdefault(_major(one.version or ""), one)
    chosen = dict.fromkeys([*released[-1:], *firsts.values(), *released[:400]])
    labels: list[Label] = []
    for one in chosen:
        text = (one.version or "")[:_LONGEST_LABEL]
        half = len(text) * _LETTER / 2 + 3
        x = min(max(place(one.at), LEFT + half - 8), width - half)
        if all(abs(x - other.x) > half + len(other.text) * _LETTER / 2 + 3 for other in labels):
            labels.append(Label(round(x, 1), text))
    return labels


def _major(version: str) -> object:
    key = version_key(version)
    return tuple(key[2][:1]) if key[0] else version


def _ticks(first: float, last: float, most: int) -> list[tuple[float, str]]:
    """Return the beginnings of years, months or days, as many as fit."""
    steps = [*((months, "%Y") for months in (1200, 600, 240, 120, 60, 24, 12)), *((n, "%Y-%m") for n in (6, 3, 1))]
    best: list[tuple[float, str]] = []
    for months, form in steps:
        some = list(_months(first, last, months, form))
        if len(some) > most:
            return best
        best = some or best
    if len(best) > 2:
        return best
    days = [some for step in (14, 7, 3, 1) if len(some := list(_days(first, last, step, most))) <= most]
    return max([best, *days], key=len)


def _months(first: float, last: float, months: int, form: str) -> Iterator[tuple[float, str]]:
    begun = datetime.fromtimestamp(first, UTC)
    number = math.ceil((begun.year * 12 + begun.month - 1) / months) * months
    while number < 9999 * 12:
        at = datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)
        if at.timestamp() > last:
            return
        if at.timestamp() >= first:
            yield at.timestamp(), at.strftime(form)
        number += months


def _days(first: float, last: float, step: int, most: int) -> Iterator[tuple[float, str]]:
    at = datetime.fromtimestamp(first, UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    for _ in range(most + 1):
        if at.timestamp() > last:
            return
        yield at.timestamp(), at.strftime("%Y-%m-%d")
        at += timedelta(days=step)


def _summary(found: Sequence[TimelineMoment]) -> str:
    counts = [(lane, sum(1 for one in found if one.lane == lane and not one.is_end)) for lane in LANES]
    nouns = {RELEASED: "release", YANKED: "yank", REMOVED: "removal or quarantine"}
    plurals = {REMOVED: "removals or quarantines"}
    shown = ", ".join(counted(count, nouns[lane], plurals.get(lane)) for lane, count in counts if count)
    first, last = _day(found[0].at), _day(found[-1].at)
    return f"{shown or 'Events'}, {f'on {first}' if first == last else f'from {first} to {last}'}."


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
