"""The resource that assets, checks and sensors work with: index, catalog, readers and storage, opened on first use."""

import threading
from collections.abc import Callable
from functools import cached_property

from pypi_assets.assembly import catalog_from, crawler_from, index_from, readers_from, storage_from
from pypi_assets.catalog.database import Catalog
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.distributions.reader_pool import ReaderPool
from pypi_assets.index.client import IndexClient
from pypi_assets.progress import Progress
from pypi_assets.settings import Settings, SettingsError
from pypi_assets.storage.store import Storage

_TICK_PATIENCE_S = 20.0
"""Of the 60 seconds that Dagster gives a tick: where the changelog hangs, the list of projects can hang as well."""


class Parts:
    """What the settings name, or what is given in its place. Nothing is opened before it is asked for.

    Settings that could not be loaded are raised, as SettingsError, by whatever needs them. What is opened is kept for
    the life of the process.
    """

    def __init__(
        self,
        settings: Settings | SettingsError,
        *,
        index: IndexClient | None = None,
        catalog: Catalog | None = None,
        storage: Storage | None = None,
        readers: ReaderPool | None = None,
    ) -> None:
        self._settings = settings
        self._given = (index, catalog, readers)
        self._given_storage = storage
        self._opening = threading.RLock()

    @property
    def settings(self) -> Settings:
        if isinstance(self._settings, SettingsError):
            raise self._settings
        return self._settings

    @property
    def index(self) -> IndexClient:
        with self._opening:
            return self._index

    @property
    def catalog(self) -> Catalog:
        with self._opening:
            return self._catalog

    @property
    def storage(self) -> Storage:
        with self._opening:
            return self._storage

    @property
    def readers(self) -> ReaderPool:
        with self._opening:
            return self._readers

    def crawler(
        self, report: Callable[[Progress], None] | None = None, notify: Callable[[str], None] | None = None
    ) -> Crawler:
        return crawler_from(self.settings, self.index, self.catalog, self.storage, self.readers, report, notify)

    def crawler_of_tick(self, notify: Callable[[str], None]) -> Crawler:
        """One that asks the index once, and not for long: the next tick asks again."""
        with self._opening:
            index = self._index_of_ticks
        return crawler_from(self.settings, index, self.catalog, self.storage, self.readers, notify=notify)

    def close(self) -> None:
        """Closes what was opened, and not what was given."""
        index, catalog, readers = self._given
        parts = {"_index": index, "_index_of_ticks": index, "_catalog": catalog, "_readers": readers}
        for part, given in parts.items():
            opened = self.__dict__.pop(part, None)
            if opened is not None and given is None:
                opened.close()

    @cached_property
    def _index(self) -> IndexClient:
        return self._given[0] or index_from(self.settings, self._catalog)

    @cached_property
    def _index_of_ticks(self) -> IndexClient:
        return self._given[0] or index_from(self.settings, self._catalog, patience_s=_TICK_PATIENCE_S)

    @cached_property
    def _catalog(self) -> Catalog:
        return self._given[1] or catalog_from(self.settings)

    @cached_property
    def _storage(self) -> Storage:
        return self._given_storage or storage_from(self.settings)

    @cached_property
    def _readers(self) -> ReaderPool:
        return self._given[2] or readers_from(self.settings)
