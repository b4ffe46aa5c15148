"""The command that shows which modules several distributions of a lock have."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.lock_options import LOCK_FILE, environment_options, locked_answer, print_remarks, print_serial
from pypi_assets.cli.options import JSON, command
from pypi_assets.terminal import counted, print_json, print_message, print_table

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.moments import Moment
    from pypi_assets.questions.locks import LockedAnswer

_COLUMNS = ("modules", "distributions", "pip")
_SHOWN = 5


@command("collisions", "requirements.txt --python 3.12 --platform linux", within="lookup")
@click.argument("lock", type=LOCK_FILE)
@environment_options
@click.option("--check", is_flag=True, help="Exit with 1 where there is a collision.")
@JSON
def collisions_command(
    lock: Path, python: str | None, platform: str | None, at: "Moment | None", check: bool, as_json: bool
) -> None:
    """Show modules that several distributions pinned by LOCK have.

    Installed together, one of them overwrites the others: the last column is the distribution that pip installs last.
    LOCK is a requirements.txt with ==, pylock.toml, uv.lock or poetry.lock.
    """
    from pypi_assets.questions.collisions import collisions

    answer = locked_answer(lock, python, platform, at)
    found = collisions(answer)
    if as_json:
        print_json(_as_json(answer, python, platform))
    else:
        rows = (
            (
                [*one["modules"][:_SHOWN], *_rest(len(one["modules"]) - _SHOWN)],
                [f"{each['project']} {each['version']}" for each in one["distributions"]],
                one["pip"],
            )
            for one in found
        )
        print_table(_COLUMNS, rows)
    print_remarks(answer.remarks)
    if not found:
        print_message("no two of the distributions have the same module")
    print_serial(answer)
    if check and found:
        raise click.exceptions.Exit(1)


def _rest(count: int) -> list[str]:
    return [f"and {counted(count, 'other')}"] if count > 0 else []


def _as_json(answer: "LockedAnswer", python: str | None, platform: str | None) -> dict[str, Any]:
    from pypi_assets.questions.collisions import as_result

    epoch = {} if answer.epoch is None else {"epoch": answer.epoch}
    return {"lock": answer.lock, "serial": answer.serial, **epoch, **as_result(answer, python, platform)}
