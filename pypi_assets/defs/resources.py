"""The resources of assets, checks, jobs and sensors: settings, index, catalog, storage, readers, and a crawler.

Each opens its part on first use and keeps it for the life of the process. A part that is given is used in its place,
and closed by its giver. Settings that could not be loaded raise SettingsError in the run or tick that needs them, never
while the code location loads. What runs do with the parts does not belong here.
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
"""Of the 60 seconds that Dagster gives a tick: where the changelog hangs, the list of projects can hang as well."""

T = TypeVar("T")
Report = Callable[[Progress], None]
Notify = Callable[[str], None]


class Slot(Generic[T]):
    """Holds one part: what was given, or what `get` opens first."""

    def __init__(self, given: T | None = None) -> None:
        self._given = given
        self._opened: T | None = None
        self._lock = threading.RLock()

    def get(self, open_part: Callable[[], T]) -> T:
        """The part, opened by the first caller."""
        if self._given is not None:
            return self._given
        with self._lock:
            if self._opened is None:
                self._opened = open_part()
            return self._opened

    def take_opened(self) -> T | None:
        """The part that was opened here, for the caller to close; the next `get` opens another one."""
        with self._lock:
            opened, self._opened = self._opened, None
            return opened


@dataclass
class LoadedSettings:
    """The settings, or why they could not be loaded, and how the definitions of their index are named."""

    value: Settings | SettingsError
    naming: Naming = BARE


class SettingsResource(dg.ConfigurableResource[Settings]):
    """What is set by variables PYPI_ASSETS_...: which index to follow, where to store, how fast to go."""

    loaded: dg.ResourceDependency[LoadedSettings]

    def get(self) -> Settings:
        """Raises SettingsError where they could not be loaded."""
        if isinstance(self.loaded.value, SettingsError):
            raise self.loaded.value
        return self.loaded.value

    @property
    def naming(self) -> Naming:
        """How the definitions of this code location are named."""
        return self.loaded.naming


class CatalogResource(dg.ConfigurableResource[Catalog]):
    """The database of what is known of the package index: SQLite or PostgreSQL."""

    settings: dg.ResourceDependency[SettingsResource]
    slot: dg.ResourceDependency[Slot[Catalog]]

    def get(self) -> Catalog:
        """Raises SettingsError and CatalogError."""
        return self.slot.get(lambda: catalog_from(self.settings.get()))


class StorageResource(dg.ConfigurableResource[Storage]):
    """Where the files go that are published: a folder, or a bucket of S3, Google or Azure."""

    settings: dg.ResourceDependency[SettingsResource]
    catalog: dg.ResourceDependency[CatalogResource]
    slot: dg.ResourceDependency[Slot[Storage]]

    def get(self) -> Storage:
        """Raises SettingsError, CatalogError and StorageError."""
        return self.slot.get(lambda: storage_from(self.settings.get(), self.catalog.get()))


class IndexResource(dg.ConfigurableResource[PackageIndex]):
    """The package index, as a client whose requests keep to one rate, however many processes there are."""

    settings: dg.ResourceDependency[SettingsResource]
    catalog: dg.ResourceDependency[CatalogResource]
    slot: dg.ResourceDependency[Slot[PackageIndex]]
    slot_of_ticks: dg.ResourceDependency[Slot[PackageIndex]]

    def get(self) -> PackageIndex:
        """Raises SettingsError, CatalogError, and PackageIndexError if the index had to be found out first."""
        return self.slot.get(lambda: index_from(self.settings.get(), self.catalog.get(), detects=True))

    def for_tick(self) -> PackageIndex:
        """A client that sends each request once, and waits only as long as a tick may: the next tick repeats it."""
        return self.slot_of_ticks.get(
            lambda: index_from(self.settings.get(), self.catalog.get(), patience_s=TICK_PATIENCE_S)
        )


class ReadersResource(dg.ConfigurableResource[ReaderPool]):
    """Processes that read wheels, sdists and eggs, apart from the run, and run no code of them."""

    settings: dg.ResourceDependency[SettingsResource]
    slot: dg.ResourceDependency[Slot[ReaderPool]]

    def get(self) -> ReaderPool:
        """Raises SettingsError."""
        return self.slot.get(lambda: readers_from(self.settings.get()))


class CrawlerResource(dg.ConfigurableResource[Crawler]):
    """What a crawl works with: the package index, the database, the storage and the readers together."""

    settings: dg.ResourceDependency[SettingsResource]
    index: dg.ResourceDependency[IndexResource]
    catalog: dg.ResourceDependency[CatalogResource]
    storage: dg.ResourceDependency[StorageResource]
    readers: dg.ResourceDependency[ReadersResource]

    def get(self, report: Report | None = None, notify: Notify | None = None) -> Crawler:
        """A crawler that reports its progress, and what people should know. Raises SettingsError and CatalogError."""
        return self._with(self.index.get(), report, notify)

    def for_tick(self, notify: Notify) -> Crawler:
        """One whose requests of the index end within a tick."""
        return self._with(self.index.for_tick(), None, notify)

    def _with(self, index: PackageIndex, report: Report | None, notify: Notify | None) -> Crawler:
        catalog, storage, readers = self.catalog.get(), self.storage.get(), self.readers.get()
        return crawler_from(self.settings.get(), index, catalog, storage, readers, report, _inertly(notify))


def _inertly(notify: Notify | None) -> Notify | None:
    """What people are to know can name projects and files, and ends in a log."""
    return None if notify is None else lambda text: notify(inert_lines(text))


@dataclass(frozen=True)
class Resources:
    """All resources, under the names by which assets, checks, jobs and sensors request them."""

    settings: SettingsResource
    index: IndexResource
    catalog: CatalogResource
    storage: StorageResource
    readers: ReadersResource
    crawler: CrawlerResource

    def by_name(self) -> dict[str, object]:
        return dict(vars(self))

    def close(self) -> None:
        """Closes what was opened here, and nothing that was given; what is used after that is opened again."""
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
    """The resources for `settings`. Nothing is opened."""
    of_settings = SettingsResource(loaded=LoadedSettings(settings, naming))
    of_catalog = CatalogResource(settings=of_settings, slot=Slot(catalog))
    of_storage = StorageResource(settings=of_settings, catalog=of_catalog, slot=Slot(storage))
    of_readers = ReadersResource(settings=of_settings, slot=Slot(readers))
    of_index = IndexResource(settings=of_settings, catalog=of_catalog, slot=Slot(index), slot_of_ticks=Slot(index))
    crawler = CrawlerResource(
        settings=of_settings, index=of_index, catalog=of_catalog, storage=of_storage, readers=of_readers
    )
    return Resources(of_settings, of_index, of_catalog, of_storage, of_readers, crawler)
