"""Makes a first crawl, dump and LevelDB versions, unless they are there: `python -m pypi_assets.cli.first_answer`.

It runs the commands that `pypi-assets init` prints, for the follower of `pypi-assets up`. Killed at any moment, it
continues when it is started again. With `--follow`, this process becomes `pypi-assets follow` at the end.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pypi_assets.catalog.database import Catalog
from pypi_assets.cli import OwnProcess, cli
from pypi_assets.cli.opening import opened_catalog
from pypi_assets.errors import ExpectedError
from pypi_assets.inert_logs import make_logs_inert
from pypi_assets.settings import Settings, load_settings
from pypi_assets.terminal import print_message
from pypi_assets.upkeep.due import due_crawl, due_full_dump
from pypi_assets.upkeep.live_totals import live_totals

SHARDS_BY_FILES = ((50_000, 1), (2_000_000, 16))
"""How many files a first dump has, for fewer distributions than this."""
MOST_SHARDS = 256


def main(arguments: Sequence[str]) -> None:
    """Runs the missing steps, then the follower. Exits with 1, or 2 for wrong settings, if that fails."""
    make_logs_inert()
    try:
        settings = load_settings()
        if _needs_crawl(settings):
            _run("crawl", "full")
        with opened_catalog(settings) as catalog:
            commands = dump_commands(catalog)
        for command in commands:
            _run(*command)
    except ExpectedError as error:
        print_message(f"Error: {error}")
        raise SystemExit(1) from error
    if "--follow" in arguments:
        program = str(Path(sys.executable).with_name("pypi-assets"))
        os.execv(program, [program, "follow"])  # noqa: S606 - of this installation


def _needs_crawl(settings: Settings) -> bool:
    """Returns whether to crawl the index first. Declared scopes are crawled by the follower."""
    from pypi_assets.declared_scopes import declared_scopes

    with opened_catalog(settings) as catalog:
        crawl = due_crawl(catalog)
        return crawl.is_due and not crawl.is_followable and not declared_scopes(settings)


def dump_commands(catalog: Catalog) -> list[tuple[str, ...]]:
    """Returns the commands of a first dump and the versions after it; none if there is a dump, or no crawl."""
    from pypi_assets.dumps.cover import cover

    if cover(catalog).dumps or not due_crawl(catalog).is_followable:
        return []
    commands: list[tuple[str, ...]] = []
    if not due_full_dump(catalog).is_due:  # pages were newer than the crawl's serial
        commands.append(("crawl", "incremental"))
    files = live_totals(catalog).live
    shards = next((count for most, count in SHARDS_BY_FILES if files < most), MOST_SHARDS)
    return [*commands, ("dump", "full", "--shards", str(shards)), ("leveldb", "update")]


def _run(*arguments: str) -> None:
    print_message(f"pypi-assets {' '.join(arguments)}")
    try:
        cli.main(arguments, prog_name="pypi-assets", obj=OwnProcess())
    except SystemExit as exit_:
        if exit_.code:
            raise


if __name__ == "__main__":
    main(sys.argv[1:])
