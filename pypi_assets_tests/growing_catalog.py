"""A catalog that ages by identical ranges, from the index to their dumps.

Every range has the same events: a project that is released in every range, and one of several projects that are
released now and then. The number of live files stays constant, because each release removes an older one. Cleanup keeps
the number of dumps small.
"""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from pypi_assets.catalog.coordination.leases import deletion_deadlines
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.dumps.unused_dumps import clean_dumps
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.crawl.followers import Follower, SilentIndex, add, wheel
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.scoped_index import ScopedFollower, ScopedIndex

DAILY = "daily"
SELDOM = 16
"""The number of projects that are released in turn."""
HOUR_S = 3_600.0
LIBRARIES = tuple(f"library{number}" for number in range(20))
TURNS = 8


@dataclass
class GrowingCatalog:
    """A catalog that is `age` ranges old, counted from the full crawl. Ranges are one hour apart.

    Without a catalog to fill (`into`), it creates one in SQLite.
    """

    folder: Path
    into: Catalog | None = None
    files: int = 10
    age: int = 0
    follower: Follower = field(init=False)
    storage: Storage = field(init=False)

    def __post_init__(self) -> None:
        catalog = self.into or open_catalog(sqlite_database(self.folder / "catalog.sqlite"))
        self.follower = self.make_follower(catalog, time.time() + 10 * 24 * HOUR_S)
        self.storage = open_storage((self.folder / "storage").as_uri())
        for number in range(SELDOM):
            for version in ("0.1", "1.0"):
                add(self.follower.index, f"seldom{number}", version)
        for version in ("0.0", "1.0", *(f"0.{number}" for number in range(1, self.files))):
            add(self.follower.index, DAILY, version)
        self.begin()
        full_dump(self.catalog, self.storage, 1)

    def make_follower(self, catalog: Catalog, now: float) -> Follower:
        return Follower(SilentIndex(), catalog, now=now)

    def begin(self) -> None:
        """Crawl the index up to the serial before the first range."""
        crawl_full(self.follower.crawler)

    @property
    def catalog(self) -> Catalog:
        return self.follower.crawler.catalog

    def happen(self) -> None:
        """Apply to the index the events of one range."""
        index, version, seldom = self.follower.index, self.age + 2, f"seldom{self.age % SELDOM}"
        for project in (DAILY, seldom):
            add(index, project, f"{version}.0")
        index.do("yank", DAILY, f"{version - 1}.0")
        index.do("remove-release", DAILY, f"{version - 2}.0")
        index.do("remove-release", seldom, f"{max(version - SELDOM, 1)}.0")
        self.age += 1
        self.follower.now += HOUR_S

    def crawl(self, *, revisit_share: float = 0.0) -> None:
        """Follow the index, and dump the range."""
        crawl_incremental(replace(self.follower.crawler, revisit_share=revisit_share))
        assert list(write_missing_ranges(self.catalog, self.storage))

    def grow(self, age: int) -> None:
        """Bring the catalog to `age`, and publish a full dump, after which the range dumps are deleted."""
        while self.age < age:
            self.happen()
            self.crawl(revisit_share=100.0 if self.age == age else 0.0)
        full_dump(self.catalog, self.storage, 1)
        self.follower.now += 24 * HOUR_S
        list(clean_dumps(self.catalog, self.storage, deletion_deadlines(self.catalog), []))
        assert len(cover(self.catalog).dumps) == 1


class GrowingScope(GrowingCatalog):
    """A growing catalog that follows a scope.

    All releases require the same libraries. Each release of the daily project also requires one of `TURNS` other
    projects, in turn.
    """

    def make_follower(self, catalog: Catalog, now: float) -> ScopedFollower:
        return ScopedFollower(ScopedIndex(), catalog, now=now)

    def begin(self) -> None:
        index, roots = self.follower.index, [DAILY, *(f"seldom{number}" for number in range(SELDOM))]
        assert isinstance(self.follower, ScopedFollower)
        assert isinstance(index, ScopedIndex)
        for library in (*LIBRARIES, *(f"turn{number}" for number in range(TURNS))):
            index.upload(library, "1.0")
        for root in roots:
            index.requirements[wheel(root, "1.0")] = LIBRARIES
        self.follower.start(*roots)

    def happen(self) -> None:
        index, version, seldom = self.follower.index, self.age + 2, f"seldom{self.age % SELDOM}"
        assert isinstance(index, ScopedIndex)
        index.requirements[wheel(DAILY, f"{version}.0")] = (*LIBRARIES, f"turn{version % TURNS}")
        index.requirements[wheel(seldom, f"{version}.0")] = LIBRARIES
        super().happen()
