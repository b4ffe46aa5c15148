"""The `pypi-assets` command: the whole way from the index to the lookups without a UI.

A thin skin: it puts the parts together as the settings say, and prints. What is done is decided elsewhere.
"""

import os
import signal
from types import FrameType
from typing import Any

import click
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError

from pypi_assets import terminal
from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.ledger.serial_range import RangeError
from pypi_assets.cli import ask, crawl, lookup, publish, repair
from pypi_assets.devindex.commands import devindex
from pypi_assets.distributions.extract import ExtractError
from pypi_assets.distributions.reader_pool import ReaderStartError
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.extracts.packs import PackError
from pypi_assets.index.errors import PackageIndexError
from pypi_assets.leveldbs.format.records import LeveldbError
from pypi_assets.parquet.export_manifest import ParquetError
from pypi_assets.settings import SettingsError
from pypi_assets.storage.store import StorageError
from pypi_assets.terminal import plain, say

INTERRUPTED = 130
_STOPPED = "Stopped. What was done is kept; run the same command again and it goes on from there."
_FAILURES = (
    CatalogError,
    RangeError,
    PackageIndexError,
    StorageError,
    DumpDamagedError,
    LeveldbError,
    ParquetError,
    PackError,
    ExtractError,
    ReaderStartError,
    OSError,
)
_OUR_FAULTS = (DataError, IntegrityError, ProgrammingError)


class _Commands(click.Group):
    """Turns what can be expected to go wrong into one clear message and an exit code: 1, or 2 for wrong settings."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say(_STOPPED)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # whoever read the output has had enough; click ends quietly
            raise
        except SettingsError as error:
            raise _SettingsFailure(_lines(error)) from error
        except DBAPIError as error:
            if isinstance(error, _OUR_FAULTS):
                raise
            raise click.ClickException(f"the database failed: {plain(error.orig)}") from error
        except _FAILURES as error:
            raise click.ClickException(_lines(error)) from error


class _SettingsFailure(click.ClickException):
    exit_code = 2


def _lines(error: Exception) -> str:
    return "\n".join(plain(line) for line in str(error).splitlines())


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pypi-assets")
def cli() -> None:
    """Keeps an exact, queryable picture of a Python package index.

    Settings are read from the environment (PYPI_ASSETS_...). Exit codes: 0 done, 1 it could not be done, 2 wrong usage
    or settings. What is asked for and not found is an empty answer, not a failure.
    """


for _command in (*ask.COMMANDS, *lookup.COMMANDS, *crawl.COMMANDS, *publish.COMMANDS, *repair.COMMANDS, devindex):
    cli.add_command(_command)


def main() -> None:
    """The entry point. A first Ctrl-C waits for the requests that are under way, a second one does not."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, stop_at_once)
        raise KeyboardInterrupt

    def stop_at_once(_number: int, _frame: FrameType | None) -> None:
        terminal.show_cursor()
        say(_STOPPED)
        os._exit(INTERRUPTED)  # safe at any moment; an ordinary exit would wait for the threads

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)
    cli()
