"""The surroundings of one check: a scripted world, the site that serves it, a clock, and indexes opened over them."""

import math
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

from packaging.utils import canonicalize_name

from pypi_assets.index.actions import Action, file_change
from pypi_assets.index.client import IndexClient
from pypi_assets.index.conformance.memory import TransientMemory
from pypi_assets.index.conformance.site import Site
from pypi_assets.index.conformance.world import World
from pypi_assets.index.errors import NotOnIndexError
from pypi_assets.index.kinds import IndexKind, IndexParts
from pypi_assets.index.models import ChangelogEvent, IndexFile, ProjectPage
from pypi_assets.index.observing.round_state import PollingPolicy
from pypi_assets.index.protocol import PackageIndex
from pypi_assets.index.rate import RateLimit, Rates
from pypi_assets.index.transport import Clock, Retries, Timeouts

USER, PASSWORD = "reader", "s3cret-pass"
LOGIN = f"Basic {b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"
_CONFIRM_S = 60.0
_ROUND_S = 300.0
_MOST_ROUNDS = 80
"""Enough to confirm a change of a project whose changes were often reverted."""
_MOST_BYTES = 10_000_000


class ConformanceError(AssertionError):
    """The index broke a rule. The message names what it did, and what was expected."""


def expect(is_met: object, problem: str) -> None:
    """Raise ConformanceError with `problem` unless the expectation is met."""
    if not is_met:
        raise ConformanceError(problem)


class LabClock:
    """A clock that advances only while somebody sleeps, so that no check waits."""

    def __init__(self) -> None:
        self._now = 1_700_000_000.0
        self._lock = threading.Lock()

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self._now += seconds


@dataclass(frozen=True)
class IndexReading:
    """All that an index says: its last serial, its events, and the pages of its listed projects by name."""

    last_serial: int
    events: tuple[ChangelogEvent, ...]
    listed: tuple[str, ...]
    pages: Mapping[str, ProjectPage]

    def shown(self) -> dict[str, set[str]]:
        """Return the filenames on the pages that have files, by project."""
        return {name: {file.filename for file in page.files} for name, page in self.pages.items() if page.files}


@dataclass
class Lab:
    """The parts of one check. Indexes that are opened one after the other share `memory`, as processes share a
    catalog."""

    kind: IndexKind
    world: World
    site: Site
    clock: LabClock
    index_path: str
    changelog_path: str
    memory: TransientMemory = field(init=False)

    def __post_init__(self) -> None:
        self.memory = TransientMemory(self.clock.now)

    @contextmanager
    def opened(self, *, login: str = "") -> Iterator[PackageIndex]:
        """Open an index of the kind, as a process would. `login` is `USER:PASSWORD@` for the URL."""
        root = self.site.url.replace("://", f"://{login}")
        unhurried = RateLimit(math.inf, clock=self.clock.now, sleep=self.clock.sleep)
        client = IndexClient(
            root + self.index_path,
            changelog_url=root + self.changelog_path,
            rates=Rates(unhurried, unhurried),
            retries=Retries(attempts=4, pause_s=1.0),
            timeouts=Timeouts(5.0, 5.0),
            clock=Clock(self.clock.now, self.clock.sleep),
        )
        policy = PollingPolicy(requests=10_000, shortest_s=100.0, longest_s=1_000.0, confirm_after_s=_CONFIRM_S)
        parts = IndexParts(client, memory=self.memory, policy=policy, at_once=1, round_s=_ROUND_S)
        with client, self.kind.open(parts) as index:
            yield index

    def settle(self, index: PackageIndex, rounds: int = _MOST_ROUNDS) -> None:
        """Poll an index without serials until each change of the world had time to be confirmed."""
        for number in range(rounds if index.is_observed else 1):
            self.clock.sleep(_CONFIRM_S + 1.0)
            index.observe(lambda *_: None, everything=True)
            if number and not self.memory.is_waiting:
                break

    def read(self, index: PackageIndex, rounds: int = _MOST_ROUNDS) -> IndexReading:
        """Return all that the index says after it had time to settle, in at most `rounds` rounds of polling."""
        self.settle(index, rounds)
        last = index.last_serial()
        events = tuple(
            event for page in index.changelog(0, last) for event in page if isinstance(event, ChangelogEvent)
        )
        with index.iter_listing() as (_, projects):
            listed = tuple(canonicalize_name(project.name or "") for project in projects)
        return IndexReading(last, events, listed, {name: page_of(index, name) for name in sorted(set(listed))})


def page_of(index: PackageIndex, project: str) -> ProjectPage:
    """Return a project's page."""
    page = index.project_page(project)
    if not isinstance(page, ProjectPage):
        raise ConformanceError(f"project_page({project!r}) returned a {type(page).__name__}, and a page was expected")
    return page


def is_gone(index: PackageIndex, project: str) -> bool:
    """Check whether the index has no page of the project."""
    try:
        index.project_page(project)
    except NotOnIndexError:
        return True
    return False


def download(index: PackageIndex, file: IndexFile) -> bytes:
    """Return the bytes of a file, checked against its page."""
    expect(file.url, f"{file.filename} has no URL")

    def consume(stream: BinaryIO) -> bytes:
        return stream.read()

    url = file.url or ""
    return index.stream_file(url, consume, sha256=file.sha256, size=file.size, max_bytes=_MOST_BYTES)[0]


def folded(events: tuple[ChangelogEvent, ...]) -> dict[str, set[str]]:
    """Return the files that exist after these events, by project. Projects without files are omitted."""
    live: dict[str, dict[str, str | None]] = {}
    for event in events:
        change, files = file_change(event), live.setdefault(canonicalize_name(event.name), {})
        if change.action == Action.ADD_FILE and change.filename:
            files[change.filename] = event.version
        elif change.action == Action.REMOVE_FILE and change.filename:
            files.pop(change.filename, None)
        elif change.action == Action.REMOVE_RELEASE:
            for filename in [name for name, version in files.items() if version == event.version]:
                del files[filename]
        elif change.action == Action.REMOVE_PROJECT:
            files.clear()
    return {name: set(files) for name, files in live.items() if files}
