"""The options of commands about a lock, and the answer to them."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.moments import AT
from pypi_assets.terminal import counted, print_message

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.moments import Moment
    from pypi_assets.locks.pins import Remark
    from pypi_assets.questions.locks import LockedAnswer

LOCK_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_PYTHON = click.option("--python", help="For this version of CPython, 3.12 for example; default: for any.")
_PLATFORM = click.option(
    "--platform",
    help="For linux, macos, windows, or a platform as wheels name it, win_arm64 for example; default: for any.",
)


def environment_options(run: Callable[..., None]) -> Callable[..., Any]:
    """A decorator for a command about a lock: `--python`, `--platform` and `--at`."""
    return _PYTHON(_PLATFORM(AT(run)))


def locked_answer(lock: Path, python: str | None, platform: str | None, at: "Moment | None") -> "LockedAnswer":
    """Return what is known of the pins of a lock. Raises LockError before anything is opened, and BadParameter."""
    from functools import partial

    from pypi_assets.cli.questions import opened  # which imports what questions are declared with
    from pypi_assets.locks.environments import EnvironmentNameError, named_environment
    from pypi_assets.locks.reading import read_lock
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
    """Prints what people should know, to standard error."""
    for remark in remarks:
        print_message(remark.text)


def print_serial(answer: "LockedAnswer") -> None:
    """Prints what was answered, and as of when, to standard error."""
    source = "" if answer.epoch is None else ", from the catalog"
    pins = counted(len(answer.pins), "pinned distribution")
    print_message(f"{pins}, {len(answer.releases)} of them known, as of serial {answer.serial}{source}")
