"""Context managers for commands: the catalog, the processes that read distributions, and a crawler."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from pypi_assets import terminal
from pypi_assets.cli import OwnProcess

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.crawl.crawler import Crawler
    from pypi_assets.distributions.reader_pool import ReaderPool
    from pypi_assets.index.protocol import Observation
    from pypi_assets.settings import Settings


def opened_catalog(settings: "Settings") -> "closing[Catalog]":
    """Return the catalog for a command that may create it: missing folders and tables are created."""
    from pypi_assets.components import catalog_from

    return closing(catalog_from(settings))


def existing_catalog(settings: "Settings") -> "closing[Catalog]":
    """Return the catalog for a command that must not create it, so that a wrong home stays unchanged.

    Raises NoCatalogError if the catalog is missing.
    """
    from pypi_assets.components import existing_catalog_from

    return closing(existing_catalog_from(settings))


@contextmanager
def opened_readers(settings: "Settings") -> "Iterator[ReaderPool]":
    """Yield the pool of processes that read distributions.

    If this process is the command line, and not a program that calls commands, it becomes undumpable on Linux: only
    root can read its memory or environment, or trace it. The environment may contain the database's password.
    """
    from pypi_assets.components import readers_from
    from pypi_assets.distributions.containment import kernel

    context = click.get_current_context(silent=True)
    if kernel.IS_LINUX and context is not None and context.find_object(OwnProcess) is not None:
        kernel.set_undumpable()
    with readers_from(settings) as readers:
        yield readers


@contextmanager
def opened_crawler(
    *, creates: bool = False, observed: "Callable[[Observation], None] | None" = None
) -> "Iterator[Crawler]":
    """Yield a crawler over the existing catalog. With `creates`, a missing catalog is created.

    `observed` receives the result of each polling round of an index without serials.
    """
    from pypi_assets.components import crawler_from, index_from, storage_from
    from pypi_assets.settings import load_settings

    settings = load_settings()
    settings.require_contact()
    with (opened_catalog if creates else existing_catalog)(settings) as catalog:
        storage = storage_from(settings, catalog)  # before the index: a wrong storage setting then costs no request
        with (
            index_from(settings, catalog, detects=creates) as index,
            opened_readers(settings) as readers,
            terminal.progress_shown() as report,
        ):
            crawler = crawler_from(settings, index, catalog, storage, readers, report, terminal.print_message)
            yield crawler if observed is None else replace(crawler, observed=observed)
