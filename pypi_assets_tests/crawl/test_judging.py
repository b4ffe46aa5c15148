"""A batch of visits is judged in one transaction, with the same result as single visits, and isolated by project."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, select

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.derived.visits import begin_visits
from pypi_assets.catalog.observed.events import store_events
from pypi_assets.catalog.observed.projects import Selection, enter_projects
from pypi_assets.catalog.reports.failures import list_failures
from pypi_assets.catalog.tables import (
    changes,
    distribution_data,
    distributions,
    live_intervals,
    projects,
    releases,
    snapshots,
    visit_queue,
    visit_statuses,
    visits,
    yanked_intervals,
)
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets.catalog.work.visit_queue import VisitTask, claim_visits, queue_visits, workload_progress
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.judging import Fetched, _batches, judge
from pypi_assets.index.errors import NotOnIndexError, RefusedError, StaleError, TransientError
from pypi_assets.index.models import ChangelogEvent, IndexFile, NotModified, ProjectPage
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.simulated_index import SimulatedIndex, operation_names

URL = "https://index.example.org/simple/"
WORKLOAD = "range:0-1"


@dataclass
class Changelog:
    """The part of an index that judging needs: its changelog."""

    events: Sequence[ChangelogEvent] = ()
    last: int = 0
    index_url: str = URL
    changelog_url: str = "https://index.example.org/pypi"
    requested: list[int] = field(default_factory=list)
    is_off: bool = False

    def last_serial(self) -> int:
        if self.is_off:
            raise TransientError("HTTP 503", self.changelog_url)
        return self.last

    def changelog(self, since: int, until: int) -> Iterator[list[ChangelogEvent]]:
        self.requested.append(until)
        if page := [event for event in self.events if event.serial > since]:
            yield page


def crawler_of(catalog: Catalog, index: Changelog, retry_deadline_s: float = 0.0) -> Crawler:
    return Crawler(index, catalog, None, None, retry_deadline_s=retry_deadline_s)


def file_of(filename: str, *, yanked: bool = False, size: int = 1, content: str = "") -> IndexFile:
    url = f"https://files.example.org/{filename}"
    return IndexFile(
        filename, url, (filename + content).encode().hex()[:64], size, None, None, yanked, None, False, None
    )


def page_of(project: str, serial: int, *files: IndexFile) -> ProjectPage:
    return ProjectPage(project, serial, "active", files)


def begun(
    catalog: Catalog, names: Sequence[str], min_serial: int = 0, workload: str = WORKLOAD
) -> dict[str, tuple[VisitTask, int]]:
    """Enter the projects and begin their visits. Return the task and the visit id by normalized name."""
    with catalog.write() as connection:
        enter_projects(connection, [(name, 0) for name in names])
        rows = connection.execute(select(projects).where(projects.c.normalized.in_(names))).all()
        queue_visits(connection, workload, [(row.id, row.shard, min_serial) for row in rows])
        tasks = claim_visits(connection, workload, None, worker="one", now=1e12, until=2e12, limit=1_000)
        ids = begin_visits(connection, [task.project.id for task in tasks], "incremental", workload, 0.0)
    return {task.project.normalized: (task, ids[task.project.id]) for task in tasks}


def content(catalog: Catalog) -> dict[str, list[tuple[object, ...]]]:
    """Return all contents of the catalog, without row ids and times."""
    files = (
        select(
            projects.c.normalized,
            releases.c.version,
            distributions.c.filename,
            *[
                column
                for column in distributions.c
                if column.name not in {"id", "project_id", "release_id", "filename"}
            ],
            *[distribution_data.c[name] for name in ("outcome", "error_kind", "error_text")],
        )
        .join_from(distributions, releases)
        .join(projects, projects.c.id == distributions.c.project_id)
    )
    queries = {
        "files": files.join(distribution_data, distribution_data.c.distribution_id == distributions.c.id),
        "projects": select(projects.c.normalized, projects.c.page_serial, projects.c.status),
        "visits": select(
            projects.c.normalized,
            visits.c.visit,
            visits.c.workload,
            visit_statuses.c.status,
            visit_statuses.c.page_serial,
            visit_statuses.c.seen_through,
            snapshots.c.content,
            visit_statuses.c.text,
        )
        .join_from(projects, visits)
        .join(visit_statuses)
        .outerjoin(snapshots),
        "queue": select(
            projects.c.normalized,
            visit_queue.c.workload,
            visit_queue.c.state,
            visit_queue.c.attempts,
            visit_queue.c.error_text,
        ).join_from(visit_queue, projects),
        "changes": select(
            projects.c.normalized, distributions.c.filename, changes.c.serial, changes.c.cause, changes.c.logged_serial
        )
        .join_from(changes, distributions)
        .join(projects, projects.c.id == distributions.c.project_id),
    }
    for table in (live_intervals, yanked_intervals):
        queries[table.name] = (
            select(projects.c.normalized, distributions.c.filename, table.c.start, table.c.end)
            .join_from(table, distributions)
            .join(projects, projects.c.id == distributions.c.project_id)
        )
    with catalog.read() as connection:
        return {what: sorted(map(tuple, connection.execute(query)), key=repr) for what, query in queries.items()}


NUMBER = 3
answers = st.one_of(st.integers(0, 30), st.sampled_from([NotOnIndexError, TransientError, RefusedError, NotModified]))
"""What the index answers: the page as of that event of the project, or something else."""


@pytest.mark.nightly
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow])
@given(
    histories=st.lists(st.lists(operation_names, max_size=12), min_size=NUMBER, max_size=NUMBER),
    rounds=st.lists(
        st.dictionaries(st.integers(0, NUMBER - 1), st.tuples(answers, st.booleans()), min_size=1),
        min_size=1,
        max_size=4,
    ),
    patience_s=st.sampled_from([0.0, 60.0]),
    least=st.integers(0, 12),
    data=st.data(),
)
def test_batch_has_the_same_result_as_single_visits(histories, rounds, patience_s, least, data):
    indexes = [SimulatedIndex() for _ in histories]
    for index, history in zip(indexes, histories, strict=True):
        for operation in history:
            index.do(*operation)

    def serial_of(number: int, serial: int) -> int:
        """Interleave the events of the projects."""
        return serial * NUMBER + number

    events = [
        ChangelogEvent(f"demo-{number}", event.version, event.timestamp, event.action, serial_of(number, event.serial))
        for number, index in enumerate(indexes)
        for event in index.events
    ]
    events.sort(key=lambda event: event.serial)
    last = max([0, *(event.serial for event in events)])

    def answer_of(number: int, answer: object, changed: bool) -> object:
        if isinstance(answer, int):
            shown = indexes[number].shown
            serial = min(answer, max(shown))
            files = [file_of(name, yanked=yanked, content="2" * changed) for name, yanked in shown[serial].items()]
            return page_of(f"demo-{number}", serial_of(number, serial) if serial else 0, *files)
        return NotModified(None) if answer is NotModified else answer("it failed", URL)

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for together in (True, False):
            catalog = open_catalog(sqlite_database(Path(folder, f"{together}.sqlite")), clock=lambda: 1_000.0)
            open_crawl(catalog, 0, 0, URL, Selection())
            with catalog.write() as connection:
                store_events(connection, events, 0, last)
            crawler = crawler_of(catalog, Changelog(events, last), patience_s)
            for step, answered in enumerate(rounds):
                visits_of = begun(catalog, [f"demo-{number}" for number in answered], least, f"range:0-{step + 1}")
                fetched = [
                    Fetched(*visits_of[f"demo-{number}"], answer_of(number, *answer))
                    for number, answer in answered.items()
                ]
                for batch in [fetched] if together else [[one] for one in data.draw(st.permutations(fetched))]:
                    judge(crawler, batch)
            found.append(content(catalog))
            catalog.close()
    assert found[0] == found[1]


POISON = 2**70
"""The size of a file that no database can hold."""


def test_project_that_cannot_be_stored_fails_only_its_visit(catalog: Catalog):
    open_crawl(catalog, 0, 0, URL, Selection())
    names = ["bad", "fine", "good"]
    visits_of = begun(catalog, names)
    sizes = {"bad": POISON}
    pages = {name: page_of(name, 0, file_of(f"{name}-1.0.tar.gz", size=sizes.get(name, 1))) for name in names}
    judge(crawler_of(catalog, Changelog()), [Fetched(*visits_of[name], pages[name]) for name in names])
    with catalog.read() as connection:
        assert workload_progress(connection, WORKLOAD).done == 2
        [failure] = list_failures(connection, 50, "visit")
        assert set(connection.scalars(select(distributions.c.filename))) == {"fine-1.0.tar.gz", "good-1.0.tar.gz"}
    assert (failure.project, failure.outcome) == ("bad", "gave up")
    assert failure.text


def test_page_beyond_the_changelog_fails_only_its_visit(catalog: Catalog):
    open_crawl(catalog, 0, 0, URL, Selection())
    visits_of = begun(catalog, ["early", "far", "late"])
    events = [ChangelogEvent("early", None, 0, "create", 5), ChangelogEvent("late", None, 0, "create", 9)]
    index = Changelog(events, 9)
    serials = {"far": 10**9, "late": 9, "early": 5}
    judge(
        crawler_of(catalog, index, 60.0),
        [Fetched(*visits_of[name], page_of(name, serial)) for name, serial in serials.items()],
    )
    with catalog.read() as connection:
        assert workload_progress(connection, WORKLOAD).done == 2
        [failure] = list_failures(connection, 50, "visit")
    assert (failure.project, failure.outcome) == ("far", "waiting")
    assert mentions(failure.text, 9)
    assert index.requested[:2] == [5, 10**9]  # one changelog page has the events that the other projects need


@pytest.mark.parametrize("before", [(), ("",)], ids=["first visits", "second visits"])
def test_statements_do_not_grow_with_projects(catalog: Catalog, before: tuple[str, ...]):
    open_crawl(catalog, 0, 0, URL, Selection())
    crawler = crawler_of(catalog, Changelog())
    counts = []
    for number in (3, 60):
        names = [f"of{number}-{each}" for each in range(number)]
        for step, shown in enumerate([*before, "other"]):
            visits_of = begun(catalog, names, workload=f"range:0-{number + step}")
            pages = [page_of(name, 0, file_of(f"{name}-1.0.tar.gz", content=shown)) for name in names]
            fetched = [Fetched(*visits_of[page.project], page) for page in pages]
            with counted_statements(catalog) as statements:
                judge(crawler, fetched)
        counts.append(len(statements))
    assert counts[0] == counts[1] < 50


@contextmanager
def counted_statements(catalog: Catalog) -> Iterator[list[str]]:
    found: list[str] = []

    def note(_connection, _cursor, statement, *_):
        found.append(statement)

    event.listen(catalog.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(catalog.engine, "before_cursor_execute", note)


def judged_with(catalog: Catalog, action: str, *, since: int = 0) -> int:
    """Visit a project whose list entry has serial 7 and whose page has serial 5. Event 7 is `action`. Return the number
    of finished visits.
    """
    open_crawl(catalog, 0, since, URL, Selection())
    visits_of = begun(catalog, ["demo", "other"], 7)
    events = [ChangelogEvent("demo", None, 0, "create", 5), ChangelogEvent("demo", "1.0", 0, action, 7)]
    with catalog.write() as connection:
        store_events(connection, [one for one in events if one.serial > since], since, 9)
    page = page_of("demo", 5, file_of("demo-1.0.tar.gz"))
    judge(crawler_of(catalog, Changelog(events, 9), 60.0), [Fetched(*visits_of["demo"], page)])
    with catalog.read() as connection:
        return workload_progress(connection, WORKLOAD).done


def test_page_that_no_event_refreshes_is_not_awaited(catalog: Catalog):
    """A role changed at serial 7, which leaves the page at serial 5 for up to a day."""
    assert judged_with(catalog, "add Owner someone") == 1
    with catalog.read() as connection:
        assert connection.scalar(select(live_intervals.c.end)) is None
        assert connection.scalar(select(projects.c.page_serial).where(projects.c.name == "demo")) == 5


def test_page_that_an_event_changes_is_awaited(catalog: Catalog):
    assert judged_with(catalog, "add source file demo-1.0.zip") == 0
    with catalog.read() as connection:
        [failure] = list_failures(connection, 50, "visit")
    assert failure.outcome == "waiting"


def test_page_is_awaited_if_events_in_between_are_missing(catalog: Catalog):
    assert judged_with(catalog, "add Owner someone", since=6) == 0


RACE = [
    ChangelogEvent("demo", "1.0", 0, "add source file demo-1.0.zip", 3),
    ChangelogEvent("other", "1.0", 0, "add source file other-1.0.zip", 4),
    ChangelogEvent("demo", "2.0", 0, "add source file demo-2.0.zip", 7),
]


def judge_race(catalog: Catalog, index: Changelog, unexplained: Sequence[str], patience_s: float = 60.0) -> None:
    """Visit two projects twice. In the second visit the pages of `unexplained` have newer content at the same serial.
    The events up to serial 5 are stored.
    """
    open_crawl(catalog, 0, 0, URL, Selection())
    with catalog.write() as connection:
        store_events(connection, RACE[:2], 0, 5)
    for workload, newer in (("range:5-6", ()), (WORKLOAD, unexplained)):
        visits_of = begun(catalog, ["demo", "other"], workload=workload)
        fetched = []
        for added in RACE[:2]:
            names = [f"{added.name}-1.0.zip", *([f"{added.name}-2.0.zip"] if added.name in newer else [])]
            page = page_of(added.name, added.serial, *map(file_of, names))
            fetched.append(Fetched(*visits_of[added.name], page))
        judge(crawler_of(catalog, index, patience_s), fetched)


def test_page_newer_than_its_serial_is_judged_by_all_events(catalog: Catalog):
    """Changes with a later event count from that event. Unexplained changes count from the page."""
    index = Changelog(RACE, 9)
    judge_race(catalog, index, ["demo", "other"])
    query = select(distributions.c.filename, changes.c.serial, changes.c.cause)
    with catalog.read() as connection:
        rows = connection.execute(query.join(changes, changes.c.distribution_id == distributions.c.id))
        found = {filename: (serial, cause) for filename, serial, cause in rows}
        assert workload_progress(connection, WORKLOAD).done == 2
    assert found["demo-2.0.zip"] == (7, "add file")
    assert found["other-2.0.zip"][1] == "unexplained"
    assert index.requested == [9, 9]  # one request for both, and one that returns no more events


@pytest.mark.parametrize("patience_s", [60.0, 0.0])
def test_unexplained_page_waits_for_the_changelog(catalog: Catalog, patience_s: float):
    judge_race(catalog, Changelog(RACE, 9, is_off=True), ["demo"], patience_s)
    with catalog.read() as connection:
        assert workload_progress(connection, WORKLOAD).done == 1
        [failure] = list_failures(connection, 50, "visit")
    assert (failure.project, failure.outcome) == ("demo", "waiting" if patience_s else "gave up")
    assert "HTTP 503" in failure.text


def test_404_is_retried_or_believed_whenever_the_deadline_passes(catalog: Catalog):
    """The deadline may pass while the visit is judged: a second 404 in a row is never a failure."""
    open_crawl(catalog, 0, 0, URL, Selection())
    outcomes = []
    for readings in range(8):
        name = f"demo-{readings}"
        [(task, visit_id)] = begun(catalog, [name], 1, f"range:0-{readings}").values()
        times = iter([99.0] * readings)
        crawler = crawler_of(replace(catalog, clock=lambda times=times: next(times, 101.0)), Changelog(), 100.0)
        again = replace(task, was_gone=True, attempts=1, first_failed_at=0.0)
        judge(crawler, [Fetched(again, visit_id, NotOnIndexError("HTTP 404", URL))])
        with catalog.read() as connection:
            outcomes.append(
                [failure.outcome for failure in list_failures(connection, 50, "visit") if failure.project == name]
            )
    assert outcomes[0] == []
    assert outcomes[-1] == ["waiting"]
    assert all(outcome in ([], ["waiting"]) for outcome in outcomes)


def test_page_that_fails_for_long_is_abandoned_unless_the_index_fails(catalog: Catalog):
    open_crawl(catalog, 0, 0, URL, Selection())
    cases = [
        (TransientError("HTTP 500", URL), "gave up"),
        (TransientError("HTTP 503", URL, 30.0), "waiting"),  # the index asks for a pause
        (StaleError("an old page", URL), "waiting"),
    ]
    for number, (error, outcome) in enumerate(cases):
        [(task, visit_id)] = begun(catalog, [f"demo-{number}"], 1, f"range:0-{number}").values()
        again = replace(task, attempts=5, first_failed_at=catalog.clock())
        judge(crawler_of(catalog, Changelog(), 3600.0), [Fetched(again, visit_id, error)])
        with catalog.read() as connection:
            found = {failure.project: failure.outcome for failure in list_failures(connection, 50, "visit")}
        assert found[f"demo-{number}"] == outcome


def test_batch_is_bounded_by_the_files_of_its_pages():
    def fetched(number: int, files: int) -> Fetched:
        page = page_of("demo", 1, *[file_of(f"demo-{number}.{each}.zip") for each in range(files)])
        return Fetched(VisitTask.__new__(VisitTask), number, page)

    visits = [fetched(number, files) for number, files in enumerate([3_000, 1_900, 100, 9_000, *[0] * 400])]
    batches = [[one.visit_id for one in batch] for batch in _batches(visits)]
    assert batches == [[0, 1], [2], [3], [*range(4, 254)], [*range(254, 404)]]
