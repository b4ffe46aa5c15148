"""The command `blame`, which finds the event that changed what requirements resolve to."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.contexts import existing_catalog
from pypi_assets.cli.options import JSON, MomentType, command
from pypi_assets.cli.resolve_options import Given, question_options
from pypi_assets.terminal import counted, plain, print_json, print_message
from pypi_assets.times import utc_text

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.reports.moments import Moment
    from pypi_assets.resolve.blame import ResolutionChange, ResolutionOutcome
    from pypi_assets.resolve.targets import Target

_MOST_PINS = 20


@command("blame", "-r requirements.txt --good 2026-03-01 --bad 2026-03-08")
@question_options
@click.option("--good", type=MomentType(), metavar="SERIAL|DATE", required=True, help="A moment with the old outcome.")
@click.option(
    "--bad",
    type=MomentType(),
    metavar="SERIAL|DATE",
    help="A moment with the new outcome; default: the complete serial.",
)
@click.option("--all", "everything", is_flag=True, help="Find all changes of the outcome, in order.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="With --all: print at most this many changes.",
)
@JSON
def blame_command(
    given: Given, good: "Moment", bad: "Moment | None", everything: bool, limit: int, as_json: bool
) -> None:
    """Find the event that changed what an installer would choose.

    An event is an upload, a removal, a yank or a quarantine in any project that the requirements lead to. The outcome
    may have changed more than once; without --all, one change is found.
    """
    from pypi_assets.settings import load_settings

    if given.cooldown is not None:
        raise click.UsageError("--cooldown does not work with blame: with it, outcomes change without an event")
    target = given.target()
    with existing_catalog(load_settings()) as catalog:
        _Blaming(catalog, given, target, as_json).run(good, bad, limit if everything else None)


class _Blaming:
    """One run of the command."""

    def __init__(self, catalog: "Catalog", given: Given, target: "Target", as_json: bool) -> None:
        from pypi_assets.resolve.blame import CatalogHistory, OutcomeHistory

        self._catalog, self._target, self._as_json = catalog, target, as_json
        self._ignored_options = list(given.ignored_options)
        self._question = given.question(target, datetime.now(UTC))
        self._history: CatalogHistory = CatalogHistory(catalog)
        self._outcomes: OutcomeHistory = OutcomeHistory(self._history, self._question)

    def run(self, good: "Moment", bad: "Moment | None", limit: int | None) -> None:
        from pypi_assets.catalog.reports.moments import serial_of
        from pypi_assets.resolve.blame import all_changes, blame

        first, last = serial_of(self._catalog, good), serial_of(self._catalog, bad)
        if first >= last:
            raise click.UsageError(f"--good (serial {first}) must come before --bad (serial {last})")
        if limit is None:
            found = blame(self._outcomes, first, last)
            changes = [] if found.change is None else [found.change]
            is_cut = False
        else:
            some = list(islice(all_changes(self._outcomes, first, last), limit + 1))
            changes, is_cut = some[:limit], len(some) > limit
        if self._as_json:
            print_json(self._json(first, last, changes, is_cut))
        else:
            self._print(first, last, changes, is_one=limit is None, is_cut=is_cut)
        if not changes:
            raise click.exceptions.Exit(1)

    def _json(self, good: int, bad: int, changes: "list[ResolutionChange]", is_cut: bool) -> dict[str, Any]:
        return {
            "good": good,
            "bad": bad,
            "requirements": [one.text for one in self._question.requirements],
            "python": self._target.python,
            "platform": self._target.platform,
            "semantics": self._question.semantics.value,
            "resolutions": self._outcomes.count,
            "is_cut": is_cut,
            "changes": list(map(self._change, changes)),
            "ignored_options": self._ignored_options,
        }

    def _change(self, change: "ResolutionChange") -> dict[str, Any]:
        return {
            "serial": change.serial,
            "events": [
                {
                    "project": project,
                    "kind": entry.kind,
                    "text": entry.text,
                    "version": entry.version,
                    "serial": entry.serial,
                    "at": utc_text(entry.at),
                    "filenames": list(entry.filenames),
                }
                for project, entry in self._history.entries(change)
            ],
            "pins": [
                {"normalized": name, "before": before, "after": after} for name, (before, after) in change.pins.items()
            ],
            "before": _outcome(change.before),
            "after": _outcome(change.after),
        }

    def _print(self, good: int, bad: int, changes: "list[ResolutionChange]", *, is_one: bool, is_cut: bool) -> None:
        for change in changes:
            for depth, line in self._lines(change):
                click.echo("  " * depth + plain(line))
        made = counted(self._outcomes.count, "resolution")
        where = (
            f"between the serials {good} and {bad}, for {self._target}, as {self._question.semantics.value} resolves"
        )
        if not changes:
            print_message(f"the outcome is the same at both ends; {where} ({made})")
        elif is_one:
            print_message(f"one change {where}; there may be others, which --all finds ({made})")
        else:
            more = ", and more after them: pass a greater --limit" if is_cut else ""
            print_message(f"{counted(len(changes), 'change')} {where}{more} ({made})")

    def _lines(self, change: "ResolutionChange") -> Iterator[tuple[int, str]]:
        """Yield the lines about a change, each with its depth."""
        entries = self._history.entries(change)
        for project, entry in entries:
            at = utc_text(entry.at)
            yield 0, f"{project}: {entry.text}, at serial {entry.serial}{f', {at}' if at else ''}"
        if not entries:
            yield 0, f"{', '.join(change.projects)} changed at serial {change.serial}"
        for name, outcome in (("before", change.before), ("after", change.after)):
            if outcome.failure is not None:
                yield 1, f"{name}, there is no solution:"
                yield from ((2, step) for step in outcome.failure.splitlines())
            elif (change.before.pins is None) != (change.after.pins is None):
                yield 1, f"{name}, {counted(len(outcome.pins or {}), 'release')} can be installed:"
                yield 2, _pins(outcome)
        if change.before.pins is not None and change.after.pins is not None:
            for name, (before, after) in change.pins.items():
                yield 1, f"{name} {before or '(not there)'} -> {after or '(not there)'}"


def _outcome(outcome: "ResolutionOutcome") -> dict[str, Any]:
    return {
        "serial": outcome.serial,
        "pins": outcome.pins,
        "failure": None if outcome.failure is None else outcome.failure.splitlines(),
    }


def _pins(outcome: "ResolutionOutcome") -> str:
    pins = [f"{name} {version}" for name, version in (outcome.pins or {}).items()]
    more = f" and {len(pins) - _MOST_PINS} more" if len(pins) > _MOST_PINS else ""
    return ", ".join(pins[:_MOST_PINS]) + more
