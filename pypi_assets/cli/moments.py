"""The option `--at`, which takes a serial or a time, and the exact serial that it means."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.reports.moments import Moment


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
    help="As of this serial, or of this time in UTC, from the catalog; default: the newest that is published.",
)


@contextmanager
def catalog_at(at: "Moment | None") -> "Iterator[tuple[Catalog, int]]":
    """The catalog, and the exact serial that `at` means there; None: the complete serial. Raises NotExactError."""
    from pypi_assets.catalog.reports.moments import serial_of
    from pypi_assets.cli.opening import existing_catalog
    from pypi_assets.settings import load_settings

    with existing_catalog(load_settings()) as catalog:
        yield catalog, serial_of(catalog, at)
