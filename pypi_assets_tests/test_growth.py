"""The cost of a range, a tick or a status depends on what changed, and not on the age of the catalog.

The same work is done at the ages k and 4 k. It must execute the same statements and add the same rows, and no statement
may take more steps of SQLite. GROWTH_RANGES sets k.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from sqlalchemy import select

from pypi_assets.catalog import counters
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger import range_ledger
from pypi_assets.catalog.observed.projects import PROJECT_COLUMNS, CatalogProject
from pypi_assets.catalog.reports.catalog_status import catalog_status, work_done
from pypi_assets.catalog.reports.failures import count_failures
from pypi_assets.catalog.reports.next_visits import next_visits, next_visits_of
from pypi_assets.catalog.reports.range_states import range_statuses
from pypi_assets.catalog.reports.visit_log import VisitedState, projects_in_state
from pypi_assets.catalog.tables import projects
from pypi_assets.catalog.work.requested_visits import request_visits
from pypi_assets.crawl.draining import Pace
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges
from pypi_assets.crawl.requested import run_requested
from pypi_assets.crawl.scope_crawl import discover_all
from pypi_assets.dumps.cover import cover
from pypi_assets.upkeep.due import due_datasets, due_full_dump, due_ranges, due_scopes, what_is_due
from pypi_assets.upkeep.live_totals import live_totals
from pypi_assets.upkeep.old_partitions import shown_ranges, shown_versions
from pypi_assets_tests.growing_catalog import GrowingCatalog, GrowingScope
from pypi_assets_tests.kept_counts import require_right_counts
from pypi_assets_tests.measured_work import Work, measure

AGE = int(os.environ.get("GROWTH_RANGES", "16"))
LATER = 4 * AGE
NOISE = 40
"""Tolerated difference in steps of the same statement, because rows lie on different pages of the database."""

_NO_CHECKPOINT = "a small project has no checkpoint and is folded from its first event"
GROWING = {
    r"SELECT events\.project_id, events\.name": _NO_CHECKPOINT,
    r"SELECT sightings\.": _NO_CHECKPOINT,
    r"WITH RECURSIVE chain": _NO_CHECKPOINT + "; chains of other projects have at most 16 rows",
    r"SELECT distributions\.id, distributions\.project_id, distributions\.filename": _NO_CHECKPOINT
    + "; other projects only with a new file",
    r"SELECT (live|yanked)_intervals\.distribution_id": _NO_CHECKPOINT,
    r"SELECT changes\.id, changes\.distribution_id": _NO_CHECKPOINT + "; other projects only for changed files",
}
"""Statements that may take more steps on an older catalog, with the reason."""


_OF_SCOPES = "requirements of a project are stored since its scope was created or pruned"
GROWING_SCOPES = GROWING | {
    r"SELECT distributions\.id, distributions\.project_id, distributions\.kind": _OF_SCOPES,
    r"SELECT scope_edges\.": _OF_SCOPES,
    r"SELECT required_names\.": _OF_SCOPES,
}
"""The statements that may take more steps if scopes decide what is followed."""


def measured_at_both_ages(
    growing: GrowingCatalog, works: Mapping[str, Callable[[], object]]
) -> dict[str, tuple[Work, Work]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pace, "is_due", lambda _: False)  # periodic reports depend on the clock
        patch.setattr(counters, "_FOLDED_EVERY", 1)  # keeps the number of counter rows minimal
        patch.setattr(range_ledger, "CHECKED_RANGES", 5)
        measured = []
        for age in (AGE, LATER):
            growing.grow(age)
            measured.append({name: measure(growing.catalog, work) for name, work in works.items()})
        require_right_counts(growing.catalog)
        growing.catalog.close()
    return {name: (measured[0][name], measured[1][name]) for name in measured[0]}


def known_projects(catalog: Catalog) -> list[CatalogProject]:
    with catalog.read() as connection:
        rows = connection.execute(select(*PROJECT_COLUMNS).order_by(projects.c.id).limit(1)).all()
        return [CatalogProject(*row) for row in rows]


def kinds_of_work(growing: GrowingCatalog) -> dict[str, Callable[[], object]]:
    catalog, storage = growing.catalog, growing.storage

    def crawl(revisit_share: float = 0.0) -> None:
        growing.happen()
        growing.crawl(revisit_share=revisit_share)

    def tick() -> None:
        allocate_next_ranges(growing.follower.crawler)
        due_ranges(catalog)
        due_full_dump(catalog)
        due_datasets(catalog, storage, cover(catalog))
        shown_ranges(catalog, 1.0, after=growing.follower.index.serial)
        shown_versions(catalog, 1.0)

    def status() -> None:
        catalog_status(catalog)
        what_is_due(catalog, storage)
        live_totals(catalog)

    def metrics() -> None:
        with catalog.read() as connection:
            count_failures(connection)
            work_done(connection)

    def ranges() -> None:
        with catalog.read() as connection:
            range_statuses(connection, catalog.clock(), complete=1)

    def queue() -> None:
        with catalog.read() as connection:
            next_visits(connection, 10)
            next_visits_of(connection, "daily")

    def visited() -> None:
        with catalog.read() as connection:
            for state in VisitedState:
                projects_in_state(connection, state, 3)

    def requested() -> None:
        names = [project.normalized for project in known_projects(catalog)[:1]]
        catalog.transact(lambda connection: request_visits(connection, names, growing.follower.now))
        assert run_requested(growing.follower.crawler) == 1

    return {
        "a range": crawl,
        "a range with a revisit": lambda: crawl(100.0),
        "a tick of each sensor": tick,
        "a status": status,
        "a scrape": metrics,
        "the newest ranges": ranges,
        "the next visits": queue,
        "projects by the state of their visits": visited,
        "a requested visit": requested,
    }


def kinds_of_scopes(growing: GrowingCatalog) -> dict[str, Callable[[], object]]:
    works = kinds_of_work(growing)

    def tick() -> None:
        discover_all(growing.follower.crawler)
        due_scopes(growing.catalog)

    return {"a range": works["a range"], "a status": works["a status"], "a tick of scopes": tick}


@pytest.mark.nightly
def test_work_costs_the_same_at_any_age(tmp_path: Path, subtests: pytest.Subtests) -> None:
    growing = GrowingCatalog(tmp_path)
    require_same_work(measured_at_both_ages(growing, kinds_of_work(growing)), GROWING, subtests)


@pytest.mark.nightly
def test_work_with_scopes_costs_the_same_at_any_age(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """Follow a scope of some dozens of projects."""
    growing = GrowingScope(tmp_path)
    require_same_work(measured_at_both_ages(growing, kinds_of_scopes(growing)), GROWING_SCOPES, subtests)


def require_same_work(
    works: Mapping[str, tuple[Work, Work]], growing: Mapping[str, str], subtests: pytest.Subtests
) -> None:
    """Check that each kind of work takes the same statements and adds the same rows on the older catalog."""
    for kind, (young, old) in works.items():
        with subtests.test(kind=kind):
            assert old.statements <= young.statements
            assert old.added == young.added
            require_same_steps(young, old, growing)


def require_same_steps(young: Work, old: Work, growing: Mapping[str, str]) -> None:
    grown = {
        shortened(statement): (young.by_statement.get(statement, 0), steps)
        for statement, steps in old.by_statement.items()
        if steps > young.by_statement.get(statement, 0) * 1.2 + NOISE
    }
    unknown = {one: steps for one, steps in grown.items() if not any(re.match(allowed, one) for allowed in growing)}
    assert unknown == {}


def shortened(statement: str) -> str:
    """Return the statement in one line, with parameter lists of any length replaced by the same text."""
    return re.sub(r"\(\?(, \?)*\)", "(?)", " ".join(statement.split()))
