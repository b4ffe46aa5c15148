"""Commands with an example in their help, and the options that several commands share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.terminal import Output

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.reports.moments import Moment

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_CSV = click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
_HEADER = click.option("--header", is_flag=True, help="Print the names of the columns first.")


def row_output(run: Callable[..., None]) -> Callable[..., None]:
    """Add `--json`, `--csv` and `--header` to a command that prints rows; it receives them as `output`."""

    @wraps(run)
    def with_output(*, as_json: bool, as_csv: bool, header: bool, **arguments: object) -> None:
        if as_json and (as_csv or header):
            raise click.UsageError("--json excludes --csv and --header: its objects name their fields")
        run(output=Output(as_json, as_csv, header), **arguments)

    return _HEADER(_CSV(JSON(with_output)))


def command(
    name: str, example: str = "", *, group: click.Group | None = None, within: str = ""
) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator that makes a command whose help ends with `example`. It joins `group` if one is given.

    `within` has the words between `pypi-assets` and the name of the group or command, such as `admin`.
    """
    words = ("pypi-assets", within, group.name if group else "", name, example)
    return (group or click).command(name, epilog=f"Example: {' '.join(filter(None, words))}")


class MomentType(click.ParamType[Any]):
    """A serial, or a time in UTC."""

    name = "moment"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> "Moment":
        from pypi_assets.catalog.reports.moments import MOMENT_ACCEPTS, NoMomentError, parse_moment

        try:
            return parse_moment(str(value))
        except NoMomentError as error:
            self.fail(f"{error}: give {MOMENT_ACCEPTS}", param, ctx)


AT = click.option(
    "--at",
    type=MomentType(),
    metavar="SERIAL|DATE",
    help="As of this serial or UTC time, answered from the catalog; default: the newest published serial.",
)


@contextmanager
def catalog_at(at: "Moment | None") -> "Iterator[tuple[Catalog, int]]":
    """Yield the catalog and the exact serial for `at`; None means the complete serial. Raises InexactSerialError."""
    from pypi_assets.catalog.reports.moments import serial_of
    from pypi_assets.cli.contexts import existing_catalog
    from pypi_assets.settings import load_settings

    with existing_catalog(load_settings()) as catalog:
        yield catalog, serial_of(catalog, at)
