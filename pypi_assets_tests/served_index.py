"""Serve a package index of small real files on loopback, with a crawler that follows it into a catalog."""

import atexit
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import count
from pathlib import Path
from threading import Event

import pytest
import requests
from packaging.utils import canonicalize_name
from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import Response

from pypi_assets import components
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.catalog.tables import changes, distributions, projects
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import running
from pypi_assets.distributions import reader_pool
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.reader_pool import READER_PROGRAM, ReaderPool
from pypi_assets.index.client import IndexClient
from pypi_assets.index.rate import RateLimit, Rates
from pypi_assets.index.transport import Retries
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.builders import make_sdist, make_wheel
from pypi_assets_tests.environment import clear_settings

JSON = "application/vnd.pypi.simple.v1+json"
_USUAL_LIMITS = ReadLimits()


@dataclass(frozen=True)
class Held:
    """Requests that an index has not answered yet."""

    reached: Event = field(default_factory=Event)
    released: Event = field(default_factory=Event)

    def wait(self) -> None:
        """Wait until a request is held."""
        assert self.reached.wait(300)

    def release(self) -> None:
        self.released.set()


@dataclass
class ServedIndex:
    """A served devindex. `faults` can answer a request instead of the index."""

    folder: Path
    url: str = ""
    faults: Callable[[Request], Response | None] | None = None
    history: History = field(init=False)
    storage: Storage = field(init=False)

    def __post_init__(self) -> None:
        self.storage = open_storage((self.folder / "storage").as_uri())
        self.history = History(self.folder / "index")
        (self.folder / "built").mkdir(parents=True)

    def wheel(self, name: str, version: str, *, at: datetime | None = None, **options: object) -> str:
        """Upload a wheel with one package, by default `{name}_module`, and return its filename.

        `at` is the upload time, by default the current time.
        """
        options.setdefault("files", {f"{name.replace('-', '_').replace('.', '_').lower()}_module/__init__.py": ""})
        path = make_wheel(self.folder / "built", name, version, **options)  # type: ignore[arg-type]
        self.history.add(path, at=at)
        return path.name

    def sdist(self, name: str, version: str, *, at: datetime | None = None, **options: object) -> str:
        options.setdefault("files", {f"{name.replace('-', '_').replace('.', '_').lower()}_module/__init__.py": ""})
        path = make_sdist(self.folder / "built", name, version, **options)  # type: ignore[arg-type]
        self.history.add(path, at=at)
        return path.name

    def raw(self, filename: str, content: bytes) -> str:
        """Upload a file with this content."""
        path = self.folder / "built" / filename
        path.write_bytes(content)
        self.history.add(path)
        return filename

    @property
    def serial(self) -> int:
        return self.history.state().last_serial or 0

    def shown(self) -> set[tuple[str, bool]]:
        """Return the files on all current pages: (filename, is yanked)."""
        return {
            (filename, release.yanked)
            for project in self.history.state().projects.values()
            for release in project.visible_releases()
            for filename in release.files
        }

    def page(self, project: str) -> bytes:
        """Return the project's current page in JSON."""
        with requests.get(f"{self.url}{project}/", headers={"Accept": JSON}, timeout=60) as response:
            assert response.json()["name"] == project
            return response.content

    def serve_page(self, project: str, page: bytes) -> None:
        """Serve `page` as the project's page from now on, instead of any other fault."""
        self.faults = lambda request: (
            Response(page, media_type=JSON) if request.url.path == f"/simple/{project}/" else None
        )

    @contextmanager
    def holding(self, path: str, number: int = 1, user_agent: str = "") -> Iterator["Held"]:
        """Hold requests whose path contains `path`, from request `number` on, until the block ends or `release`."""
        held, numbers = Held(), count(1)

        def hold(request: Request) -> None:
            if path in request.url.path and user_agent in request.headers["user-agent"] and next(numbers) >= number:
                held.reached.set()
                held.released.wait(300)

        self.faults = hold  # type: ignore[assignment]
        try:
            yield held
        finally:
            held.release()
            self.faults = None

    def client(self, **options: object) -> IndexClient:
        """Return a client without pauses, so that tests need not wait."""
        settings: dict[str, object] = {
            "changelog_url": self.url.replace("/simple/", "/pypi"),
            "rates": Rates(RateLimit(math.inf), RateLimit(math.inf)),
            "retries": Retries(1),
        }
        return IndexClient(self.url, **(settings | options))  # type: ignore[arg-type]

    def crawler(self, catalog: Catalog, **options: object) -> Crawler:
        settings: dict[str, object] = {
            "index": self.client(),
            "catalog": catalog,
            "storage": self.storage,
            "readers": shared_readers(),
            "selection": Selection(),
            "connections": 4,
            "retry_pause_s": 0.01,
            "retry_deadline_s": 0.05,
        }
        return Crawler(**(settings | options))  # type: ignore[arg-type]

    def sleeping_crawler(self, catalog: Catalog, **options: object) -> Crawler:
        """Return a crawler whose time passes only while it sleeps."""
        now = [time.time()]

        def sleep(seconds: float) -> None:
            now[0] += seconds

        return self.crawler(replace(catalog, clock=lambda: now[0]), sleep=sleep, **options)


class _KeptReaders(ReaderPool):
    def close(self) -> None:
        """Keep the processes for the next test. `atexit` closes them."""


@cache
def shared_readers(limits: ReadLimits = _USUAL_LIMITS, *, must_contain: bool = False) -> ReaderPool:
    """Return reader processes shared by all tests of this process, since each takes some tenths of a second to
    start.
    """
    pool = _KeptReaders(limits, size=4, must_contain=must_contain)
    atexit.register(ReaderPool.close, pool)
    return pool


def keep_readers(patch: pytest.MonkeyPatch) -> None:
    """Make commands in this process share reader processes, unless the test has replaced the reader program."""

    def kept(limits: ReadLimits, *, size: int, must_contain: bool = False) -> ReaderPool:
        if reader_pool.READER_PROGRAM != READER_PROGRAM:
            return ReaderPool(limits, size=size, must_contain=must_contain)
        return shared_readers(limits, must_contain=must_contain)

    patch.setattr(components, "ReaderPool", kept)


@contextmanager
def served_index(folder: Path) -> Iterator[ServedIndex]:
    index = ServedIndex(folder)
    with running(folder / "index", faults=lambda request: index.faults(request) if index.faults else None) as url:
        index.url = url
        yield index


@contextmanager
def followed_index(folder: Path, environment: pytest.MonkeyPatch) -> Iterator[ServedIndex]:
    """Serve an index, and set `environment` for commands that follow it: its URL, a new home and no other settings."""
    clear_settings(environment)
    keep_readers(environment)
    with served_index(folder / "served") as index:
        for name, value in {
            "HOME": folder / "home",
            "INDEX_URL": index.url,
            "REQUEST_ATTEMPTS": 1,
            "REVISIT_SHARE": 0,
        }.items():
            environment.setenv(f"PYPI_ASSETS_{name}", str(value))
        yield index


def live(catalog: Catalog, serial: int | None = None) -> set[tuple[str, bool]]:
    """Return the live files of the catalog: (filename, is yanked)."""
    return {(file.filename, file.yanked) for file in live_files(catalog, serial)}


def logged_changes(catalog: Catalog, project: str) -> list[tuple[str, int, str]]:
    """Return the logged changes of a project, in order of serial: (filename, serial, cause)."""
    with catalog.read() as connection:
        rows = connection.execute(
            select(distributions.c.filename, changes.c.serial, changes.c.cause)
            .join(distributions, distributions.c.id == changes.c.distribution_id)
            .join(projects, projects.c.id == distributions.c.project_id)
            .where(projects.c.normalized == canonicalize_name(project))
            .order_by(changes.c.serial, distributions.c.filename, changes.c.logged_serial)
        )
        return [(row.filename, row.serial, row.cause) for row in rows]
