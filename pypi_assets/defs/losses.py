"""The table of what can no longer be installed on a day, and why."""

from pypi_assets.defs.reporting import markdown_table
from pypi_assets.resolve.solvability_files import Event, NewlyUnsolvable, Outcome, Solvability

_SHOWN = 50
_COLUMNS = ("project", "environment", "version before", "event", "proof")


def losses_table(made: Solvability) -> str:
    """The first losses of a day, each with the events that did it, and the first sentence of the proof."""
    outcomes = {(one.name, place): outcome for one in made.projects for place, outcome in one.outcomes.items()}
    shown = made.newly_unsolvable[:_SHOWN]
    rows = [
        (one.project, one.environment, one.version, _why(one), _proof(outcomes[one.project, one.environment]))
        for one in shown
    ]
    table = markdown_table(_COLUMNS, rows)
    left = len(made.newly_unsolvable) - len(shown)
    return (
        f"{table}\n\nand {left} more: `pypi-assets admin report solvability --day {made.moment.day}`" if left else table
    )


def _why(one: NewlyUnsolvable) -> str:
    if one.events is None:
        return "not searched for, since there are many losses"
    return "; ".join(map(_described, one.events)) or "not found in time"


def _described(event: Event) -> str:
    files = ", ".join(event.filenames)
    more = f" and {event.files - len(event.filenames)} more" if event.files > len(event.filenames) else ""
    return f"serial {event.serial}: {event.project}: {event.kind} {files}{more}".rstrip()


def _proof(outcome: Outcome) -> str:
    return outcome.proof[0] if outcome.proof else ""
