"""The `pypi-assets` command: everything from the index to the lookups, without a UI.

`pypi-assets NAME ...` is in the module of this package that is called NAME; `devindex` is in `pypi_assets/devindex/`.
A command assembles the parts according to the settings, calls them and prints the result. It decides nothing itself.
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
from pypi_assets.cli.audit import audit_command
from pypi_assets.cli.crawl import crawl_group
from pypi_assets.cli.dump import dump_group
from pypi_assets.cli.extracts import extracts_group
from pypi_assets.cli.failures import failures_group
from pypi_assets.cli.files import files_command
from pypi_assets.cli.history import history_command
from pypi_assets.cli.inspect import inspect_command
from pypi_assets.cli.leveldb import leveldb_group
from pypi_assets.cli.lookup import lookup_group
from pypi_assets.cli.metrics import metrics_command
from pypi_assets.cli.migrate import migrate_command
from pypi_assets.cli.ranges import ranges_command
from pypi_assets.cli.reprocess import reprocess_command
from pypi_assets.cli.status import status_command
from pypi_assets.cli.visits import visits_command
from pypi_assets.devindex.commands import devindex
from pypi_assets.distributions.extract import ExtractError
from pypi_assets.distributions.reader_pool import ReaderStartError
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.extracts.packs import PackError
from pypi_assets.index.errors import PackageIndexError
from pypi_assets.leveldbs.format.errors import LeveldbError
from pypi_assets.parquet.export_manifest import ParquetError
from pypi_assets.settings import SettingsError
from pypi_assets.storage.store import StorageError
from pypi_assets.terminal import plain, print_message

INTERRUPTED = 130
_STOPPED = "Stopped. What was done is kept; run the same command again to continue."
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
_BUGS_HERE = (DataError, IntegrityError, ProgrammingError)


class _Commands(click.Group):
    """Turns expected errors into one clear message and an exit code: 1, or 2 for wrong settings."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print_message(_STOPPED)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # the reader of the output has closed it; click exits quietly
            raise
        except SettingsError as error:
            raise _SettingsFailure(_plain_lines(error)) from error
        except DBAPIError as error:
            if isinstance(error, _BUGS_HERE):
                raise
            raise click.ClickException(f"the database failed: {plain(error.orig)}") from error
        except _FAILURES as error:
            raise click.ClickException(_plain_lines(error)) from error


class _SettingsFailure(click.ClickException):
    exit_code = 2


def _plain_lines(error: Exception) -> str:
    return "\n".join(plain(line) for line in str(error).splitlines())


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pypi-assets")
def cli() -> None:
    """Keep an exact, queryable picture of a Python package index.

    Settings are read from the environment (PYPI_ASSETS_...). Exit codes: 0 success, 1 failure, 2 wrong usage
    or settings. If nothing is found, the answer is empty; that is not a failure.
    """


_COMMANDS = (
    audit_command,
    crawl_group,
    devindex,
    dump_group,
    extracts_group,
    failures_group,
    files_command,
    history_command,
    inspect_command,
    leveldb_group,
    lookup_group,
    metrics_command,
    migrate_command,
    ranges_command,
    reprocess_command,
    status_command,
    visits_command,
)
for _command in _COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """The entry point. The first Ctrl-C waits for open requests, the second exits at once."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, stop_at_once)
        raise KeyboardInterrupt

    def stop_at_once(_number: int, _frame: FrameType | None) -> None:
        terminal.show_cursor()
        print_message(_STOPPED)
        os._exit(INTERRUPTED)  # safe at any moment; an ordinary exit would wait for the threads

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)
    cli()
