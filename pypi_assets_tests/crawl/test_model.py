"""Whatever happens on the index, and in whatever order, with whatever kills and troubles it is followed: the catalog
equals the index at each complete serial.

MODEL_HISTORIES sets how many histories are tried on SQLite; on PostgreSQL a tenth of them.
"""

import os
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from packaging.utils import canonicalize_name
from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial, ledger, read_state
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.reports.ledger_faults import ledger_faults
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.catalog.tables import distribution_data, distributions
from pypi_assets.catalog.work.full_crawls import find_open_crawl, last_completed_crawl
from pypi_assets.crawl import draining
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_incremental, crawl_range
from pypi_assets.crawl.retry_failures import retry
from pypi_assets.index.actions import file_change
from pypi_assets.index.errors import TransientError
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.crawl.followers import empty_catalog
from pypi_assets_tests.derived_statistics import derived_statistics, kept_statistics
from pypi_assets_tests.model_index import ModelIndex, ModelReaders
from pypi_assets_tests.workers_in_step import SteppedCatalog, Worker, run_in_step

HISTORIES = int(os.environ.get("MODEL_HISTORIES", "100"))
PHASES = (Phase.explicit, Phase.generate)
PROJECTS = ("Alpha", "beta.pkg", "gamma")
VERSIONS = ("1.0", "2.0", "3.0")
DEADLINE_S = 1_000.0
LEASE_S = 300.0


def _file(project: str, version: str, ending: str) -> str:
    return f"{canonicalize_name(project).replace('-', '_')}-{version}{ending}"


operations = st.one_of(
    st.builds(
        lambda project, version, ending: ("add", project, version, _file(project, version, ending)),
        st.sampled_from(PROJECTS),
        st.sampled_from(VERSIONS),
        st.sampled_from(["-py3-none-any.whl", "-py2-none-any.whl", ".tar.gz", ".zip", "-py3.8.egg", ".exe"]),
    ),
    st.builds(
        lambda project, version, ending: ("remove-file", project, version, _file(project, version, ending)),
        st.sampled_from(PROJECTS),
        st.sampled_from(VERSIONS),
        st.sampled_from(["-py3-none-any.whl", ".tar.gz"]),
    ),
    st.tuples(
        st.sampled_from(["remove-release", "yank", "unyank", "quarantine-release", "unquarantine-release"]),
        st.sampled_from(PROJECTS),
        st.sampled_from(VERSIONS),
        st.none(),
    ),
    st.tuples(
        st.sampled_from(["remove-project", "quarantine", "unquarantine", "archive", "unarchive"]),
        st.sampled_from(PROJECTS),
        st.none(),
        st.none(),
    ),
    st.tuples(
        st.sampled_from(
            ["event:add Owner somebody", "event:rename from Other", "event:docupdate", "event:an unknown action"]
        ),
        st.sampled_from(PROJECTS),
        st.none(),
        st.none(),
    ),
)
plans = st.fixed_dictionaries(
    {
        "lifetimes": st.lists(st.one_of(st.none(), st.integers(0, 60)), min_size=1, max_size=3),
        "order": st.lists(st.integers(0, 2), max_size=40),
        "moves": st.lists(operations, max_size=4),
        "seed": st.integers(0, 2**16),
    }
)
"""How work is done: after how many steps each worker is killed, whose turn it is, and what the index does meanwhile."""


class Following(RuleBasedStateMachine):
    """An index, and a catalog that follows it."""

    opened: Catalog

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000.0
        self.index = ModelIndex()
        self.catalog = replace(self.opened, clock=lambda: self.now)
        empty_catalog(self.catalog)
        self.storage = open_storage("memory:///")
        self.with_history = False
        self.has_baseline = False
        self.has_changed = True
        self.is_settled = False

    def teardown(self) -> None:
        self._settle()

    # What the index does

    @initialize(before=st.lists(operations, max_size=12), is_cached=st.booleans(), history=st.booleans(), plan=plans)
    def begin(self, before: list[Any], is_cached: bool, history: bool, plan: dict[str, Any]) -> None:
        self.with_history = history
        for operation in before:
            self._happen(operation)
        self.index.is_cached = is_cached
        self.crawl_all(plan)

    @rule(happens=st.lists(operations, min_size=1, max_size=6))
    def happen(self, happens: list[Any]) -> None:
        for operation in happens:
            self._happen(operation)

    def _happen(self, operation: Any) -> None:
        kind, project, version, filename = operation
        if kind.startswith("event:"):
            self.index.record_event(project, version, kind.removeprefix("event:"))
        else:
            self.index.do(kind, project, version, filename)

    @precondition(lambda self: self.has_baseline)
    @rule(
        failing=st.sampled_from([0.0, 0.1, 0.3]),
        stale=st.sets(st.sampled_from(["alpha", "beta-pkg", "gamma"])),
        absent=st.sets(st.sampled_from(["alpha", "beta-pkg", "gamma"]), max_size=1),
        is_cached=st.booleans(),
        forgets=st.booleans(),
    )
    def trouble(self, failing: float, stale: set[str], absent: set[str], is_cached: bool, forgets: bool) -> None:
        index = self.index
        index.failing, index.stale, index.absent, index.is_cached = failing, set(stale), set(absent), is_cached
        index.forgets = forgets

    @rule()
    def heal(self) -> None:
        index = self.index
        index.failing, index.stale, index.absent, index.is_cached = 0.0, set(), set(), False

    @rule(seconds=st.sampled_from([1.0, LEASE_S, 2 * DEADLINE_S]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    # What is done

    @rule(plan=plans)
    def crawl_all(self, plan: dict[str, Any]) -> None:
        if not self.has_baseline:  # its pages are the only source
            is_cached = self.index.is_cached
            self.heal()
            self.index.is_cached = is_cached
        self._work(plan, self._crawl_full)
        with self.catalog.read() as connection:
            self.has_baseline = last_completed_crawl(connection) is not None

    def _crawl_full(self, crawler: Crawler) -> None:
        crawl_full(crawler, with_history=self.with_history and not self.has_baseline)

    @precondition(lambda self: self.has_baseline)
    @rule(range_events=st.integers(1, 6))
    def allocate(self, range_events: int) -> None:
        failing, self.index.failing = self.index.failing, 0.0
        allocate_next_ranges(replace(self._crawler(self.catalog), range_events=range_events))
        self.index.failing = failing

    @precondition(lambda self: self.has_baseline)
    @rule(plan=plans, choice=st.integers(0, 1_000))
    def work_on_a_range(self, plan: dict[str, Any], choice: int) -> None:
        with self.catalog.read() as connection:
            ranges = [entry.serials for entry in ledger(connection)]
        if len(ranges) > 1:
            serials = ranges[1 + choice % (len(ranges) - 1)]
            self._work(plan, lambda crawler: crawl_range(crawler, serials))

    @precondition(lambda self: self.has_baseline)
    @rule(plan=plans)
    def try_again(self, plan: dict[str, Any]) -> None:
        self._work(plan, retry)

    def _work(self, plan: dict[str, Any], work: Callable[[Crawler], object]) -> None:
        self.has_changed = True
        index, moves = self.index, list(plan["moves"])
        index.random = random.Random(plan["seed"])

        def move() -> None:
            if moves and index.random.random() < 0.15:
                self._happen(moves.pop(0))

        def run(worker: Worker) -> None:
            def sleep(seconds: float) -> None:
                self.now += seconds
                worker.step()

            catalog = SteppedCatalog(self.catalog.engine, self.catalog.clock, step=worker.step)
            work(replace(self._crawler(catalog), sleep=sleep))

        index.before_answer = move
        lifetimes = plan["lifetimes"]
        run_in_step([Worker(run, lifetime) for lifetime in lifetimes], plan["order"], (TransientError,))
        index.before_answer = lambda: None
        for operation in moves:
            self._happen(operation)

    def _crawler(self, catalog: Catalog) -> Crawler:
        def sleep(seconds: float) -> None:
            self.now += seconds

        return Crawler(
            index=self.index,  # type: ignore[arg-type]
            catalog=catalog,
            storage=self.storage,
            readers=ModelReaders(),  # type: ignore[arg-type]
            connections=1,
            revisit_share=50.0,
            retry_deadline_s=DEADLINE_S if self.has_baseline else 1e9,
            sleep=sleep,
        )

    # What must hold

    @invariant()
    def exact_at_each_complete_serial(self) -> None:
        if not self.has_changed:
            return
        self.has_changed = False
        with self.catalog.read() as connection:
            if last_completed_crawl(connection) is None:
                return
            assert not ledger_faults(connection)
            exact_from, complete = read_state(connection)["exact_from"], complete_serial(connection)
            ends = [entry.serials.end for entry in ledger(connection)]
            unknowable = self._unknowable(read_state(connection)["events_since"], exact_from)
            unknowable -= set(connection.scalars(select(distributions.c.filename)))
            assert kept_statistics(connection) == derived_statistics(connection)
        for serial in self.index.shown if self.is_settled else ends:
            if exact_from <= serial <= complete:
                found = {(file.filename, file.yanked) for file in live_files(self.catalog, serial)}
                expected = {
                    (filename, yanked) for filename, yanked in self.index.shown[serial] if filename not in unknowable
                }
                assert found == expected, f"at serial {serial}"

    def _unknowable(self, events_since: int, exact_from: int) -> set[str]:
        """Files that were added before the stored events and hidden by a quarantine when the catalog began: where they
        are gone again before a page could show them, they are in the whole changelog alone."""
        added = {file_change(event).filename for event in self.index.state.changelog if event.serial <= events_since}
        return {name for name in added if name} - {filename for filename, _ in self.index.shown[exact_from]}

    def _settle(self) -> None:
        """In the end all is well again, and what was left undone is done."""
        self.has_changed = self.is_settled = True
        self.heal()
        self.now += 2 * DEADLINE_S
        crawler = self._crawler(self.catalog)
        with self.catalog.read() as connection:
            is_crawl_open = find_open_crawl(connection) is not None
        if is_crawl_open or not self.has_baseline:
            self._crawl_full(crawler)
            self.has_baseline = True
        crawl_incremental(self._crawler(self.catalog))
        retry(self._crawler(self.catalog))
        self.exact_at_each_complete_serial()
        assert catalog_status(self.catalog).complete_serial == self.index.serial
        assert {(file.filename, file.yanked) for file in live_files(self.catalog)} == self.index.shown[
            self.index.serial
        ]
        live = {file.filename for file in live_files(self.catalog)}
        with self.catalog.read() as connection:
            rows = connection.execute(
                select(distributions.c.filename, distributions.c.sha256, distribution_data.c.outcome).join(
                    distribution_data, distribution_data.c.distribution_id == distributions.c.id
                )
            ).all()
        for filename, sha256, outcome in rows:
            if filename in live:
                expected = Outcome.UNSUPPORTED if filename.endswith(".exe") else Outcome.DATA
                assert (outcome, sha256 is not None) == (expected, True), filename
            else:
                assert outcome in {Outcome.DATA, Outcome.UNSUPPORTED, Outcome.VANISHED}, filename


def _check(catalog: Catalog, histories: int) -> None:
    """What happens depends on what is drawn alone, not on how long anything takes."""
    machine = type("Following", (Following,), {"opened": catalog})
    machine.TestCase.settings = settings(
        max_examples=histories,
        stateful_step_count=12,
        suppress_health_check=list(HealthCheck),
        phases=PHASES,
        deadline=None,
    )
    with patch.object(draining, "_GATHER_S", None), patch.object(draining.Pace, "is_due", return_value=False):
        machine.TestCase().runTest()


def test_every_history(catalog: Catalog) -> None:
    _check(catalog, HISTORIES if catalog.is_sqlite else max(HISTORIES // 10, 1))
