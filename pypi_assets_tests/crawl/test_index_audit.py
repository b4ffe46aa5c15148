"""An audit finds changes without an event, counts them by cause, and corrects the catalog."""

from dataclasses import replace

import pytest
from sqlalchemy import func, select

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.derived.file_history import UNEXPLAINED
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.tables import projects, visits
from pypi_assets.catalog.work.audits import Drift, last_completed_audit
from pypi_assets.catalog.work.visit_queue import WorkloadProgress
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_incremental
from pypi_assets.crawl.index_audit import audit_index
from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.index.models import ListedProject
from pypi_assets_tests.crawl.followers import Follower, SilentIndex, add, wheel
from pypi_assets_tests.crawl.test_second_crawl import change_page, dumped, dumped_next
from pypi_assets_tests.served_index import ServedIndex, live, logged_changes


def found(follower: Follower, share_percent: float = 0.0) -> dict[str, list[str]]:
    """Run an audit, and return examples of the drift it finds, by cause."""
    follower.now += 1.0
    findings = audit_index(follower.crawler, share_percent).audit.findings
    assert {cause: len(examples) for cause, examples in findings.examples.items()} == findings.counts
    return findings.examples


def status_of(follower: Follower, name: str) -> str | None:
    with follower.catalog.read() as connection:
        project = find_project(connection, name)
        assert project is not None
        status: str | None = connection.execute(
            projects.select().with_only_columns(projects.c.status).where(projects.c.id == project.id)
        ).scalar()
        return status


def test_unchanged_index_and_pending_ranges_are_not_drift(auto: Follower) -> None:
    index = auto.index
    for name in ("one", "two", "three"):
        add(index, name)
    crawl_full(auto.crawler)
    assert found(auto) == {}
    add(index, "one", "2.0")
    index.do("remove-project", "two")
    add(index, "four")
    assert found(auto) == {}
    allocate_next_ranges(auto.crawler)
    assert found(auto) == {}
    crawl_incremental(auto.crawler)
    assert found(auto, 100.0) == {}
    assert auto.live() == index.shown[index.serial]


def test_list_older_than_the_catalog_is_not_drift(auto: Follower) -> None:
    index = auto.index
    add(index, "one")
    crawl_full(auto.crawler)
    with index.iter_listing() as (serial, listed):
        old = (serial, list(listed))
    add(index, "one", "2.0")
    add(index, "two")
    crawl_incremental(auto.crawler)
    index.listing = old
    assert found(auto, 100.0) == {}
    assert auto.live() == index.shown[index.serial]


@pytest.mark.nightly
def test_archived_project_is_found_by_a_visit_of_longest_unvisited(auto: Follower) -> None:
    index = auto.index
    for number in range(10):
        add(index, f"demo{number}")
    crawl_full(auto.crawler)
    index.do("archive", "demo3")
    assert found(auto) == {}
    seen = [cause for _ in range(10) for cause in found(auto, 10.0).items()]
    assert seen == [(Drift.STATUS_CHANGED, ["demo3"])]
    assert status_of(auto, "demo3") == "archived"
    index.do("unarchive", "demo3")
    assert found(auto, 100.0) == {Drift.STATUS_CHANGED: ["demo3"]}


@pytest.mark.nightly
def test_drift_is_counted_by_cause(index: ServedIndex, catalog: Catalog) -> None:
    """Pages and lists change without an event: the consequences are known, and appear in the next dump."""
    kept, gone = index.wheel("one", "1.0"), index.wheel("one", "2.0")
    index.wheel("two", "1.0")
    crawl_full(index.crawler(catalog))
    assert gone in dumped(catalog)
    change_page(index, "one", **{gone: None})
    assert audit_index(index.crawler(catalog), 0.0).audit.findings.counts == {}
    result = audit_index(index.crawler(catalog), 100.0)
    assert result.audit.findings.examples == {Drift.FILES_DIFFER: ["one"]}
    assert result.visits.done == 2
    assert logged_changes(catalog, "one")[-1][2] == UNEXPLAINED
    assert catalog_status(catalog).unexplained_changes == 1
    assert dumped_next(index, catalog)[gone]["tombstone"]
    assert (kept, False) in live(catalog)
    index.faults = None
    assert audit_index(index.crawler(catalog), 100.0).audit.findings.examples == {Drift.FILES_DIFFER: ["one"]}
    assert {name for name, _ in live(catalog)} == {name for name, _ in index.shown()}


@pytest.mark.nightly
def test_projects_on_one_side_only_are_drift(auto: Follower) -> None:
    index = auto.index
    for name in ("one", "two", "three"):
        add(index, name)
    index.withdrawn = {"three"}
    crawl_full(auto.crawler)
    index.withdrawn = {"two"}  # project one existed all the time
    assert found(auto) == {Drift.UNKNOWN_PROJECT: ["three"], Drift.NOT_LISTED: ["two"]}
    assert auto.live() == {(wheel("one", "1.0"), False), (wheel("three", "1.0"), False)}
    assert found(auto) == {}
    index.withdrawn = set()
    assert found(auto, 100.0) == {}  # its page has not changed since the catalog last saw one
    assert auto.live() == index.shown[index.serial]


def test_serials_that_differ_without_an_event_are_drift(auto: Follower) -> None:
    index = auto.index
    add(index, "one")
    add(index, "two")
    add(index, "three")
    crawl_full(auto.crawler)
    serial = index.page_serial("one")
    index.set_serial("one", serial + 1)
    index.set_serial("two", serial + 2)
    assert found(auto) == {Drift.SERIAL_AHEAD: ["one"], Drift.SERIAL_LAGS: ["two"]}


def test_stopped_audit_continues(auto: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    index = auto.index
    for number in range(6):
        add(index, f"demo{number}")
    crawl_full(auto.crawler)
    index.do("archive", "demo3")
    requested: list[str] = []

    def stop() -> None:
        requested.append("")
        if len(requested) == 4:
            raise KeyError

    index.before_answer = stop
    with pytest.raises(KeyError):
        audit_index(auto.crawler, 100.0)
    index.before_answer = lambda: None
    with auto.catalog.read() as connection:
        assert last_completed_audit(connection) is None
    result = audit_index(auto.crawler, 0.0)
    assert (result.audit.share_percent, result.visits.done) == (100.0, 6)
    assert result.audit.findings.examples == {Drift.STATUS_CHANGED: ["demo3"]}
    with auto.catalog.read() as connection:
        assert last_completed_audit(connection) == result.audit


@pytest.mark.nightly
def test_audit_works_without_a_changelog(auto: Follower) -> None:
    index = auto.index
    for name in ("one", "two"):
        add(index, name)
    crawl_full(auto.crawler)
    index.trouble = RefusedError("no changelog is served here", index.changelog_url)
    index.do("archive", "one")
    add(index, "two", "2.0")
    assert found(auto, 100.0) == {Drift.STATUS_CHANGED: ["one"]}
    crawl_incremental(auto.crawler)
    assert auto.live() == index.shown[index.serial]
    index.trouble = None
    add(index, "three")
    crawl_incremental(auto.crawler)
    auto.require_exact()


def test_audit_needs_a_following_catalog(auto: Follower) -> None:
    with pytest.raises(CatalogError, match="crawl full"):
        audit_index(auto.crawler, 5.0)


def test_second_process_of_an_audit_resets_no_finished_visit(auto: Follower) -> None:
    """Both processes compare the list. Before the second has compared it, the first completes the audit."""
    index = auto.index
    add(index, "one")
    add(index, "one", "2.0")
    crawl_full(auto.crawler)
    index.listing = index.serial, [ListedProject("one", 1)]  # from an old cache, so no visit ends the difference
    audits = []

    def run_first() -> None:
        index.before_answer = lambda: None
        audits.append(audit_index(auto.crawler, 0.0).audit)

    index.before_answer = run_first
    second = audit_index(auto.crawler, 0.0)
    assert audits[0].findings.examples == {Drift.SERIAL_LAGS: ["one"]}
    assert second.audit == audits[0]
    assert second.visits == WorkloadProgress(0, 0, 0)  # finished visits have left the queue
    with auto.catalog.read() as connection:
        assert last_completed_audit(connection) == audits[0]
        assert connection.scalar(select(func.count()).where(visits.c.kind == "audit")) == 1


def test_exhausted_visit_of_removed_project_ends_with_the_next_audit(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No later event and no range visits the project again."""
    follower = Follower(SilentIndex(), catalog)
    add(follower.index, "one")
    add(follower.index, "two")
    crawl_full(follower.crawler)
    crawler = replace(follower.crawler, retry_deadline_s=0.0)
    follower.index.do("remove-project", "one")
    with monkeypatch.context() as patch:

        def refuse(_: SilentIndex, project: str, **__: object) -> None:
            raise TransientError("HTTP 503", f"https://index.example.org/simple/{project}/")

        patch.setattr(SilentIndex, "project_page", refuse)
        crawl_incremental(crawler)
    assert catalog_status(catalog).failed_visits == 1
    audit_index(crawler, 0.0)
    assert catalog_status(catalog).failed_visits == 0
    follower.require_exact()
