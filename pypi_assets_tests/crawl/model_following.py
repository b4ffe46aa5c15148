"""An index, a catalog that follows it, and the invariants after each step of a history (model_steps.py)."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from threading import Event
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from packaging.utils import canonicalize_name
from sqlalchemy import Connection, Table, select

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.derived.file_history import UNEXPLAINED
from pypi_assets.catalog.ledger.range_ledger import complete_serial, ledger, read_state
from pypi_assets.catalog.observed.projects import CORRECTED
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reports.catalog_status import catalog_status, count_differences, ledger_faults
from pypi_assets.catalog.reports.failures import count_failed_visits
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.catalog.tables import (
    changes,
    distribution_data,
    distributions,
    live_intervals,
    projects,
    yanked_intervals,
)
from pypi_assets.catalog.work.audits import find_open_audit
from pypi_assets.catalog.work.full_crawls import find_open_crawl, last_completed_crawl
from pypi_assets.crawl import crawler as crawler_module
from pypi_assets.crawl import draining
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_incremental, crawl_range
from pypi_assets.crawl.index_audit import audit_index
from pypi_assets.crawl.retry_failures import retry
from pypi_assets.devindex.index_state import ProjectStatus
from pypi_assets.index.actions import file_change
from pypi_assets.index.errors import TransientError
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.crawl.followers import empty_catalog
from pypi_assets_tests.crawl.model_dumps import DumpReader, full_dump_of
from pypi_assets_tests.crawl.model_steps import LARGEST, Operation, Step
from pypi_assets_tests.derived_statistics import derived_statistics, kept_statistics
from pypi_assets_tests.model_index import REFRESH_S, ModelIndex, ModelReaders
from pypi_assets_tests.model_truth import FOREVER, Spans, joined, within
from pypi_assets_tests.workers_in_step import SteppedCatalog, Worker, run_in_step

DEADLINE_S = 1_000.0
LONGEST_NAP_S = 150.0
"""How long a worker sleeps while it waits: far less than a claim lasts."""


def follow(catalog: Catalog, history: Sequence[Step]) -> "Following":
    """Run a history with an empty catalog. Raise AssertionError if the catalog is not exact.

    The result depends only on the history, not on how long anything takes.
    """
    following = Following(catalog)
    with draining_in_place():
        for name, arguments in history:
            random.seed(0)
            following.step(name, arguments)
        following.settle()
    return following


@contextmanager
def draining_in_place() -> Iterator[None]:
    """Make draining run work immediately and in order, without threads and without checks of the clock."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(draining, "_GATHER_S", None))
        stack.enter_context(patch.object(draining, "ThreadPoolExecutor", _InPlace))
        stack.enter_context(patch.object(draining, "threading", SimpleNamespace(Event=Event, Thread=_NoThread)))
        stack.enter_context(patch.object(draining.Pace, "is_due", return_value=False))
        for module in (draining, crawler_module):  # after each nap a worker sees the whole queue
            stack.enter_context(patch.object(module, "_LONGEST_NAP_S", LONGEST_NAP_S))
        yield


class _InPlace(Executor):
    """Runs the tasks of one thread at once while the drain waits for it."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - as an executor does
            future.set_exception(error)
        return future


class _NoThread:
    """Replaces the thread that renews claims every 100 seconds, since no history lasts that long."""

    def __init__(self, **_: object) -> None: ...

    def start(self) -> None: ...

    def join(self) -> None: ...


class Following:
    """An index and a catalog that follows it."""

    def __init__(self, catalog: Catalog) -> None:
        self.now = 1_000_000.0
        self.index = ModelIndex(clock=lambda: self.now)
        self.catalog = replace(catalog, clock=lambda: self.now)
        empty_catalog(self.catalog)
        self.storage = open_storage("memory:///")
        self.has_baseline = False
        self.with_history = False
        self.revisits = 0.0
        self.is_respelled = False
        self.has_drifted = False
        self.reader = DumpReader()

    def step(self, name: str, arguments: dict[str, Any]) -> None:
        if self.has_baseline or name not in {"trouble", "allocate", "work_on_a_range", "follow", "try_again", "audit"}:
            getattr(self, name)(**arguments)
            if "plan" in arguments:
                self.require_exact()
                if self.has_baseline and arguments["plan"]["seed"] % 2:
                    self.require_dumps()

    # Operations on the index

    def begin(
        self,
        before: list[Operation],
        is_cached: bool,
        history: bool,
        racing: float,
        forgets: bool,
        revisits: float,
        plan: dict[str, Any],
    ) -> None:
        self.index.racing, self.index.forgets = racing, forgets
        self.revisits = revisits
        self.with_history = history
        self.happen(_by_their_times(before))
        self.index.is_cached = is_cached
        self.crawl_all(plan, history)

    def happen(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            self._happen(*operation)

    def _happen(self, kind: str, project: str, version: str | None, detail: Any) -> None:
        index = self.index
        match kind:
            case "event":
                index.record_event(project, version, detail)
            case "lag":
                index.record_event(project, version, detail, refreshes=False)
            case "odd-row":
                index.record_odd_row(project, detail)
            case "remove-user":
                index.remove_with_its_user(project)
            case "respell":
                self.is_respelled = True
                index.respell(project)
            case "drift":
                self.has_drifted = True
                index.drift(project, version or "", detail)
            case "add-many":
                index.page_rows = LARGEST
                index.add_many(project, version or "", detail)
            case "add-own":
                index.do("add", project, version, detail, own_release=True)
            case "add-anyway":
                index.do("add", project, version, detail, during_quarantine=True)
            case _:
                index.do(kind, project, version, detail)

    def trouble(self, failing: float, stale: list[str], absent: list[str], is_cached: bool) -> None:
        index = self.index
        index.failing, index.stale, index.absent, index.is_cached = failing, set(stale), set(absent), is_cached

    def heal(self) -> None:
        self.trouble(0.0, [], [], False)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    # Work of the catalog

    def crawl_all(self, plan: dict[str, Any], history: bool) -> None:
        if not self.has_baseline:  # the pages of the first crawl are the only source
            is_cached = self.index.is_cached
            self.heal()
            self.index.is_cached = is_cached
            history = self.with_history
        self._work(plan, lambda crawler: crawl_full(crawler, with_history=history))
        with self.catalog.read() as connection:
            self.has_baseline = last_completed_crawl(connection) is not None

    def allocate(self, range_events: int) -> None:
        failing, self.index.failing = self.index.failing, 0.0
        allocate_next_ranges(replace(self._crawler(self.catalog), range_events=range_events))
        self.index.failing = failing

    def work_on_a_range(self, plan: dict[str, Any], choice: int) -> None:
        with self.catalog.read() as connection:
            ranges = [entry.serials for entry in ledger(connection)]
        if len(ranges) > 1:
            serials = ranges[1 + choice % (len(ranges) - 1)]
            self._work(plan, lambda crawler: crawl_range(crawler, serials))

    def follow(self, plan: dict[str, Any]) -> None:
        self._work(plan, crawl_incremental)

    def try_again(self, plan: dict[str, Any]) -> None:
        self._work(plan, retry)

    def audit(self, plan: dict[str, Any], share: float) -> None:
        self._work(plan, lambda crawler: audit_index(crawler, share))

    def _work(self, plan: dict[str, Any], work: Callable[[Crawler], object]) -> None:
        index, moves, delivered = self.index, list(plan["moves"]), set(self.index.delivered)
        index.random = random.Random(plan["seed"])

        def move() -> None:
            if moves and index.random.random() < 0.15:
                self._happen(*moves.pop(0))

        def run(worker: Worker) -> None:
            def sleep(seconds: float) -> None:
                self.now += seconds
                worker.step()

            catalog = SteppedCatalog(self.catalog.engine, self.catalog.clock, step=worker.step)
            try:
                work(replace(self._crawler(catalog), sleep=sleep))
            except CatalogError as error:
                if "--with-history" not in str(error):
                    raise

        index.before_answer = move
        run_in_step([Worker(run, lifetime) for lifetime in plan["lifetimes"]], plan["order"], (TransientError,))
        index.before_answer = lambda: None
        # a killed or failed worker stored no pages, so only events can show their files
        by_pages = select(distributions.c.filename).where(distributions.c.page_serial.is_not(None))
        with self.catalog.read() as connection:
            index.delivered &= delivered | set(connection.scalars(by_pages))
        self.happen(moves)

    def _crawler(self, catalog: Catalog) -> Crawler:
        def sleep(seconds: float) -> None:
            self.now += seconds

        return Crawler(
            index=self.index,  # type: ignore[arg-type]
            catalog=catalog,
            storage=self.storage,
            readers=ModelReaders(),  # type: ignore[arg-type]
            connections=1,
            revisit_share=self.revisits,
            retry_deadline_s=DEADLINE_S if self.has_baseline else 1e9,
            sleep=sleep,
        )

    # Invariants

    def require_exact(self) -> None:
        """Check that the catalog equals the index at each exact serial up to the complete serial."""
        truth = self.index.truth
        with self.catalog.read() as connection:
            if last_completed_crawl(connection) is None:
                return
            assert not ledger_faults(connection)
            first, complete = read_state(connection)["exact_from"], complete_serial(connection)
            live = _spans(connection, live_intervals)
            yanked = _spans(connection, yanked_intervals)
            unknowable = self._unknowable(connection)
            unknown_yanks = self._yanked_unseen(connection)
            assert kept_statistics(connection) == derived_statistics(connection)
        for filename in sorted(truth.filenames() | live.keys()):
            if filename in unknowable:
                continue
            doubtful = truth.doubtful.get(filename)
            for found, expected, what in (
                (live, truth.live(filename), "live"),
                (yanked, truth.yanked(filename), "yanked"),
            ):
                if what == "yanked" and filename in unknown_yanks:
                    continue
                seen = within(found.get(filename, []), first, complete, without=doubtful)
                shown = within(expected, first, complete, without=doubtful)
                assert seen == shown, f"{filename} is {what} at {seen}, and should be at {shown}"
        if complete >= first:
            found_at = ((file.filename, file.yanked) for file in live_files(self.catalog, complete))
            self._require_shown(found_at, complete)

    def require_dumps(self) -> None:
        """Check that a full dump plus the dumps of all later ranges equals the index at their end."""
        if self.reader.go_on(self.catalog) and self.reader.serial is not None:
            rows = self.reader.rows.items()
            self._require_shown(((filename, bool(row["yanked"])) for filename, row in rows), self.reader.serial)

    def _require_shown(self, found: Iterable[tuple[str, bool]], serial: int) -> None:
        """Check the `(filename, is yanked)` pairs found live at `serial` against the index at that serial."""
        with self.catalog.read() as connection:
            left_out = self._unknowable(connection) | self.index.truth.doubtful.keys()
            unknown_yanks = self._yanked_unseen(connection)

        def compared(pairs: Iterable[tuple[str, bool]]) -> set[tuple[str, bool | None]]:
            return {(name, None if name in unknown_yanks else yanked) for name, yanked in pairs if name not in left_out}

        assert compared(found) == compared(self.index.truth.at(serial))

    def _unknowable(self, connection: Connection) -> set[str]:
        """Return the files that appear only in the complete changelog, since no page has shown them.

        They were added before the first stored event and are removed again, or they were added during an older
        quarantine. A page older than one already seen does not count. Until a replay of the changelog has ended, its
        events do not count either.
        """
        state = read_state(connection)
        first = state["exact_from"]
        since = max(state["events_since"], first)
        events = (event for event in self.index.state.changelog if event.serial <= since)
        unknowable = {name for event in events if (name := file_change(event).filename)}
        known = set(connection.scalars(select(distributions.c.filename))) - self.index.delivered_late
        unknowable -= known & {filename for filename, _ in self.index.shown[first]}
        unknowable |= {name for name, hidden_at in self.index.hidden_since.items() if hidden_at <= since}
        return unknowable - self.index.delivered

    def _yanked_unseen(self, connection: Connection) -> set[str]:
        """Return the files that no page has shown, of projects with a yank before the first stored event."""
        since = read_state(connection)["events_since"]
        events = self.index.state.changelog
        old = (event for event in events if event.serial <= since)
        yanking = {canonicalize_name(event.name) for event in old if event.action.endswith("yank release")}
        named = {file_change(event).filename for event in events if canonicalize_name(event.name) in yanking}
        return {name for name in named if name is not None} - self.index.delivered

    def settle(self) -> None:
        """End all faults, do all remaining work, and check the final state."""
        self.heal()
        self.index.racing = 0.0
        self.now += 2 * REFRESH_S
        crawler = self._crawler(self.catalog)
        with self.catalog.read() as connection:
            is_crawl_open = find_open_crawl(connection) is not None
        if is_crawl_open or not self.has_baseline:
            crawl_full(crawler)
            self.has_baseline = True
        crawl_incremental(self._crawler(self.catalog))
        retry(self._crawler(self.catalog))
        if self.is_respelled or self.has_drifted:
            with self.catalog.read() as connection:
                is_audit_open = find_open_audit(connection) is not None
            for _ in range(1 + is_audit_open):  # an open audit keeps its own list, which can be old, and its own share
                audit_index(self._crawler(self.catalog), 100.0)
            self._require_statuses()
            self.index.truth.is_seen(self.index.serial)
            self.index.do("add", "Alpha", "9.0", "alpha-9.0.tar.gz", during_quarantine=True)
            crawl_incremental(self._crawler(self.catalog))
        self.require_exact()
        self.require_rest()
        self.require_dumped()

    def require_rest(self) -> None:
        """Check that no work is left: all files that are live now are known and have been read."""
        now = self.index.truth.now()
        assert catalog_status(self.catalog).complete_serial == self.index.serial
        live = {file.filename: file for file in live_files(self.catalog)}
        assert {(file.filename, file.yanked) for file in live.values()} == self.index.shown[self.index.serial]
        with self.catalog.read() as connection:
            rows = connection.execute(
                select(distributions.c.filename, distributions.c.sha256, distribution_data.c.outcome).join(
                    distribution_data, distribution_data.c.distribution_id == distributions.c.id
                )
            ).all()
            self._require_names(connection)
        for filename, sha256, outcome in rows:
            if filename in live:
                expected = ReadOutcome.UNSUPPORTED if filename.endswith(".exe") else ReadOutcome.DATA
                assert (outcome, sha256 is not None) == (expected, True), filename
            elif filename in self.index.delivered:
                assert outcome in {ReadOutcome.DATA, ReadOutcome.UNSUPPORTED, ReadOutcome.VANISHED}, filename
        assert {name: file.version for name, file in live.items()} == {name: file.version for name, file in now.items()}
        with self.catalog.read() as connection:
            assert count_failed_visits(connection) == 0
            assert count_differences(connection) == {}
            self._require_unexplained(connection)

    def _require_unexplained(self, connection: Connection) -> None:
        """Check that unexplained changes still exist: a change that was explained later is logged with its event.

        A file can be added by an event and be missing from the page of the same serial.
        """
        columns = (changes.c.distribution_id, changes.c.serial, changes.c.cause)
        logged = {tuple(row) for row in connection.execute(select(*columns))}
        there = {(id_, serial) for id_, serial, cause in logged if cause not in {UNEXPLAINED, CORRECTED}}
        for table in (live_intervals, yanked_intervals):
            for row in connection.execute(select(table)):
                there |= {(row.distribution_id, row.start), (row.distribution_id, row.end)}
        unexplained = {(id_, serial) for id_, serial, cause in logged if cause == UNEXPLAINED}
        assert unexplained <= there, f"unexplained, though nothing changed there: {unexplained - there}"

    def _require_names(self, connection: Connection) -> None:
        displayed = {row.normalized: row.name for row in connection.execute(select(projects))}
        expected = {name: shown for name, shown in self._names().items() if name in displayed}
        found = {name: displayed[name] for name in expected}
        assert found == expected, f"{found} are displayed, and should be {expected}"

    def _names(self) -> dict[str, str]:
        """Return the names that the list of projects displays, by normalized name."""
        return {
            name: project.name
            for name, project in self.index.state.projects.items()
            if project.status != ProjectStatus.QUARANTINED  # which no list contains
        }

    def _require_statuses(self) -> None:
        """Check the statuses of all projects with files, which an audit has just visited."""
        with self.catalog.read() as connection:
            rows = connection.execute(select(projects.c.normalized, projects.c.status))
            found = {normalized: status for normalized, status in rows}
        known = {file.project for file in live_files(self.catalog)}
        expected = {
            name: project.status for name, project in self.index.state.projects.items() if project.name in known
        }
        assert {name: found[name] for name in expected} == expected

    def require_dumped(self) -> None:
        """Check that the rows of the dumps so far equal a new full dump, and that this dump is true."""
        if self.index.serial == 0:
            return  # an empty index cannot be dumped
        if name := next(iter(self.index.state.projects), None):  # the next range publishes late corrections
            self.index.record_event(name, None, "docupdate")
        else:
            self.index.do("add", "Alpha", "9.1", "alpha-9.1.tar.gz")
        crawl_incremental(self._crawler(self.catalog))
        self.require_exact()
        self.require_dumps()
        fresh = full_dump_of(self.catalog)
        for filename in sorted(self.reader.rows.keys() | fresh.keys()):
            kept, new = self.reader.rows.get(filename, {}), fresh.get(filename, {})
            different = {key: (kept.get(key), new.get(key)) for key in kept | new if kept.get(key) != new.get(key)}
            assert not different, f"the row of {filename} in the dumps of ranges and in a full dump: {different}"
        names = self._names()
        found = {filename: (row["project"], row["version"], row["yanked"]) for filename, row in fresh.items()}
        expected = {
            filename: (names[project], file.version, file.yanked)
            for project, file_names in ((name, self.index.truth.of_project(name)) for name in names)
            for filename, file in file_names.items()
        }
        assert found == expected


def _by_their_times(operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations with one release per spelling of a version up to the last `add-own` upload, as PyPI had
    until March 2018.
    """
    until = max((number for number, (kind, *_) in enumerate(operations) if kind == "add-own"), default=-1)
    return [
        ("add-own" if kind.startswith("add") and kind != "add-many" and number < until else kind, *rest)
        for number, (kind, *rest) in enumerate(operations)
    ]


def _spans(connection: Connection, table: Table) -> dict[str, Spans]:
    """Return the stored intervals of each file."""
    rows = connection.execute(
        select(distributions.c.filename, table.c.start, table.c.end).join(
            distributions, distributions.c.id == table.c.distribution_id
        )
    )
    found: dict[str, Spans] = {}
    for filename, start, end in rows:
        found.setdefault(filename, []).append((start, FOREVER if end is None else end))
    return {filename: joined(spans) for filename, spans in found.items()}
