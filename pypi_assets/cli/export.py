"""The commands `pypi-assets export ...`, which write files for other tools.

The package `export/` defines the formats of locked distributions. This module only makes commands of them.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.options import AT, command
from pypi_assets.export.summaries import SUMMARIES
from pypi_assets.terminal import counted, print_message

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.moments import Moment
    from pypi_assets.locks.pins import Remark
    from pypi_assets.questions.locks import LockedAnswer

LOCK_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_LOCK_PYTHON = click.option("--python", help="The version of CPython, such as 3.12; default: any version.")
_LOCK_PLATFORM = click.option(
    "--platform",
    help="The platform: linux, macos, windows, or a platform tag of wheels, such as win_arm64; default: any platform.",
)


def environment_options(run: Callable[..., None]) -> Callable[..., Any]:
    """Add `--python`, `--platform` and `--at` to a command about a lock."""
    return _LOCK_PYTHON(_LOCK_PLATFORM(AT(run)))


def locked_answer(lock: Path, python: str | None, platform: str | None, at: "Moment | None") -> "LockedAnswer":
    """Return the answer about the pins of a lock. Raises LockError and BadParameter before any data is opened."""
    from functools import partial

    from pypi_assets.cli.lookup import opened  # this imports the declarations of questions
    from pypi_assets.locks.environments import EnvironmentNameError, named_environment
    from pypi_assets.locks.lock_formats import read_lock
    from pypi_assets.questions.locks import LockedPins

    try:
        environment = named_environment(python, platform)
    except EnvironmentNameError as error:
        raise click.BadParameter(str(error)) from error
    pins = LockedPins(read_lock(lock), environment)
    with opened(at) as asking:
        answer: LockedAnswer = asking.answered(partial(pins.answer, asking.snapshot))
        return answer


def print_remarks(remarks: "Iterable[Remark]") -> None:
    """Print the remarks to standard error."""
    for remark in remarks:
        print_message(remark.text)


def print_serial(answer: "LockedAnswer") -> None:
    """Print the number of pins and the serial of the answer to standard error."""
    source = "" if answer.epoch is None else ", from the catalog"
    pins = counted(len(answer.pins), "pinned distribution")
    print_message(f"{pins}, {len(answer.releases)} of them known, as of serial {answer.serial}{source}")


@click.group("export")
def export_group() -> None:
    """Write files for other tools.

    The export of a lock goes to standard output. Remarks on missing parts go to standard error, with the reason.
    """


@command("owners", "--top-level owners.jsonl.gz", group=export_group)
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--top-level", is_flag=True, required=True, help="Export top-level names; no other export exists.")
@click.option(
    "--candidates", "most", type=click.IntRange(1, 20), default=3, show_default=True, help="Candidates per name."
)
def owners_command(path: Path, top_level: bool, most: int) -> None:  # noqa: ARG001 - always true
    """Write all top-level names with their best candidates into one file, for offline programs.

    PATH is compressed if it ends with .gz.
    """
    from pypi_assets.cli.lookup import opened_versions  # this imports the declarations of questions
    from pypi_assets.export.module_owners import export_top_level

    with opened_versions() as asking:
        written = asking.answered(lambda: export_top_level(asking.snapshot, path, most))
    names = counted(written.names, "top-level name")
    print_message(f"{path}: {names}, {written.size:,} bytes, as of serial {written.serial}")


def _export_command(name: str) -> None:
    @command(name, "--lock requirements.txt", group=export_group)
    @click.option(
        "--lock",
        required=True,
        type=LOCK_FILE,
        help="The file with pinned distributions: a requirements.txt with ==, pylock.toml, uv.lock or poetry.lock.",
    )
    @environment_options
    def run(lock: Path, **options: Any) -> None:
        from pypi_assets.export.formats import FORMATS, remarks

        answer = locked_answer(lock, **options)
        click.echo(FORMATS[name].render(answer), nl=False)
        print_remarks(remarks(name, answer))
        print_serial(answer)

    run.help = SUMMARIES[name]
    run.short_help = SUMMARIES[name]


for _name in SUMMARIES:
    _export_command(_name)
