"""The page of solvability: by day, and what was lost and gained on one, with the event that did it."""

from collections.abc import Mapping, Sequence
from typing import Any

from pypi_assets.service.pages.page import Content, Page, View, page_operations
from pypi_assets.service.pages.solvability_plot import plots
from pypi_assets.service.parameters import Parameters
from pypi_assets.service.solvability import MOST_DAYS, NEWEST, SOLVABILITY_DAY, SOLVABILITY_DAYS, DayText

_PLOTTED = 90
_MOST_SHOWN = 200
"""Losses, and outcomes without a solution, that are listed."""


class SolvabilityPageParameters(Parameters, frozen=True):
    """Which day."""

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
    """The projects and environments without a solution, in the order of the day, each with how to resolve it again."""
    places = {one["name"]: one for one in found["environments"]}
    return [
        {"project": project["name"], "place": places[name], "resolve": _question(project["name"], places[name]), **one}
        for project in found["projects"]
        for name, one in project["outcomes"].items()
        if "failure" in one
    ]


def _loss(found: Mapping[str, Any], lost: Mapping[str, Any]) -> dict[str, Any]:
    """A loss, with the proof, and what its resolution is compared with: the end of the day before."""
    [place] = [one for one in found["environments"] if one["name"] == lost["environment"]]
    [project] = [one for one in found["projects"] if one["name"] == lost["project"]]
    proof: Sequence[str] = project["outcomes"][place["name"]].get("proof", ())
    than = str(found["before"]["serial"]) if found["before"] else ""
    return {**lost, "place": place, "proof": proof, "resolve": {**_question(lost["project"], place), "than": than}}


def _question(project: str, place: Mapping[str, str]) -> dict[str, str]:
    return {"requirements": project, "python": place["python"], "platform": place["platform"]}


def _outcomes(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for project in found["projects"] for one in project["outcomes"].values()]


SOLVABILITY_PAGE = Page(
    path="/solvability",
    template="solvability.html",
    summary="Which of the most-required projects can be installed, by day, and what left one without a solution",
    parameters=SolvabilityPageParameters,
    content=_solvability,
    at_serial=False,
)
OPERATIONS = page_operations(SOLVABILITY_PAGE)
