"""The commands `pypi-assets admin report ...`, which measure the index over time."""

from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.options import JSON, command
from pypi_assets.terminal import counted, print_json, print_message, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from pypi_assets.catalog.reports.removals import Removals, RemovalWindow
    from pypi_assets.resolve.solvability import Solvability

_COLUMNS = ("within", "uploads", "removed", "quarantined", "either", "share")
_MOST_DAYS, _MOST_WINDOWS = 3_650, 20


class DaysType(click.ParamType[Any]):
    """Distinct numbers of days in ascending order, separated by commas, such as 1,3,7."""

    name = "days"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        texts = [text.strip() for text in str(value).split(",")]
        is_right = all(text.isascii() and text.isdecimal() and len(text) <= 4 for text in texts)
        days = sorted({int(text) for text in texts}) if is_right else [0]
        if not 1 <= days[0] <= days[-1] <= _MOST_DAYS or len(days) > _MOST_WINDOWS:
            self.fail(
                f"{str(value)[:100]!r}: pass at most {_MOST_WINDOWS} numbers of days, 1 to {_MOST_DAYS}, such as 1,3,7",
                param,
                ctx,
            )
        return tuple(days)


@click.group("report")
def report_group() -> None:
    """Measure the index over time."""


@command("removals", "--within 1,3,7,14", group=report_group, within="admin")
@click.option("--within", type=DaysType(), default="1,3,7,14", show_default=True, help="Days after the upload.")
@JSON
def removals_command(within: tuple[int, ...], as_json: bool) -> None:
    """Show the share of uploads that were removed or quarantined within some days.

    Each line counts only uploads that are at least that many days old. An upload is a file whose event is known.
    """
    from pypi_assets.catalog.observed.followed import count_answered
    from pypi_assets.catalog.reports.removals import count_removals
    from pypi_assets.cli.followed_notes import among
    from pypi_assets.cli.options import catalog_at

    with catalog_at(None) as (catalog, serial), catalog.read_once() as connection:
        found = count_removals(connection, serial, within)
        followed = count_answered(connection, serial)
    if as_json:
        context = {} if followed is None else {"followed_projects": followed}
        print_json({**_as_json(found), **context})
    else:
        rows = (
            (counted(one.within_days, "day"), one.uploads, one.removed, one.quarantined, one.either, _share(one))
            for one in found.windows
        )
        print_table(_COLUMNS, rows)
    if found.first_upload is None:
        print_message(f"no upload is known as of serial {serial}{among(followed)}")
    else:
        since = found.first_upload.date().isoformat()
        print_message(f"{counted(found.uploads, 'upload')} since {since}, as of serial {serial}{among(followed)}")


def _share(window: "RemovalWindow") -> str:
    share = window.share(window.either)
    return "-" if share is None else f"{share:.3%}"


def _as_json(found: "Removals") -> dict[str, Any]:
    return {
        "serial": found.serial,
        "at": None if found.at is None else found.at.isoformat(),
        "uploads": found.uploads,
        "first_upload": None if found.first_upload is None else found.first_upload.isoformat(),
        "windows": [
            {
                "within_days": one.within_days,
                "uploads": one.uploads,
                "removed": one.removed,
                "removed_share": one.share(one.removed),
                "quarantined": one.quarantined,
                "quarantined_share": one.share(one.quarantined),
                "either": one.either,
                "either_share": one.share(one.either),
            }
            for one in found.windows
        ],
    }


class DayType(click.ParamType[Any]):
    """A day in UTC, such as 2026-03-01."""

    name = "day"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> "date":
        from datetime import date

        if isinstance(value, date):
            return value
        try:
            return date.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{str(value)[:100]!r} is not a day: pass a day such as 2026-03-01", param, ctx)


@command("solvability", "--day 2026-03-01", group=report_group, within="admin")
@click.option("--day", type=DayType(), metavar="DAY", help="The day (UTC) to show; default: the newest stored day.")
@JSON
def solvability_command(day: "date | None", as_json: bool) -> None:
    """Show which of the most-required projects could not be installed at the end of a day.

    Dagster's asset `solvability` computes the days. Projects that became unsolvable since the day before come first,
    with the event that caused it. With --json, it also shows the versions chosen for each project, in each environment.
    """
    import msgspec

    from pypi_assets.components import storage_from
    from pypi_assets.resolve.solvability import read_day, read_newest
    from pypi_assets.settings import load_settings

    storage = storage_from(load_settings(), read_only=True)
    made = read_newest(storage) if day is None else read_day(storage, day)
    if as_json:
        print_json(msgspec.to_builtins(made))
        return
    print_table(("project", "environment", "outcome", "reason"), _failures(made))
    counts = made.counts
    print_message(
        f"{made.moment.day}, as of serial {made.moment.serial}: {counts['solvable']} of {sum(counts.values())}"
        f" solvable, {len(made.newly_unsolvable)} newly unsolvable, {len(made.newly_solvable)} newly solvable"
        + ("" if made.before else "; there is no exact answer about the day before")
    )


def _failures(made: "Solvability") -> "Iterator[tuple[str, str, str, str]]":
    """Yield projects without a solution. Projects that had a solution on the day before come first."""
    lost = {(one.project, one.environment): one for one in made.newly_unsolvable}
    for key, one in lost.items():
        events = "; ".join(f"serial {event.serial}: {event.project} {event.text}" for event in one.events or ())
        yield *key, "newly unsolvable", events or "the event was not found"
    for project in made.projects:
        for place, outcome in project.outcomes.items():
            if outcome.failure is not None and (project.name, place) not in lost:
                yield project.name, place, str(outcome.failure), outcome.proof[0]
