"""Context managers for the commands: the catalog, and a crawler with everything that it needs."""

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
    """Return the catalog for a command that may make it: its folder and tables are created if there are none."""
    from pypi_assets.components import catalog_from

    return closing(catalog_from(settings))


def existing_catalog(settings: "Settings") -> "closing[Catalog]":
    """Return the catalog for any other command, so that a wrong home stays as it is. Raises NoCatalogError."""
    from pypi_assets.components import existing_catalog_from

    return closing(existing_catalog_from(settings))


@contextmanager
def opened_readers(settings: "Settings") -> "Iterator[ReaderPool]":
    """The processes that read distributions.

    Where this one is a command, and no program that calls commands, it becomes undumpable, for its environment may hold
    the database's password: then only root reads its environment or its memory, or traces it.
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
    """A crawler over a catalog that is there, or with `creates` over one that is made where there is none.

    `observed` receives what each round of looking at an index without serials came to.
    """
    from pypi_assets.components import crawler_from, index_from, storage_from
    from pypi_assets.settings import load_settings

    settings = load_settings()
    settings.require_contact()
    with (opened_catalog if creates else existing_catalog)(settings) as catalog:
        storage = storage_from(settings, catalog)  # before the index is asked: what is wrong here costs no request
        with (
            index_from(settings, catalog, detects=creates) as index,
            opened_readers(settings) as readers,
            terminal.progress_shown() as report,
        ):
            crawler = crawler_from(settings, index, catalog, storage, readers, report, terminal.print_message)
            yield crawler if observed is None else replace(crawler, observed=observed)
