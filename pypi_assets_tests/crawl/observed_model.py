"""An in-process index without serials, seen through caches that show old pages, and pollers that observe it.

A history is determined by its seed: index operations, polls and failures. The invariants are checked after each crawl.
At the end the caches show the current pages, and the catalog must equal the index.
"""

import random as global_random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from io import BytesIO
from random import Random
from threading import Event
from types import SimpleNamespace
from typing import Any, BinaryIO
from unittest.mock import patch

from sqlalchemy import func, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.file_history import fold
from pypi_assets.catalog.observed.observations import Observations
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.catalog.reports.range_states import unexplained_projects
from pypi_assets.catalog.tables import observed_events
from pypi_assets.crawl import draining
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.index.errors import NotOnIndexError, TransientError
from pypi_assets.index.models import FetchedBytes, IndexFile
from pypi_assets.index.observing import observed_index
from pypi_assets.index.observing.observed_index import ObservedIndex
from pypi_assets.index.observing.round_state import PollingPolicy
from pypi_assets.index.observing.shown_pages import ShownFile, ShownList, ShownPage, ShownProject, Validators
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.crawl.followers import empty_catalog
from pypi_assets_tests.crawl.model_following import _InPlace, _NoThread
from pypi_assets_tests.kills import KilledError
from pypi_assets_tests.model_index import EmptyRanges, ModelReaders
from pypi_assets_tests.simulated_index import version_of

URL = "https://pages.example.org/simple/"
PROJECTS = ("alpha", "beta-pkg", "gamma")
ENDINGS = ("-py3-none-any.whl", "-cp39-none-any.whl", ".tar.gz")
VERSIONS = ("1.0", "2.0")
POLICY = PollingPolicy(requests=50, shortest_s=100.0, longest_s=1_000.0, confirm_after_s=100.0)
LONGER_THAN_A_LEASE_S = 700.0
Files = Mapping[str, tuple[str, bool]]
"""The files of a page: the digit that its sha256 consists of, and whether it is yanked."""


@dataclass
class SeenThroughCaches:
    """The index and the old pages that caches still show. `now_and_then` is called before each answer."""

    random: Random
    pages: dict[str, list[Files | None]] = field(default_factory=dict)
    stale: float = 0.0
    failing: float = 0.0
    with_hashes: bool = True
    now_and_then: Callable[[], None] = lambda: None
    delivered: set[tuple[str, str, bool]] = field(default_factory=set)

    def current(self, project: str) -> Files | None:
        return self.pages.get(project, [None])[-1]

    def change(self, project: str, files: Files | None) -> None:
        self.pages.setdefault(project, [None]).append(files)

    def _answer(self) -> None:
        self.now_and_then()
        if self.random.random() < self.failing:
            raise TransientError("HTTP 503", URL)

    def list_of_projects(self, known: Validators) -> ShownList | None:
        self._answer()
        names = [name for name in sorted(self.pages) if self.current(name) is not None]
        if self.random.random() < self.stale:
            names = [name for name in names if self.random.random() < 0.5]
        return ShownList([ShownProject(name) for name in names])

    def page(self, project: str, url: str | None, known: Validators) -> ShownPage | None:
        self._answer()
        versions = self.pages.get(project, [None])
        place = len(versions) - 1
        if self.random.random() < self.stale:
            place = self.random.randrange(max(0, place - 3), place + 1)
        files = versions[place]
        if files is None:
            raise NotOnIndexError("HTTP 404", URL)
        if known.etag == f"{place}" and self.random.random() < 0.8:
            return None
        self.delivered |= {(name, digit, yanked) for name, (digit, yanked) in files.items()}
        return ShownPage(
            project,
            tuple(_shown(name, digit, yanked, with_hash=self.with_hashes) for name, (digit, yanked) in files.items()),
            validators=Validators(f"{place}"),
        )


def _shown(name: str, digit: str, yanked: bool, *, with_hash: bool) -> ShownFile:
    sha256 = digit * 64 if with_hash else None
    size = None if with_hash else int(digit) + 1
    file = IndexFile(name, f"https://pages.example.org/{name}", sha256, size, None, None, yanked, None, False, None)
    return ShownFile(file, {"sha256": sha256} if sha256 else {})


class Bytes:
    """Replaces a client: its files have no bytes, since the readers make up their contents."""

    index_url = URL

    def agreed_file_origin(self, urls: object) -> None:
        return None

    def trust_file_origin(self, origin: str) -> None: ...

    def stream_file(self, url: str, consume: Callable[[BinaryIO], Any], **_: object) -> tuple[Any, FetchedBytes]:
        return consume(BytesIO()), FetchedBytes(0, 1, 0.0)

    @contextmanager
    def open_ranges(self, url: str, **_: object) -> Iterator[EmptyRanges]:
        yield EmptyRanges()

    def close(self) -> None: ...


class Observing:
    """The index, its pollers, and a catalog that follows them."""

    def __init__(self, catalog: Catalog, seed: int) -> None:
        self.random = Random(seed)
        self.now = 1_000_000.0
        self.catalog = replace(catalog, clock=lambda: self.now)
        empty_catalog(self.catalog)
        self.index = SeenThroughCaches(self.random, with_hashes=self.random.random() < 0.8)
        self.pollers = [self._poller() for _ in range(self.random.choice([1, 2]))]
        self.storage = open_storage("memory:///")
        self.is_crawled = self.random.random() < 0.1
        self._is_nested = False

    def _poller(self) -> ObservedIndex:
        memory = Observations(self.catalog, URL)
        return ObservedIndex(Bytes(), self.index, memory, POLICY)  # type: ignore[arg-type]

    def crawler(self) -> Crawler:
        return Crawler(
            index=self.random.choice(self.pollers),
            catalog=self.catalog,
            storage=self.storage,
            readers=ModelReaders(),  # type: ignore[arg-type]
            lister="pages",
            connections=1,
            retry_pause_s=10.0,
            retry_deadline_s=100.0,
            sleep=self._sleep,
        )

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def happen(self) -> None:
        """Apply one change to the index: an upload or overwrite, a removal, a yank, or the removal of a project."""
        project = self.random.choice(PROJECTS)
        files = dict(self.index.current(project) or {})
        name = f"{project.replace('-', '_')}-{self.random.choice(VERSIONS)}{self.random.choice(ENDINGS)}"
        kind = self.random.choices(
            ["add", "remove", "yank", "unyank", "remove project", "remove release", "yank release"],
            [6, 3, 2, 1, 1, 1, 1],
        )[0]
        release = [file for file in files if file.split("-")[1].startswith(name.split("-")[1][:3])]
        match kind:
            case "add":
                files[name] = (str(self.random.randrange(4)), False)
            case "remove" if files:
                del files[self.random.choice(sorted(files))]
            case "yank" | "unyank" if files:
                one = self.random.choice(sorted(files))
                files[one] = (files[one][0], kind == "yank")
            case "yank release":
                files |= {one: (files[one][0], True) for one in release}
            case "remove release":
                files = {one: facts for one, facts in files.items() if one not in release}
            case "remove project":
                self.index.change(project, None)
                return
        self.index.change(project, files)

    def look(self) -> None:
        """Run a poll of one poller, with another poll or a kill in the middle."""
        poller = self.random.choice(self.pollers)
        self.index.now_and_then = self._meanwhile
        with suppress(TransientError, KilledError):
            poller.observe(lambda *_: None)
        self.index.now_and_then = lambda: None

    def _meanwhile(self) -> None:
        if self._is_nested or self.random.random() > 0.1:
            return
        if self.random.random() < 0.3:
            raise KilledError
        if len(self.pollers) > 1:
            self.now += self.random.choice([1.0, LONGER_THAN_A_LEASE_S])
            self._is_nested = True
            other = next(poller for poller in self.pollers if not poller._lock.locked())
            with suppress(TransientError):
                other.observe(lambda *_: None)
            self._is_nested = False

    def crawl(self) -> None:
        is_cut = False
        if self.is_crawled:
            try:
                crawl_incremental(self.crawler())
            except TransientError:  # observations up to here are stored, and the catalog gets them later
                is_cut = True
        self.require_as_believed(is_cut=is_cut)

    def live(self) -> set[tuple[str, str | None, bool]]:
        """Return the live files of the catalog. Hashes that come from the bytes, not from a page, are omitted."""
        has = self.index.with_hashes
        return {(file.filename, file.sha256 if has else None, file.yanked) for file in live_files(self.catalog)}

    def believed(self) -> set[tuple[str, str | None, bool]]:
        memory = Observations(self.catalog, URL)
        known = [memory.load(project) for project in PROJECTS]
        return {
            (file.filename, file.sha256, file.yanked)
            for observed in known
            if observed is not None and observed.page.is_there
            for file in observed.page.project_page(observed.project, 1).files
        }

    def truth(self) -> set[tuple[str, str | None, bool]]:
        return {
            (name, digit * 64 if self.index.with_hashes else None, yanked)
            for project in PROJECTS
            for name, (digit, yanked) in (self.index.current(project) or {}).items()
        }

    def require_as_believed(self, *, is_cut: bool = False) -> None:
        """Check that the state derived from the events equals the believed state, and that a page once showed it.

        A catalog that follows must have the same state and no unexplained change, unless its last crawl `is_cut` short.
        """
        believed = self.believed()
        assert self.folded() == {(name, yanked) for name, _, yanked in believed}
        if self.index.with_hashes:
            assert {(name, sha256 and sha256[0], yanked) for name, sha256, yanked in believed} <= self.index.delivered
        if self.is_crawled and not is_cut:
            assert self.live() == believed
            with self.catalog.read() as connection:
                assert unexplained_projects(connection) == []

    def folded(self) -> set[tuple[str, bool]]:
        """Return the (filename, yanked) pairs that the catalog derives from the events alone."""
        memory = Observations(self.catalog, URL)
        found: set[tuple[str, bool]] = set()
        events = memory.events(0, 100_000)
        assert [event.serial for event in events] == list(range(1, memory.last_serial() + 1))
        for project in PROJECTS:
            own = [event for event in events if event.name == project]
            folded = fold(own, [], known_since=0, events_through=memory.last_serial(), version_of=version_of)
            assert folded is not None
            for name, history in folded.histories.items():
                if history.is_live(memory.last_serial()):
                    yanked = history.yanked[-1:]
                    found.add((name, bool(yanked) and yanked[0].end is None))
        return found

    def count_events(self) -> int:
        with self.catalog.read() as connection:
            return connection.scalar(select(func.count()).select_from(observed_events)) or 0

    def flap(self, looks: int) -> None:
        """Show old pages from caches in turn while nothing changes, and check that few new events are added."""
        before = self.count_events()
        shown = {
            (project, name)
            for project, versions in self.index.pages.items()
            for files in versions[-4:]
            for name in files or {}
        }
        self.index.stale = self.random.choice([0.3, 0.5, 0.9])
        for _ in range(looks):
            self.now += 101.0
            self.look()
        self.index.stale = 0.0
        assert self.count_events() - before <= 12 * (len(shown) + len(self.index.pages))

    def settle(self) -> None:
        """Make the caches show the current pages, and check that the catalog equals the index after some polls."""
        self.index.failing = self.index.stale = 0.0
        self.now += LONGER_THAN_A_LEASE_S
        for _ in range(70):
            self.now += 1_001.0
            self.pollers[0].observe(lambda *_: None)
            if self.believed() == self.truth():
                break
        self.crawl()
        assert self.believed() == self.truth()


def observe_history(catalog: Catalog, seed: int) -> Observing:
    """Run the history of a seed. Raise AssertionError if an invariant fails."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(draining, "_GATHER_S", None))
        stack.enter_context(patch.object(draining, "ThreadPoolExecutor", _InPlace))
        stack.enter_context(patch.object(draining, "threading", SimpleNamespace(Event=Event, Thread=_NoThread)))
        stack.enter_context(patch.object(draining.Pace, "is_due", return_value=False))
        stack.enter_context(patch.object(observed_index, "ThreadPoolExecutor", _InPlace))
        global_random.seed(0)
        observing = Observing(catalog, seed)
        random = observing.random
        for _ in range(random.randrange(6)):
            observing.happen()
        if observing.is_crawled:
            crawl_full(observing.crawler())
        else:
            observing.look()
        observing.require_as_believed()
        observing.index.failing = random.choice([0.0, 0.0, 0.1])
        for _ in range(random.randrange(1, 12)):
            observing.index.stale = random.choice([0.0, 0.0, 0.2, 0.5])
            for _ in range(random.randrange(4)):
                observing.happen()
            observing.now += random.choice([1.0, 101.0, 400.0, 1_001.0])
            observing.look()
            if random.random() < 0.2:
                observing.crawl()
        if random.random() < 0.2:
            observing.flap(random.choice([20, 60]))
        observing.settle()
    return observing
