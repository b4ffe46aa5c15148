"""Defines commands with an example in their help, and the options that most commands have."""

from collections.abc import Callable
from functools import wraps

import click

from pypi_assets.terminal import Output

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_CSV = click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
_HEADER = click.option("--header", is_flag=True, help="Begin with the names of the columns.")


def row_output(run: Callable[..., None]) -> Callable[..., None]:
    """A decorator for a command that prints rows: `--json`, `--csv` and `--header`, which it takes as `output`."""

    @wraps(run)
    def with_output(*, as_json: bool, as_csv: bool, header: bool, **arguments: object) -> None:
        if as_json and (as_csv or header):
            raise click.UsageError("--json goes neither with --csv nor with --header: its fields have their names")
        run(output=Output(as_json, as_csv, header), **arguments)

    return _HEADER(_CSV(JSON(with_output)))


def command(
    name: str, example: str = "", *, group: click.Group | None = None, within: str = ""
) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator that makes a command, of `group` if that is given, with `example` at the end of its help.

    `within` are the words between `pypi-assets` and the name of the group or the command.
    """
    words = ("pypi-assets", within, group.name if group else "", name, example)
    return (group or click).command(name, epilog=f"Example: {' '.join(filter(None, words))}")
