"""An index without a changelog and serials, for `crawl/` to follow: polled in rounds, and answered from stored state.

Only `observe` requests pages, apart from `project_page` for a project that was never seen. So a crawl always gets a
page that belongs to a serial of the local counter. The meaning of an observation is decided in `comparison.py`.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import BinaryIO, Self, TypeVar

import msgspec
from packaging.utils import canonicalize_name

from pypi_assets.index.client import IndexClient
from pypi_assets.index.errors import (
    LeadsElsewhereError,
    NotOnIndexError,
    PackageIndexError,
    RefusedError,
    requested_pause_s,
)
from pypi_assets.index.file_origins import FileOrigin
from pypi_assets.index.models import (
    BrokenEntry,
    ChangelogRow,
    FetchedBytes,
    ListedProject,
    ProjectPage,
    last_usable_serial,
)
from pypi_assets.index.observing.comparison import CALM, KnownPage, compare
from pypi_assets.index.observing.round_state import (
    KnownProject,
    Look,
    Memory,
    PollingPolicy,
    look_after_failure,
    next_look,
)
from pypi_assets.index.observing.shown_pages import NO_VALIDATORS, PageSource, ShownPage, ShownProject
from pypi_assets.index.protocol import Observation, Report
from pypi_assets.index.ranged_files import RangedFile
from pypi_assets.visit_policies import PollFacts

EVENTS_A_PAGE = 50_000
_AT_ONCE = 100
"""The number of projects that are polled between two transactions."""
_LEASE_S = 600.0
"""How long a poller may take for one such batch."""
_FAILURES_OF_THE_INDEX = 20
"""If at least this many polls of a round fail and none succeeds, the index itself is considered to fail."""
_SHOWN = 3
_T = TypeVar("_T")


class _ListNow:
    """The current list of projects, requested by the first thread that needs it."""

    def __init__(self, source: PageSource, url: str) -> None:
        self._source, self._url = source, url
        self._lock = threading.Lock()
        self._names: frozenset[str] | None = None

    def has(self, project: str) -> bool:
        """Check whether the list has the project (normalized). Raises PackageIndexError if there is no list."""
        with self._lock:
            if self._names is None:
                shown = self._source.list_of_projects(NO_VALIDATORS)
                if shown is None:
                    raise RefusedError(
                        "HTTP 304 for the list of projects, though the request had no condition", self._url
                    )
                self._names = frozenset(canonicalize_name(listed.name) for listed in shown.projects)
        return project in self._names


@dataclass
class _ObservingRound:
    """The results of a round so far."""

    listed: _ListNow
    looked_at: int = 0
    events: int = 0
    dropped: int = 0
    failed: list[tuple[str, PackageIndexError]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


class ObservedIndex:
    """Follows the pages read by `source` at the pace of `policy`.

    `memory` stores the state, and `client` fetches files.

    If `projects` are given (normalized), only these are polled, and no list is requested. At most `at_once` projects
    are requested at the same time, and no new request of a round starts after `round_s` seconds.
    """

    is_observed = True

    def __init__(
        self,
        client: IndexClient,
        source: PageSource,
        memory: Memory,
        policy: PollingPolicy,
        projects: frozenset[str] = frozenset(),
        *,
        at_once: int = 10,
        round_s: float | None = None,
    ) -> None:
        self._client, self._source, self._memory = client, source, memory
        self._policy, self._projects = policy, projects
        self._at_once, self._round_s = at_once, round_s
        self._lock = threading.Lock()
        self.index_url = self.changelog_url = client.index_url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the client's connections."""
        self._client.close()

    def observe(
        self,
        report: Report,
        *,
        everything: bool = False,
        with_list: bool = True,
        only: frozenset[str] | None = None,
    ) -> Observation:
        """Poll the list of projects, and then each due project once, up to the policy's number of requests.

        With `everything`, all projects are polled. Without `with_list`, only known projects are polled. With `only`,
        just these projects are polled, without the list, even if they are not due. Raises the error of the list, or the
        first project's error if no project could be polled.
        """
        with self._lock:
            started, done = self._memory.now(), _ObservingRound(_ListNow(self._source, self.index_url))
            if with_list and only is None:
                self._observe_list(started, everything=everything)
            among = self._projects or None
            if only is not None:
                among = frozenset(self._known_or_new(only & self._projects if self._projects else only))
                if not among:
                    return Observation()
                everything = True
            if everything:
                self._memory.make_due(started, among)
            limit = None if everything else self._policy.requests
            due = self._memory.count_due(self._memory.now(), seen_before=started, among=among)
            total = due if limit is None else min(limit, due)
            while limit is None or done.looked_at < limit:
                now = self._memory.now()
                if self._round_s is not None and now - started >= self._round_s:
                    break
                few = _AT_ONCE if limit is None else min(_AT_ONCE, limit - done.looked_at)
                taken = self._memory.take_due(now, now + _LEASE_S, few, seen_before=started, among=among)
                if not taken:
                    break
                self._look_at(taken, done)
                report(done.looked_at, max(total, done.looked_at))
                if len(done.failed) == done.looked_at >= _FAILURES_OF_THE_INDEX:
                    raise done.failed[0][1]
            waiting = self._memory.count_due(self._memory.now(), seen_before=started, among=among)
        if done.failed and len(done.failed) == done.looked_at:
            raise done.failed[0][1]
        return Observation(done.looked_at, len(done.failed), done.events, waiting, tuple(_messages(done)))

    def _known_or_new(self, projects: Iterable[str]) -> Iterator[str]:
        """Yield the known ones of these projects. Unknown projects are polled, and enter if they have a page."""
        for project in sorted(projects):
            if self._memory.load(project) is not None:
                yield project
                continue
            with suppress(NotOnIndexError):
                self._first_look(project, None)

    def _observe_list(self, now: float, *, everything: bool) -> None:
        if self._projects:
            self._memory.enter([ShownProject(name) for name in sorted(self._projects)], now)
            return
        known = self._memory.known_list()
        if known.looked_at is not None and not everything and 0 <= now - known.looked_at < self._policy.shortest_s:
            return
        try:
            shown = self._source.list_of_projects(known.validators)
        except NotOnIndexError as error:
            raise RefusedError(
                f"{error.message}: the index has no list of projects; name the projects to follow in"
                " PYPI_ASSETS_PROJECTS",
                error.url,
            ) from error
        projects = None if shown is None else _named_once(shown.projects)
        self._memory.save_list(projects, known.validators if shown is None else shown.validators, now)

    def _look_at(self, taken: Iterable[KnownProject], done: _ObservingRound) -> None:
        with ThreadPoolExecutor(self._at_once, thread_name_prefix="looks") as pool:
            looks = list(pool.map(partial(self._look, listed=done.listed), taken))
        for look, error, serial in looks:
            done.looked_at += 1
            if error is not None:
                done.failed.append((look.known.project, error))
            if serial is not None and self._memory.note_serials():
                done.messages.append(_HAS_SERIALS.format(self.index_url))
        events, dropped = self._memory.save(sorted((look for look, *_ in looks), key=lambda look: look.known.project))
        done.events += events
        done.dropped += dropped

    def _look(self, known: KnownProject, listed: _ListNow) -> tuple[Look, PackageIndexError | None, int | None]:
        """Poll a project.

        Return the result, the error if it failed, and the page's serial if it unexpectedly has one.
        """
        at = self._memory.now()
        try:
            shown = self._page(known, listed)
        except NotOnIndexError:
            return self._compared(known, None, at), None, None
        except PackageIndexError as error:
            due_at = look_after_failure(self._policy, known.failures + 1, at, requested_pause_s(error))
            text = str(error)
            return Look(known, None, (), known.validators, at, due_at, known.pause_s, text), error, None
        if shown is None:
            return self._unchanged(known, at), None, None
        return self._compared(known, shown, at), None, shown.serial

    def _page(self, known: KnownProject, listed: _ListNow) -> ShownPage | None:
        """Return the page of a project.

        Raises NotOnIndexError if the page redirects to another host and the list does not have the project. pypiserver
        behaves like this by default: it redirects requests for projects that it does not have to the public index.
        """
        try:
            return self._source.page(known.project, known.url, known.validators)
        except LeadsElsewhereError as error:
            try:
                is_gone = not listed.has(known.project)
            except NotOnIndexError:
                is_gone = False  # without a list, nothing confirms the removal
            if is_gone:
                raise NotOnIndexError(f"not on the list, and its page leads to {error.target}", error.url) from error
            text = f"its page leads to {error.target}, on another host"
            raise RefusedError(text, error.url) from error

    def _unchanged(self, known: KnownProject, at: float) -> Look:
        """Return the result of polling a page that has not changed. It shows the accepted state.

        Validators are stored only while no change waits for confirmation, so none can be waiting here.
        """
        page = known.page
        if page.doubts:
            is_calm = page.calm + 1 >= CALM
            page = msgspec.structs.replace(page, doubts=page.doubts - is_calm, calm=0 if is_calm else page.calm + 1)
        facts = PollFacts(at, known.pause_s, known.changes, has_changed=False, is_waiting=False)
        due = next_look(self._policy, facts)
        return Look(known, page, (), known.validators, at, due.due_at, due.pause_s)

    def _compared(self, known: KnownProject, shown: ShownPage | None, at: float) -> Look:
        found = compare(known.page, shown, at, self._policy.confirm_after_s)
        has_changed = bool(found.events)
        changes = known.changes.with_change(at) if has_changed else known.changes
        facts = PollFacts(at, known.pause_s, changes, has_changed=has_changed, is_waiting=found.is_waiting)
        due = next_look(self._policy, facts)
        is_plain = shown is not None and not found.is_waiting and not found.events
        validators = shown.validators if is_plain and shown is not None else NO_VALIDATORS
        return Look(known, found.known, found.events, validators, at, due.due_at, due.pause_s)

    def last_serial(self) -> int:
        """Return the last serial of the counter, as of the last round."""
        return self._memory.last_serial()

    def changelog_page(self, since: int) -> list[ChangelogRow]:
        """Return the next stored events above `since`."""
        return list(self._memory.events(since, EVENTS_A_PAGE))

    def changelog(self, since: int, until: int) -> Iterator[list[ChangelogRow]]:
        """Yield pages of stored events above `since`, until a page reaches `until` or no events are left."""
        last: int | None = since
        while last is not None and last < until and (page := self.changelog_page(last)):
            yield page
            last = last_usable_serial(page)

    @contextmanager
    def iter_listing(
        self,
        *,
        newer_than: int | None = None,  # noqa: ARG002 - nothing is downloaded
    ) -> Iterator[tuple[int | None, Iterator[ListedProject | BrokenEntry]]]:
        """Yield the last serial and an iterator over the projects, from the stored state."""
        serial, projects = self._memory.listed()
        wanted = (project for project in projects if not self._projects or project.normalized in self._projects)
        yield serial, iter(wanted)

    def project_page(self, project: str) -> ProjectPage:
        """Return the accepted page of `project`, with the serial of its last event.

        A project that was never seen is polled now. Raises the error of that poll, and NotOnIndexError if the project
        has no page.
        """
        normalized = canonicalize_name(project)
        known = self._memory.load(normalized)
        if known is None or known.looked_at is None:
            known = self._first_look(normalized, known)
        if not known.page.is_there or known.serial is None:
            raise NotOnIndexError("it has no page, as far as was observed", self.index_url)
        return known.page.project_page(normalized, known.serial)

    def _first_look(self, project: str, known: KnownProject | None) -> KnownProject:
        unknown = KnownProject(project, KnownPage(project))
        look, error, _ = self._look(known or unknown, _ListNow(self._source, self.index_url))
        if error is not None:
            raise error
        if known is None:
            if look.page is None or not look.page.is_there:
                raise NotOnIndexError("it has no page", self.index_url)
            self._memory.enter([ShownProject(project)], look.at)
            known = self._memory.load(project)
            look = look if known is None else replace(look, known=known)
        self._memory.save([look])
        found = self._memory.load(project)
        if found is None:
            raise NotOnIndexError("it has no page", self.index_url)
        return found

    def agreed_file_origin(self, urls: Iterable[str]) -> FileOrigin | None:
        """See `IndexClient.agreed_file_origin`."""
        return self._client.agreed_file_origin(urls)

    def trust_file_origin(self, origin: str) -> None:
        """See `IndexClient.trust_file_origin`."""
        self._client.trust_file_origin(origin)

    def stream_file(
        self, url: str, consume: Callable[[BinaryIO], _T], *, sha256: str | None, size: int | None, max_bytes: int
    ) -> tuple[_T, FetchedBytes]:
        """See `IndexClient.stream_file`."""
        return self._client.stream_file(url, consume, sha256=sha256, size=size, max_bytes=max_bytes)

    def open_ranges(
        self,
        url: str,
        *,
        sha256: str | None,
        size: int,
        max_bytes: int,
        metadata_sha256: str | None,
        has_sidecar: bool,
    ) -> RangedFile:
        """See `IndexClient.open_ranges`."""
        return self._client.open_ranges(
            url,
            sha256=sha256,
            size=size,
            max_bytes=max_bytes,
            metadata_sha256=metadata_sha256,
            has_sidecar=has_sidecar,
        )


_HAS_SERIALS = (
    "the index {} has serials, but this catalog counts its own: to use the index's serials, start a new catalog with"
    " PYPI_ASSETS_LISTER=auto; this catalog stays complete and can still be used"
)


def _messages(done: _ObservingRound) -> Iterator[str]:
    yield from done.messages
    if done.failed:
        shown = "; ".join(f"{project}: {error}" for project, error in done.failed[:_SHOWN])
        more = "" if len(done.failed) <= _SHOWN else f"; and {len(done.failed) - _SHOWN} more"
        yield (
            f"{len(done.failed)} of {done.looked_at} projects could not be polled, and keep their last known state:"
            f" {shown}{more}"
        )


def _named_once(projects: Iterable[ShownProject]) -> Collection[ShownProject]:
    """Return the projects with a valid name, without duplicates."""
    found: dict[str, ShownProject] = {}
    for project in projects:
        if normalized := canonicalize_name(project.name):
            found.setdefault(normalized, project)
    return found.values()
