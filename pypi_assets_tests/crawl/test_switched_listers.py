"""A catalog that is followed by the changelog and by the list in turn equals one that always followed the changelog."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from pypi_assets.catalog.derived.file_history import LISTED, UNEXPLAINED
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC, inexact_spans
from pypi_assets.catalog.observed.projects import CORRECTED, load_projects
from pypi_assets.catalog.reports.project_history import VISIT, read_history
from pypi_assets.catalog.tables import changes, distributions, live_intervals, projects, yanked_intervals
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.listers import AUTO
from pypi_assets_tests.crawl.followers import REFUSED, Follower, add, follower, operations
from pypi_assets_tests.examples import examples

FAILING = "auto, and the changelog fails"
modes = st.sampled_from([XMLRPC, SIMPLE, AUTO, FAILING])
steps = st.lists(st.tuples(modes, st.lists(operations, max_size=6)), min_size=1, max_size=6)


def state_of(catalog_of: Follower) -> dict[str, Any]:
    """Return the intervals of all files, and the history of all projects, without visits and log entries."""
    with catalog_of.catalog.read() as connection:
        intervals = {
            table.name: {
                tuple(row)
                for row in connection.execute(
                    select(distributions.c.filename, table.c.start, table.c.end).join(
                        table, table.c.distribution_id == distributions.c.id
                    )
                )
            }
            for table in (live_intervals, yanked_intervals)
        }
        ids = list(connection.scalars(select(projects.c.id)))
        history = {
            (project.normalized, item.serial, item.at, item.kind, item.version, item.filenames, *files(item))
            for project in load_projects(connection, ids)
            for item in read_history(connection, project)
            if item.kind not in {VISIT, CORRECTED}
        }
        return intervals | {"history": history, "causes": causes(connection)}


def files(item: Any) -> tuple[Any, ...]:
    return item.live, item.away, item.yanked, item.unyanked


def causes(connection: Any) -> set[str]:
    return set(connection.scalars(select(changes.c.cause))) & {LISTED, UNEXPLAINED}


@pytest.mark.nightly
@settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
@given(before=st.lists(operations, max_size=6), history=steps, after=st.lists(operations, max_size=4))
def test_returning_to_the_changelog_after_lists_equals_following_it_always(before, history, after):
    always, switched = follower(XMLRPC), follower(AUTO)
    for one in (always, switched):
        for operation in before:
            one.index.happen(*operation)
        crawl_full(one.crawler)
    for mode, happens in history:
        for one in (always, switched):
            for operation in happens:
                one.index.happen(*operation)
        switched.lister = AUTO if mode == FAILING else mode
        switched.index.trouble = REFUSED if mode in {SIMPLE, FAILING} else None
        crawl_incremental(switched.crawler)
        crawl_incremental(always.crawler)
        assert switched.live() == always.live()
        switched.require_exact()
    switched.lister, switched.index.trouble = XMLRPC, None
    for one in (always, switched):
        for operation in after:
            one.index.happen(*operation)
        add(one.index, "delta", "9.0")
        crawl_incremental(one.crawler)
    assert state_of(switched) == state_of(always)
    with switched.catalog.read() as connection:
        assert inexact_spans(connection) == []
    assert all(switched.answerable(serial) for serial in range(switched.complete + 1) if always.answerable(serial))


def test_listed_change_is_replaced_by_its_event(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    crawl_full(auto.crawler)
    auto.lister, index.trouble = SIMPLE, REFUSED
    added = add(index, "demo", "2.0")
    own = index.serial
    index.record_event("demo", None, "docupdate")
    crawl_incremental(auto.crawler)
    with auto.catalog.read() as connection:
        assert causes(connection) == {LISTED}
    auto.lister, index.trouble = XMLRPC, None
    add(index, "demo", "3.0")
    crawl_incremental(auto.crawler)
    with auto.catalog.read() as connection:
        assert causes(connection) == set()
        [project] = load_projects(connection, list(connection.scalars(select(projects.c.id))))
        assert [item.serial for item in read_history(connection, project) if added in item.live] == [own]
