"""The resources of assets, checks, jobs and sensors: settings, index, catalog, storage, readers, and a crawler.

Each resource opens its component on first use, and keeps it open until the process ends. A component that is passed in
is used instead, and its owner closes it. If the settings could not be loaded, SettingsError is raised in the run or
tick that needs them, and not while the code location loads.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import dagster as dg

from pypi_assets.catalog.database import Catalog
from pypi_assets.components import catalog_from, crawler_from, index_from, readers_from, storage_from
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.defs.naming import BARE, Naming
from pypi_assets.distributions.reader_pool import ReaderPool
from pypi_assets.index.protocol import PackageIndex
from pypi_assets.progress import Progress
from pypi_assets.sanitize import inert_lines
from pypi_assets.settings import Settings, SettingsError
from pypi_assets.storage.store import Storage

TICK_PATIENCE_S = 20.0
"""Limit for requests in a tick. Dagster allows 60 s; after the changelog, the list of projects may hang as well."""

T = TypeVar("T")
Report = Callable[[Progress], None]
Notify = Callable[[str], None]


class Slot(Generic[T]):
    """Holds one component, which was passed in or is opened by `get`."""

    def __init__(self, given: T | None = None) -> None:
        self._given = given
        self._opened: T | None = None
        self._lock = threading.RLock()

    def get(self, open_part: Callable[[], T]) -> T:
        """Return the component. The first call opens it."""
        if self._given is not None:
            return self._given
        with self._lock:
            if self._opened is None:
                self._opened = open_part()
            return self._opened

    def take_opened(self) -> T | None:
        """Return the component that was opened here, for the caller to close. The next `get` opens a new one."""
        with self._lock:
            opened, self._opened = self._opened, None
            return opened


@dataclass
class LoadedSettings:
    """The settings or the error of loading them, and the names of their index's definitions."""

    value: Settings | SettingsError
    naming: Naming = BARE


class SettingsResource(dg.ConfigurableResource[Settings]):
    """The settings of variables PYPI_ASSETS_...: which index to follow, where to store, how fast to go."""

    loaded: dg.ResourceDependency[LoadedSettings]

    def get(self) -> Settings:
        """Return the settings. Raises SettingsError if they could not be loaded."""
        if isinstance(self.loaded.value, SettingsError):
            raise self.loaded.value
        return self.loaded.value

    @property
    def naming(self) -> Naming:
        """Return the names of this code location's definitions."""
        return self.loaded.naming


class CatalogResource(dg.ConfigurableResource[Catalog]):
    """The database of all observations of the package index: SQLite or PostgreSQL."""

    settings: dg.ResourceDependency[SettingsResource]
    slot: dg.ResourceDependency[Slot[Catalog]]

    def get(self) -> Catalog:
        """Return the catalog. Raises SettingsError and CatalogError."""
        return self.slot.get(lambda: catalog_from(self.settings.get()))


class StorageResource(dg.ConfigurableResource[Storage]):
    """The place of published files: a folder, or a bucket of S3, Google or Azure."""

    settings: dg.ResourceDependency[SettingsResource]
    catalog: dg.ResourceDependency[CatalogResource]
    slot: dg.ResourceDependency[Slot[Storage]]

    def get(self) -> Storage:
        """Return the storage. Raises SettingsError, CatalogError and StorageError."""
        return self.slot.get(lambda: storage_from(self.settings.get(), self.catalog.get()))


class IndexResource(dg.ConfigurableResource[PackageIndex]):
    """A client of the package index, whose requests keep to one rate for all processes together."""

    settings: dg.ResourceDependency[SettingsResource]
    catalog: dg.ResourceDependency[CatalogResource]
    slot: dg.ResourceDependency[Slot[PackageIndex]]
    slot_of_ticks: dg.ResourceDependency[Slot[PackageIndex]]

    def get(self) -> PackageIndex:
        """Return the client.

        Raises SettingsError and CatalogError, and PackageIndexError if detecting the index fails.
        """
        return self.slot.get(lambda: index_from(self.settings.get(), self.catalog.get(), detects=True))

    def for_tick(self) -> PackageIndex:
        """Return a client that sends each request once and ends in time for a tick.

        The next tick repeats failed work.
        """
        return self.slot_of_ticks.get(
            lambda: index_from(self.settings.get(), self.catalog.get(), patience_s=TICK_PATIENCE_S)
        )


class ReadersResource(dg.ConfigurableResource[ReaderPool]):
    """Processes that read wheels, sdists and eggs, separate from the run. They run no code of these files."""

    settings: dg.ResourceDependency[SettingsResource]
    slot: dg.ResourceDependency[Slot[ReaderPool]]

    def get(self) -> ReaderPool:
        """Return the pool of readers. Raises SettingsError."""
        return self.slot.get(lambda: readers_from(self.settings.get()))


class CrawlerResource(dg.ConfigurableResource[Crawler]):
    """The components of a crawl: the package index, the catalog, the storage and the readers."""

    settings: dg.ResourceDependency[SettingsResource]
    index: dg.ResourceDependency[IndexResource]
    catalog: dg.ResourceDependency[CatalogResource]
    storage: dg.ResourceDependency[StorageResource]
    readers: dg.ResourceDependency[ReadersResource]

    def get(self, report: Report | None = None, notify: Notify | None = None) -> Crawler:
        """Return a crawler that reports its progress, and notifies people. Raises SettingsError and CatalogError."""
        return self._with(self.index.get(), report, notify)

    def for_tick(self, notify: Notify) -> Crawler:
        """Return a crawler whose requests to the index end within a tick."""
        return self._with(self.index.for_tick(), None, notify)

    def _with(self, index: PackageIndex, report: Report | None, notify: Notify | None) -> Crawler:
        catalog, storage, readers = self.catalog.get(), self.storage.get(), self.readers.get()
        return crawler_from(self.settings.get(), index, catalog, storage, readers, report, _inertly(notify))


def _inertly(notify: Notify | None) -> Notify | None:
    """Escape control characters in notifications, since they may contain names of projects and files and end in a
    log."""
    return None if notify is None else lambda text: notify(inert_lines(text))


@dataclass(frozen=True)
class Resources:
    """All resources, under the names that assets, checks, jobs and sensors use."""

    settings: SettingsResource
    index: IndexResource
    catalog: CatalogResource
    storage: StorageResource
    readers: ReadersResource
    crawler: CrawlerResource

    def by_name(self) -> dict[str, object]:
        return dict(vars(self))

    def close(self) -> None:
        """Close components that were opened here, but none that was passed in. A later use opens them again."""
        for slot in (self.index.slot, self.index.slot_of_ticks, self.catalog.slot, self.readers.slot):
            if opened := slot.take_opened():
                opened.close()


def build_resources(
    settings: Settings | SettingsError,
    *,
    naming: Naming = BARE,
    index: PackageIndex | None = None,
    catalog: Catalog | None = None,
    storage: Storage | None = None,
    readers: ReaderPool | None = None,
) -> Resources:
    """Return the resources for these settings, without opening anything."""
    settings_resource = SettingsResource(loaded=LoadedSettings(settings, naming))
    catalog_resource = CatalogResource(settings=settings_resource, slot=Slot(catalog))
    storage_resource = StorageResource(settings=settings_resource, catalog=catalog_resource, slot=Slot(storage))
    readers_resource = ReadersResource(settings=settings_resource, slot=Slot(readers))
    index_resource = IndexResource(
        settings=settings_resource, catalog=catalog_resource, slot=Slot(index), slot_of_ticks=Slot(index)
    )
    crawler = CrawlerResource(
        settings=settings_resource,
        index=index_resource,
        catalog=catalog_resource,
        storage=storage_resource,
        readers=readers_resource,
    )
    return Resources(settings_resource, index_resource, catalog_resource, storage_resource, readers_resource, crawler)
