"""A small index that was crawled and published, and clients of a service over it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import requests

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.service.server import running
from pypi_assets.service.service import Service, open_service
from pypi_assets.settings import Settings, load_settings
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.served_index import ServedIndex, served_index

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)
"""When the first thing happened in the index; each further one happened a day later."""


@dataclass
class Published:
    """An index, and the home of its catalog and storage: `home/catalog.sqlite` and `home/storage`."""

    home: Path
    index: ServedIndex
    catalog: Catalog
    storage: Storage
    _days: int = 0

    def at(self) -> datetime:
        """Return the time of the next event, one day after the previous one."""
        self._days += 1
        return BEGAN + timedelta(days=self._days - 1)

    def add(self, kind: str, name: str, version: str, **options: object) -> str:
        """Upload a `wheel` or an `sdist` as `ServedIndex` does, and return its filename."""
        upload = self.index.wheel if kind == "wheel" else self.index.sdist
        return upload(name, version, at=self.at(), **options)

    def publish(self) -> int:
        """Crawl the index to its last serial, publish a version of each dataset, and return its serial."""
        crawl_incremental(self.index.crawler(self.catalog))
        list(write_missing_ranges(self.catalog, self.storage))
        return self.build()

    def publish_first(self, *, with_history: bool = True) -> int:
        """Crawl the index from scratch and publish the first version of each dataset."""
        crawl_full(self.index.crawler(self.catalog), with_history=with_history)
        full_dump(self.catalog, self.storage, 1)
        return self.build()

    def build(self) -> int:
        """Publish a version of each dataset from the dumps, and return its serial."""
        return [build_version(name, storage=self.storage, catalog=self.catalog) for name in DATASETS][-1].serial

    def settings(self, **overrides: object) -> Settings:
        """Return the settings of the service."""
        named = {"home": self.home, "index_url": self.index.url, "service_refresh_s": 3600}
        return load_settings(**(named | overrides))

    @contextmanager
    def service(self, **overrides: object) -> Iterator[Service]:
        """Yield a service over the index. It checks for new versions only when `follow` is called."""
        service = open_service(self.settings(**overrides))
        try:
            yield service
        finally:
            service.close()

    @contextmanager
    def client(self, **overrides: object) -> Iterator["Client"]:
        """Yield a client of such a service."""
        with self.service(**overrides) as service, client_of(service) as client:
            yield client


@dataclass(frozen=True)
class Client:
    """Sends requests to a running service and follows no redirects."""

    url: str
    session: requests.Session

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, json: object, **options: Any) -> requests.Response:
        return self.request("POST", path, json=json, **options)

    def request(self, method: str, path: str, **options: Any) -> requests.Response:
        settings: dict[str, Any] = {"timeout": 20, "allow_redirects": False}
        return self.session.request(method, self.url + path.removeprefix("/"), **(settings | options))


@contextmanager
def client_of(service: Service) -> Iterator[Client]:
    """Yield a client of a service that is served on loopback."""
    with running(service) as url, requests.Session() as session:
        yield Client(url, session)


@contextmanager
def published_index(folder: Path) -> Iterator[Published]:
    """Yield an empty index with an empty catalog."""
    home = folder / "home"
    with served_index(folder / "served") as index:
        catalog = open_catalog(sqlite_database(home / "catalog.sqlite"))
        try:
            yield Published(home, index, catalog, open_storage((home / "storage").as_uri()))
        finally:
            catalog.close()


def fill(published: Published) -> None:
    """Give the index a history to query: two providers of a module, dependents, a yank and a removal."""
    add, history = published.add, published.index.history
    add("wheel", "PyYAML", "6.0", files={"yaml/__init__.py": "", "yaml/nodes.py": "", "_yaml/__init__.py": ""})
    add("wheel", "yaml-copy", "1.0", files={"yaml/__init__.py": ""})
    add(
        "wheel",
        "demo",
        "1.0",
        files={"demo/__init__.py": ""},
        requires_dist=["PyYAML>=5,<7"],
        entry_points="[console_scripts]\ndemo = demo:main\n",
    )
    add("sdist", "demo", "1.0", files={"demo/__init__.py": ""})
    add("wheel", "Other.App", "0.1", requires_dist=["pyyaml<6; python_version<'3'", "demo[extra]==1.0; extra=='all'"])
    add("wheel", "demo", "2.0", files={"demo/__init__.py": "", "demo/new.py": ""}, requires_dist=["PyYAML>=6.1"])
    history.yank("demo", "2.0", "broken", at=published.at())
    add("wheel", "gone", "1.0")
    history.remove_project("gone", at=published.at())
    add("wheel", "demo", "2.1", files={"demo/__init__.py": "", "demo/new.py": ""}, requires_dist=["PyYAML"])
