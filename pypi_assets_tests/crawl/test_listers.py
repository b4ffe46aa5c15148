"""Two listers, one contract: the changelog, and the list of projects while there is none. Both lead to the same."""

import atexit
import shutil
import tempfile
import xmlrpc.client
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.utils import canonicalize_name
from sqlalchemy import select
from starlette.responses import PlainTextResponse, Response

from pypi_assets.catalog.database import Catalog, CatalogError, open_catalog
from pypi_assets.catalog.derived.file_history import LISTED, UNEXPLAINED
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC, complete_serial, inexact_spans, ledger
from pypi_assets.catalog.observed.lister_states import OvertakenError, changelog_trouble, read_lister_state
from pypi_assets.catalog.publications.dump_registry import DumpError, open_full_dump
from pypi_assets.catalog.reports.answerable_serials import answerable_serial
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.catalog.tables import changes
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_incremental, crawl_range
from pypi_assets.crawl.lister_choice import AUTO
from pypi_assets.crawl.listers import run_lister
from pypi_assets.crawl.simple_lister import ComparedList, SimpleLister, allocate_listed_ranges
from pypi_assets.index.errors import PackageIndexError, RefusedError, TransientError
from pypi_assets.index.models import ChangelogEvent, ListedProject
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.crawl.test_model import _empty, operations
from pypi_assets_tests.model_index import ModelIndex, ModelReaders
from pypi_assets_tests.served_index import ServedIndex
from pypi_assets_tests.served_index import live as served_live

REFUSED = RefusedError("no changelog is served here", "https://index.example.org/pypi")
BUSY = TransientError("HTTP 503", "https://index.example.org/pypi")


@dataclass
class SilentIndex(ModelIndex):
    """An index whose changelog answers with `trouble`, and its list with `listing`, where they are not None."""

    trouble: PackageIndexError | None = None
    listing: tuple[int | None, list[ListedProject]] | None = None

    @contextmanager
    def iter_listing(self) -> Iterator[tuple[int | None, Iterator[ListedProject]]]:
        with super().iter_listing() as (serial, listed):
            yield (serial, listed) if self.listing is None else (self.listing[0], iter(self.listing[1]))

    def last_serial(self) -> int:
        self._answer_trouble()
        return super().last_serial()

    def changelog(self, since: int, until: int) -> Iterator[list[ChangelogEvent]]:
        self._answer_trouble()
        yield from super().changelog(since, until)

    def _answer_trouble(self) -> None:
        if self.trouble is not None:
            raise self.trouble

    def happen(self, kind: str, project: str, version: str | None = None, filename: str | None = None) -> None:
        if kind.startswith("event:"):
            self.record_event(project, version, kind.removeprefix("event:"))
        else:
            self.do(kind, project, version, filename)


@dataclass
class Follower:
    """A catalog that follows an index by one lister; `notified` has the messages for people."""

    index: SilentIndex
    catalog: Catalog
    lister: str = AUTO
    now: float = 1_000_000.0
    notified: list[str] = field(default_factory=list)

    @property
    def crawler(self) -> Crawler:
        def sleep(seconds: float) -> None:
            self.now += seconds

        return Crawler(
            index=self.index,  # type: ignore[arg-type]
            catalog=replace(self.catalog, clock=lambda: self.now),
            storage=open_storage("memory:///"),
            readers=ModelReaders(),  # type: ignore[arg-type]
            connections=1,
            lister=self.lister,
            notify=self.notified.append,
            retry_deadline_s=3_600.0,
            sleep=sleep,
        )

    def live(self, serial: int | None = None) -> frozenset[tuple[str, bool]]:
        return frozenset((file.filename, file.yanked) for file in live_files(self.catalog, serial))

    def data(self) -> set[tuple[Any, ...]]:
        """The facts of each live file, without since when it is live."""
        return {
            (
                canonicalize_name(file.project),
                file.version,
                file.filename,
                file.kind,
                file.sha256,
                file.yanked,
                file.outcome,
                file.url,
            )
            for file in live_files(self.catalog)
        }

    @property
    def complete(self) -> int:
        with self.catalog.read() as connection:
            return complete_serial(connection)

    def listers(self) -> list[str | None]:
        with self.catalog.read() as connection:
            return [entry.lister for entry in ledger(connection)]

    def answerable(self, serial: int) -> bool:
        try:
            return answerable_serial(self.catalog, serial) == serial
        except CatalogError:
            return False

    def require_exact(self) -> None:
        """Each serial that has an answer is as the index showed it."""
        status = catalog_status(self.catalog)
        assert status.ledger_faults == ()
        for serial in range(self.complete + 1):
            if self.answerable(serial):
                assert self.live(serial) == self.index.shown[serial], f"at serial {serial}"


@cache
def _opened(lister: str) -> Catalog:
    folder = tempfile.mkdtemp(prefix="pypi-assets-listers-")
    atexit.register(shutil.rmtree, folder)
    catalog = open_catalog(f"sqlite:///{folder}/{lister}.sqlite")
    atexit.register(catalog.close)
    return catalog


def follower(lister: str, trouble: PackageIndexError | None = None) -> Follower:
    """One with an empty catalog."""
    _empty(_opened(lister))
    return Follower(SilentIndex(trouble=trouble), _opened(lister), lister)


@pytest.fixture
def auto(catalog: Catalog) -> Follower:
    return Follower(SilentIndex(), catalog)


def fault(code: int, text: str) -> str:
    return xmlrpc.client.dumps(xmlrpc.client.Fault(code, text), methodresponse=True)


def wheel(project: str, version: str) -> str:
    return f"{project}-{version}-py3-none-any.whl"


def add(index: SilentIndex, project: str, version: str = "1.0") -> str:
    index.do("add", project, version, wheel(project, version))
    return wheel(project, version)


steps = st.lists(
    st.tuples(st.lists(operations, max_size=6), st.booleans(), st.booleans(), st.lists(operations, max_size=2)),
    max_size=5,
)
"""Before each crawl: what happens; whether the changelog is off, whether the list is cached; what happens meanwhile."""


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(before=st.lists(operations, max_size=8), steps=steps, starts_off=st.booleans(), seed=st.integers(0, 99))
def test_whichever_lister_is_followed_every_answer_is_true(before, steps, starts_off, seed):
    auto = follower(AUTO)
    index = auto.index
    for operation in before:
        index.happen(*operation)
    index.trouble = REFUSED if starts_off else None
    crawl_full(auto.crawler)
    for happens, is_off, is_cached, meanwhile in steps:
        for operation in happens:
            index.happen(*operation)
        index.trouble = REFUSED if is_off else None
        index.is_cached = is_cached
        index.random.seed(seed)
        left = list(meanwhile)

        def move(left: list[Any] = left) -> None:
            if left and index.random.random() < 0.3:
                index.happen(*left.pop())

        index.before_answer = move
        crawl_incremental(auto.crawler)
        index.before_answer = lambda: None
        auto.require_exact()
    index.trouble, index.is_cached = REFUSED, False
    for _ in range(2):  # what was removed while the first one went on is on the second list
        crawl_incremental(auto.crawler)
    assert auto.live() == index.shown[index.serial]
    auto.require_exact()
    index.trouble = None
    add(index, "delta", "9.0")
    crawl_incremental(auto.crawler)
    assert auto.live() == index.shown[index.serial]
    with auto.catalog.read() as connection:
        assert inexact_spans(connection) == []
        causes = set(connection.scalars(select(changes.c.cause)))
    assert UNEXPLAINED not in causes
    auto.require_exact()
    status = catalog_status(auto.catalog)
    assert all(auto.answerable(serial) for serial in range(status.exact_from, status.complete_serial + 1))


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(history=st.lists(st.lists(operations, max_size=8), min_size=1, max_size=4))
def test_both_listers_lead_to_the_same_files_flags_and_data(history):
    one, other = follower(XMLRPC), follower(SIMPLE, REFUSED)
    crawl_full(one.crawler)
    crawl_full(other.crawler)
    for happens in history:
        for operation in happens:
            one.index.happen(*operation)
            other.index.happen(*operation)
        crawl_incremental(one.crawler)
        crawl_incremental(other.crawler)
        assert one.data() == other.data()
        assert one.live() == other.live() == one.index.shown[one.index.serial]


def test_a_listed_range_refuses_answers_that_it_cannot_give(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    crawl_full(auto.crawler)
    start = index.serial
    index.trouble = REFUSED
    index.record_event("demo", None, "docupdate")
    added = add(index, "demo", "2.0")
    seen_at = index.serial
    index.record_event("demo", None, "docupdate")
    add(index, "other")
    [result] = crawl_incremental(auto.crawler)
    end = index.serial
    assert (result.serials.start, result.serials.end, result.lister) == (start, end, SIMPLE)
    assert (result.events.events, result.visits.done, result.unexplained_changes) == (0, 2, 0)
    assert auto.listers() == [None, SIMPLE]
    assert [serial for serial in range(start, end + 1) if auto.answerable(serial)] == [start, end]
    with pytest.raises(CatalogError, match=f"no answer for serial {end - 1}: between the serials {start} and {end}"):
        answerable_serial(auto.catalog, end - 1)
    assert [(span.start, span.end) for span in catalog_status(auto.catalog).inexact_spans] == [(start, end)]
    with auto.catalog.read() as connection:
        assert set(connection.scalars(select(changes.c.cause).where(changes.c.serial > start))) == {LISTED}
    since = {file.filename: file.live_since for file in live_files(auto.catalog)}
    assert seen_at < since[added] <= end  # the serial of the page, which shows the last event as well
    index.trouble = None
    add(index, "third")
    crawl_incremental(auto.crawler)
    assert {file.filename: file.live_since for file in live_files(auto.catalog)}[added] == seen_at
    assert all(auto.answerable(serial) for serial in range(start, index.serial + 1))
    assert auto.listers() == [None, SIMPLE, XMLRPC]
    auto.require_exact()


def test_the_end_of_a_listed_range_is_refused_where_a_page_was_newer(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    crawl_full(auto.crawler)
    index.trouble = REFUSED
    add(index, "demo", "2.0")
    [serials] = allocate_next_ranges(auto.crawler)
    add(index, "demo", "3.0")
    crawl_range(auto.crawler, serials)
    assert auto.complete == serials.end
    assert not auto.answerable(serials.end)
    with pytest.raises(DumpError, match="pages as new as serial"):
        open_full_dump(auto.catalog, 1)
    crawl_incremental(auto.crawler)
    assert auto.answerable(index.serial)
    assert open_full_dump(auto.catalog, 1).serials.end == index.serial
    auto.require_exact()


def test_what_is_gone_from_the_list_is_believed_at_once_and_a_404_of_what_is_on_it_later(auto: Follower) -> None:
    index = auto.index
    for project in ("gone", "hidden", "newer"):
        add(index, project)
    crawl_full(auto.crawler)
    index.trouble = REFUSED
    index.do("remove-project", "gone")
    index.do("quarantine", "hidden")
    newer = add(index, "newer", "2.0")
    [serials] = allocate_next_ranges(auto.crawler)
    index.do("remove-project", "newer")
    before = auto.now
    result = crawl_range(auto.crawler, serials)
    assert (result.visits.done, result.visits.exhausted) == (3, 0)
    assert 600 <= auto.now - before < 3_600
    assert auto.live() == {("newer-1.0-py3-none-any.whl", False)}  # no page was seen of what came after it
    assert not auto.answerable(serials.end)
    before = auto.now
    crawl_incremental(auto.crawler)
    assert auto.now - before < 600
    assert auto.live() == frozenset()
    index.trouble = None
    add(index, "other")
    crawl_incremental(auto.crawler)
    auto.require_exact()
    assert (newer, False) in auto.live(serials.end)


def test_a_stale_page_of_what_is_gone_from_the_list_is_waited_for(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    crawl_full(auto.crawler)
    index.do("quarantine", "demo")
    index.trouble = REFUSED
    index.stale = {"demo"}
    index.random.seed(1)
    crawl_incremental(auto.crawler)
    assert auto.live() == frozenset()


def test_a_changelog_that_fails_is_waited_for_and_comes_back(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    crawl_full(auto.crawler)
    add(index, "demo", "2.0")
    index.trouble = BUSY
    with pytest.raises(TransientError):
        crawl_incremental(auto.crawler)
    auto.now += 3_599
    with pytest.raises(TransientError):
        crawl_incremental(auto.crawler)
    assert not catalog_status(auto.catalog).followed.is_changelog_off
    assert auto.notified == []
    auto.now += 1
    crawl_incremental(auto.crawler)
    assert auto.live() == index.shown[index.serial]
    assert auto.listers() == [None, SIMPLE]
    assert len(auto.notified) == 1
    assert "the changelog is off, so the list of projects is followed" in auto.notified[0]
    assert "HTTP 503" in auto.notified[0]
    assert catalog_status(auto.catalog).followed.is_changelog_off
    crawl_incremental(auto.crawler)
    assert len(auto.notified) == 1
    index.trouble = None
    add(index, "demo", "3.0")
    crawl_incremental(auto.crawler)
    assert auto.listers() == [None, SIMPLE, XMLRPC]
    assert auto.notified[1:] == ["the changelog answers again, and is followed"]
    with auto.catalog.read() as connection:
        assert changelog_trouble(connection, index.index_url) is None


def test_a_changelog_that_goes_away_while_projects_are_visited(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    crawl_full(auto.crawler)
    add(index, "demo", "2.0")
    [serials] = allocate_next_ranges(auto.crawler)
    add(index, "demo", "3.0")
    index.trouble = REFUSED
    result = crawl_range(auto.crawler, serials)
    assert (result.lister, result.visits.done, result.visits.exhausted) == (XMLRPC, 1, 0)
    assert auto.live(serials.end) == index.shown[serials.end]
    assert auto.live() == index.shown[serials.end]


def test_what_is_set_is_not_departed_from(catalog: Catalog) -> None:
    index = SilentIndex()
    add(index, "demo")
    crawl_full(Follower(index, catalog, XMLRPC).crawler)
    index.trouble = REFUSED
    with pytest.raises(RefusedError):
        crawl_incremental(Follower(index, catalog, XMLRPC).crawler)
    add(index, "demo", "2.0")
    crawl_incremental(Follower(index, catalog, SIMPLE).crawler)
    with pytest.raises(CatalogError, match="no history while the changelog is off"):
        crawl_full(Follower(index, catalog, SIMPLE).crawler, with_history=True)


def test_the_list_is_requested_no_more_often_than_set(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    crawl_full(auto.crawler)
    index.trouble = REFUSED
    add(index, "demo", "2.0")
    assert len(allocate_listed_ranges(auto.crawler, 1_800.0)) == 1
    add(index, "demo", "3.0")
    assert allocate_listed_ranges(auto.crawler, 1_800.0) == []
    auto.now += 1_800
    assert len(allocate_listed_ranges(auto.crawler, 1_800.0)) == 1
    auto.now += 1_800
    assert allocate_listed_ranges(auto.crawler) == []  # nothing is new


def test_a_list_without_serials_cannot_be_followed(auto: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    add(auto.index, "demo")
    crawl_full(auto.crawler)
    auto.index.trouble = REFUSED
    monkeypatch.setattr(SilentIndex, "iter_listing", lambda _: nullcontext((None, iter(()))))
    with pytest.raises(RefusedError, match="has no serial"):
        crawl_incremental(auto.crawler)


def test_of_two_runs_at_the_same_time_one_goes_on(auto: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    index = auto.index
    for number in range(4):
        add(index, f"demo{number}")
    crawl_full(auto.crawler)
    for number in range(4):
        add(index, f"demo{number}", "2.0")
    monkeypatch.setattr("pypi_assets.crawl.simple_lister._PROJECTS_A_PAGE", 1)
    crawler = auto.crawler
    with index.iter_listing() as (serial, listed), index.iter_listing() as (_, listed_again):
        slower = SimpleLister(crawler, ComparedList(crawler, serial or 0, _after(1, listed, crawler, listed_again)))
        with pytest.raises(OvertakenError, match="compared by another run"):
            run_lister(crawler, slower)
    assert auto.listers() == [None, SIMPLE]
    crawl_incremental(auto.crawler)
    assert auto.live() == index.shown[index.serial]


def _after(
    count: int, listed: Iterable[ListedProject], crawler: Crawler, again: Iterable[ListedProject]
) -> Iterator[ListedProject]:
    """What is listed; after `count` projects another run compares the whole list."""
    for position, project in enumerate(listed):
        if position == count:
            run_lister(crawler, SimpleLister(crawler, ComparedList(crawler, crawler.index.last_serial(), again)))
        yield project


def test_a_listing_that_was_killed_is_taken_up_by_the_next(auto: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    index = auto.index
    for number in range(4):
        add(index, f"demo{number}")
    crawl_full(auto.crawler)
    index.trouble = REFUSED
    for number in range(4):
        add(index, f"demo{number}", "2.0")
    monkeypatch.setattr("pypi_assets.crawl.simple_lister._PROJECTS_A_PAGE", 1)
    crawler = auto.crawler
    with index.iter_listing() as (serial, listed), pytest.raises(KeyError):
        run_lister(crawler, SimpleLister(crawler, ComparedList(crawler, serial or 0, _broken_off(listed))))
    assert auto.listers() == [None]
    with auto.catalog.read() as connection:
        state = read_lister_state(connection, SIMPLE, index.index_url)
    assert (state.content, state.revision) == ({"serial": index.serial, "projects": 2}, 2)
    add(index, "demo0", "3.0")
    crawl_incremental(auto.crawler)
    assert auto.live() == index.shown[index.serial]
    auto.require_exact()


def _broken_off(listed: Iterable[ListedProject]) -> Iterator[ListedProject]:
    rest = iter(listed)
    yield next(rest)
    yield next(rest)
    raise KeyError


def test_a_full_crawl_by_the_list_alone(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    add(index, "other")
    index.trouble = REFUSED
    result = crawl_full(auto.crawler)
    assert (result.crawl.serial, auto.complete) == (index.serial, index.serial)
    index.do("remove-project", "other")
    crawl_full(auto.crawler)
    assert auto.live() == index.shown[result.crawl.serial]  # a later full crawl does not move the complete serial
    assert auto.live(index.serial) == index.shown[index.serial]
    crawl_incremental(auto.crawler)
    assert auto.live() == index.shown[index.serial]
    index.trouble = None
    add(index, "demo", "2.0")
    crawl_incremental(auto.crawler)
    auto.require_exact()


@pytest.mark.parametrize(
    "refusal",
    [
        PlainTextResponse("", 404),
        PlainTextResponse("", 410),
        Response(fault(-32601, "server error; requested method not found"), media_type="text/xml"),
    ],
    ids=["404", "410", "-32601"],
)
def test_an_index_whose_changelog_is_refused(index: ServedIndex, catalog: Catalog, refusal: Response) -> None:
    notified: list[str] = []
    index.wheel("one", "1.0")
    index.wheel("two", "1.0")
    index.faults = lambda request: refusal if request.url.path == "/pypi" else None
    crawler = index.crawler(catalog, lister=AUTO, notify=notified.append)
    crawl_full(crawler)
    index.wheel("one", "2.0")
    index.history.yank("one", "1.0")
    index.history.remove_project("two")
    crawl_incremental(crawler)
    assert served_live(catalog) == index.shown()
    assert len(notified) == 1
    index.faults = None
    index.wheel("three", "1.0")
    crawl_incremental(crawler)
    assert served_live(catalog) == index.shown()
    assert len(notified) == 2
