"""The page of solvability by day, with the losses and gains of one day and the events that caused them.

The template draws the plot from coordinates that are computed here.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from pypi_assets.service.pages.page import Content, View, WebPage, page_operations
from pypi_assets.service.pages.rendering import counted
from pypi_assets.service.parameters import OperationParameters
from pypi_assets.service.solvability import MOST_DAYS, NEWEST, SOLVABILITY_DAY, SOLVABILITY_DAYS, DayText

WIDTH, NARROW, LEFT, RIGHT = 760, 330, 46, 14
TOP, SHARES, GAP, LOSSES, BOTTOM = 14, 120, 22, 56, 26
_TICK = 92
"""The width that a date on the axis needs."""
_WIDEST_BAR = 14.0


class Point(NamedTuple):
    """A point of the line: a day, with its share as the height `y`."""

    x: float
    y: float
    text: str


class Bar(NamedTuple):
    """A bar: the losses of a day."""

    x: float
    y: float
    width: float
    height: float
    text: str


class Tick(NamedTuple):
    """A label on an axis: a date at the bottom, or a number on the left."""

    at: float
    text: str


class Plot(NamedTuple):
    """A picture of `width` and `height`. Each of `lines` has the points of consecutive days.

    `base` is the height at which bars stand. `summary` describes the picture in a sentence.
    """

    width: int
    height: int
    left: int
    right: int
    base: float
    lines: Sequence[Sequence[Point]]
    bars: Sequence[Bar]
    dates: Sequence[Tick]
    shares: Sequence[Tick]
    losses: Sequence[Tick]
    summary: str


class _SolvabilityDay(NamedTuple):
    day: date
    share: float
    lost: int


def plots(days: Iterable[Mapping[str, Any]]) -> list[Plot]:
    """Return a wide and a narrow picture of these days, or [] if no day has outcomes.

    The days are in ascending order, as the API answers them.
    """
    found = []
    for one in days:
        total = sum(one["outcomes"].values())
        if total:
            share = one["outcomes"]["solvable"] / total
            found.append(_SolvabilityDay(date.fromisoformat(one["day"]), share, one["newly_unsolvable"]))
    return [_plot(found, width) for width in (WIDTH, NARROW)] if found else []


def _plot(days: Sequence[_SolvabilityDay], width: int) -> Plot:
    first, last = days[0].day, days[-1].day
    span = max((last - first).days, 1)
    step = (width - LEFT - RIGHT) / (span + 1)
    least = _least_share(min(one.share for one in days))
    most = max(1, *(one.lost for one in days))
    base = TOP + SHARES + GAP + LOSSES

    def x(day: date) -> float:
        return round(LEFT + step * ((day - first).days + 0.5), 1)

    def y(share: float) -> float:
        return round(TOP + SHARES * (1 - share) / (1 - least), 1)

    bars = []
    for one in days:
        if one.lost:
            height, thick = LOSSES * one.lost / most, min(_WIDEST_BAR, max(step * 0.7, 1.0))
            text = f"{one.day}: {one.lost} newly unsolvable"
            bars.append(Bar(round(x(one.day) - thick / 2, 1), base - height, round(thick, 1), height, text))
    return Plot(
        width=width,
        height=base + BOTTOM,
        left=LEFT,
        right=width - RIGHT,
        base=base,
        lines=[[Point(x(one.day), y(one.share), _text(one)) for one in some] for some in _runs(days)],
        bars=bars,
        dates=[Tick(x(day), day.isoformat()) for day in _some_days(first, last, width)],
        shares=[Tick(y(share), _percent(share)) for share in (1.0, least)],
        losses=[Tick(base - LOSSES, str(most))],
        summary=_summary(days),
    )


def _text(one: _SolvabilityDay) -> str:
    return f"{one.day}: {_percent(one.share)} solvable"


def _percent(share: float) -> str:
    """Return a share in per cent, rounded down, so that 100 % means all."""
    return f"{math.floor(share * 1_000) / 10:g} %"


def _least_share(least: float) -> float:
    """Return the lower end of the axis: a multiple of 0.05 below the least share."""
    return max(0.0, min(math.floor(least * 20 - 1e-9) / 20, 0.95))


def _runs(days: Sequence[_SolvabilityDay]) -> Iterator[list[_SolvabilityDay]]:
    """Yield runs of consecutive days."""
    run: list[_SolvabilityDay] = []
    for one in days:
        if run and one.day - run[-1].day > timedelta(days=1):
            yield run
            run = []
        run.append(one)
    yield run


def _some_days(first: date, last: date, width: int) -> list[date]:
    """Return the days that are labelled: both ends, and as many days in between as fit."""
    span = (last - first).days
    count = min(span, max(int((width - LEFT - RIGHT) / _TICK) - 1, 1))
    return [first + timedelta(days=round(span * number / count)) for number in range(count + 1)] if count else [first]


def _summary(days: Sequence[_SolvabilityDay]) -> str:
    lost = sum(one.lost for one in days)
    latest = days[-1]
    return (
        f"Of {counted(len(days), 'day')} from {days[0].day} to {latest.day}: {_percent(latest.share)} solvable on the"
        f" last one, {_percent(min(one.share for one in days))} at the least; {lost} newly unsolvable in all."
    )


_PLOTTED = 90
_MOST_SHOWN = 200
"""The number of losses, and of outcomes without a solution, to list."""


class SolvabilityPageParameters(OperationParameters, frozen=True):
    """The day of the page."""

    day: DayText = NEWEST


def _solvability(view: View, parameters: SolvabilityPageParameters) -> Content:
    days = view.part(SOLVABILITY_DAYS, days=MOST_DAYS)
    if not days["days"]:
        return Content("Solvability", {"days": days, "day": None}, {"found": None})
    found = view.part(SOLVABILITY_DAY, day=parameters.day)
    known = [one["day"] for one in days["days"]]
    day = found["moment"]["day"]
    shown = {
        "found": found,
        "plots": plots(days["days"][-_PLOTTED:]),
        "table": days["days"][: -_PLOTTED - 1 : -1],
        "before": max((one for one in known if one < day), default=None),
        "after": min((one for one in known if one > day), default=None),
        "lost": [_loss(found, one) for one in found["newly_unsolvable"][:_MOST_SHOWN]],
        "failing": failing(found)[:_MOST_SHOWN],
        "failures": len(failing(found)),
        "solvable": sum("failure" not in one for one in _outcomes(found)),
        "total": len(_outcomes(found)),
        "most": _MOST_SHOWN,
    }
    return Content(f"Solvability on {day}", {"days": days, "day": found}, shown)


def failing(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the projects and environments without a solution, in the order of the day.

    Each has the parameters that resolve it again.
    """
    places = {one["name"]: one for one in found["environments"]}
    return [
        {"project": project["name"], "place": places[name], "resolve": _question(project["name"], places[name]), **one}
        for project in found["projects"]
        for name, one in project["outcomes"].items()
        if "failure" in one
    ]


def _loss(found: Mapping[str, Any], lost: Mapping[str, Any]) -> dict[str, Any]:
    """Return a loss with its proof, and with the end of the day before, to compare its resolution with."""
    [place] = [one for one in found["environments"] if one["name"] == lost["environment"]]
    [project] = [one for one in found["projects"] if one["name"] == lost["project"]]
    proof: Sequence[str] = project["outcomes"][place["name"]].get("proof", ())
    than = str(found["before"]["serial"]) if found["before"] else ""
    return {**lost, "place": place, "proof": proof, "resolve": {**_question(lost["project"], place), "than": than}}


def _question(project: str, place: Mapping[str, str]) -> dict[str, str]:
    return {"requirements": project, "python": place["python"], "platform": place["platform"]}


def _outcomes(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for project in found["projects"] for one in project["outcomes"].values()]


SOLVABILITY_PAGE = WebPage(
    path="/solvability",
    template="solvability.html",
    summary="Show which of the most-required projects can be installed, by day, and what broke the others",
    parameters=SolvabilityPageParameters,
    content=_solvability,
    at_serial=False,
)
OPERATIONS = page_operations(SOLVABILITY_PAGE)
