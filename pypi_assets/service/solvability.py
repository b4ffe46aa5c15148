"""The routes of solvability: the published results of each day. They do not depend on a serial."""

from datetime import date
from typing import Annotated

import msgspec
from msgspec import Meta

from pypi_assets.resolve.solvability import DaySummary, NoDayError, Solvability, SolvabilityError
from pypi_assets.service.operations import Call, Operation
from pypi_assets.service.parameters import OperationParameters, whole
from pypi_assets.service.problems import not_found, unavailable
from pypi_assets.service.responses import WholeAnswer, to_json
from pypi_assets.service.service import Service

MOST_DAYS, DEFAULT_DAYS = 400, 90
NO_DAYS = "no day of solvability is published yet: materialize the asset `solvability` in Dagster"


NEWEST = "newest"
DayText = Annotated[
    str,
    Meta(pattern=whole(r"^([0-9]{4}-[0-9]{2}-[0-9]{2}|newest)$"), description="a day, such as 2026-03-01, or newest"),
]


class SolvabilityParameters(OperationParameters, frozen=True):
    """The number of days."""

    days: Annotated[int, Meta(ge=1, le=MOST_DAYS, description=f"the last days: 1 to {MOST_DAYS}")] = DEFAULT_DAYS


class DayParameters(OperationParameters, frozen=True):
    """The day to show."""

    day: DayText


class SolvabilityDays(msgspec.Struct, frozen=True, kw_only=True):
    """The published days in ascending order. Without any, `hints` says how to publish them."""

    days: tuple[DaySummary, ...]
    hints: tuple[str, ...] = ()


def _days(service: Service, call: Call[SolvabilityParameters]) -> WholeAnswer:
    found = tuple(service.solvability.summaries(call.parameters.days))
    return WholeAnswer(to_json(SolvabilityDays(days=found, hints=() if found else (NO_DAYS,))))


def _day(service: Service, call: Call[DayParameters]) -> WholeAnswer:
    found = _read(service, call.parameters.day)
    return WholeAnswer(to_json(found), serial=found.moment.serial)


def _read(service: Service, day: str) -> Solvability:
    try:
        return service.solvability.read(None if day == NEWEST else date.fromisoformat(day))
    except NoDayError as error:
        raise not_found(str(error), parameter="day") from None
    except SolvabilityError as error:
        raise unavailable(str(error)) from None
    except ValueError:
        raise not_found(f"{day} is not a valid day", parameter="day") from None


SOLVABILITY_DAYS = Operation(
    path="/v1/solvability",
    handler=_days,
    summary="Show the share of the most-required projects that could be installed at the end of each day",
    parameters=SolvabilityParameters,
    answer=SolvabilityDays,
    at_serial=False,
)
SOLVABILITY_DAY = Operation(
    path="/v1/solvability/{day}",
    handler=_day,
    summary="Show how the most-required projects resolved at the end of a day, and the losses since the day before",
    description="Each loss has the events that caused it. Outcomes are listed by project and environment.",
    parameters=DayParameters,
    answer=Solvability,
    problems=(404,),
    at_serial=False,
)
OPERATIONS = (SOLVABILITY_DAYS, SOLVABILITY_DAY)
