"""Rule 10: continuing a project from a checkpoint gives the same rows as folding it from scratch."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, insert, select

from pypi_assets.catalog.counters import read_counts
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.derived import recompute
from pypi_assets.catalog.derived.recompute import UNEXPLAINED_CHANGES
from pypi_assets.catalog.derived.visits import (
    VisitStatus,
    VisitVerdict,
    begin_visits,
    recompute_stored,
    record_verdicts,
)
from pypi_assets.catalog.observed.events import store_earlier_events, store_events
from pypi_assets.catalog.observed.projects import CatalogProject, Selection, enter_projects, find_project
from pypi_assets.catalog.tables import (
    catalog_state,
    changes,
    checkpoints,
    distribution_data,
    distributions,
    live_intervals,
    projects,
    read_queue,
    releases,
    yanked_intervals,
)
from pypi_assets.index.models import IndexFile, ProjectPage
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.postgres import new_database as database_on_template
from pypi_assets_tests.simulated_index import SimulatedIndex, operation_names

ALL = Selection()


@dataclass(frozen=True)
class Step:
    """A step of a history. It applies operations to the index, stores a share of the new changelog events and then sees
    a page, which can lag in serial and have newer content. `kind` is page, partial, gone, or none.
    """

    operations: tuple[tuple[str, str | None, str | None], ...]
    stored: int
    kind: str
    lag: int
    ahead: int
    facts: int
    drift: int


VISIT = Step((), stored=4, kind="page", lag=0, ahead=0, facts=0, drift=0)
"""All events are stored, and the page is seen as it is."""
RECOMPUTE = replace(VISIT, kind="none")

steps = st.builds(
    Step,
    st.lists(operation_names, max_size=4).map(tuple),
    st.sampled_from([4, 4, 4, 4, 3, 2, 0]),
    st.sampled_from(["page", "page", "page", "page", "page", "partial", "gone", "none"]),
    st.sampled_from([0, 0, 0, 0, 1, 2, 6, 20]),
    st.sampled_from([0, 0, 0, 1, 3]),
    st.sampled_from([0, 0, 0, 1, 2]),
    st.sampled_from([0, 0, 0, 0, 0, 1, 2]),
)


def file_of(name: str, is_yanked: bool, facts: int) -> IndexFile:
    """Return a file as a page shows it. `facts` selects its reason and, for some files, its hash."""
    digit = "b" if facts == 2 and name.endswith(".zip") else "a"
    reason = f"reason {facts}" if is_yanked else None
    return IndexFile(name, f"https://x.org/{name}", digit * 64, 1, None, f">={facts}", is_yanked, reason, False, None)


class Story:
    """A catalog in which the history of one project happens step by step."""

    def __init__(self, catalog: Catalog, index: SimulatedIndex, since: int) -> None:
        self.catalog, self.index, self.since, self.through = catalog, index, since, since
        state = {"events_since": since, "events_through": since, "exact_from": 0, "next_dump_sequence": 1}
        with catalog.write() as connection:
            connection.execute(insert(catalog_state).values(id=1, index_url="", **state))
            enter_projects(connection, [("Demo", since)])

    def take(self, step: Step, number: int) -> None:
        last = self.index.state.last_serial or 0
        until = self.through + (last - self.through) * step.stored // 4
        with self.catalog.write() as connection:
            if until > self.through:
                events = [event for event in self.index.events if self.through < event.serial <= until]
                store_events(connection, events, self.through, until)
                self.through = until
            if step.kind != "none":
                self._visit(connection, step, number)
            else:
                recompute_stored(connection, [self._project(connection).id])

    def _project(self, connection) -> CatalogProject:
        project = find_project(connection, "demo")
        assert project is not None
        return project

    def _visit(self, connection, step: Step, number: int) -> None:
        project = self._project(connection)
        [visit_id] = begin_visits(connection, [project.id], "full", f"range:0-{number}", 1.0).values()
        newest = max(self.index.shown)
        serial = max(newest - step.lag, 0)
        content = dict(self.index.shown[min(serial + step.ahead, newest)])
        if step.drift and content:  # a file is removed or yanked without an event
            name = sorted(content)[number % len(content)]
            content[name] = not content[name]
            if step.drift == 2:
                del content[name]
        files = tuple(file_of(name, yanked, step.facts) for name, yanked in content.items())
        page = ProjectPage("demo", serial, "active", files, versions=("1.0", "2.0") if step.facts else ())
        verdict = {
            "page": VisitVerdict(visit_id, project, VisitStatus.FULL, page),
            "partial": VisitVerdict(visit_id, project, VisitStatus.PARTIAL, page, text="stale"),
            "gone": VisitVerdict(visit_id, project, VisitStatus.NOT_FOUND, explained_at=serial if step.facts else None),
        }[step.kind]
        record_verdicts(connection, [verdict], float(number))

    def store_history(self) -> None:
        """Store the events from before the first crawl, in two pages."""
        for after, until in ((self.since // 2, self.since), (0, self.since // 2)):
            earlier = [event for event in self.index.events if after < event.serial <= until]
            store_earlier_events(self.catalog, earlier, after, until, ALL)
        self.since = 0

    def content(self) -> dict[str, list[tuple[object, ...]]]:
        """Return all rows that are derived for the project, without row ids, and the number of rows of each kind."""
        of_file = (distributions.c.filename,)
        joined = distributions.c.id
        facts = [column for column in distributions.c if column.name not in {"id", "project_id", "release_id"}]
        data = distribution_data.c
        queries = {
            "files": select(*facts, releases.c.version, data.outcome, data.error_kind)
            .join_from(distributions, releases)
            .join(distribution_data, data.distribution_id == joined),
            "changes": select(*of_file, changes.c.serial, changes.c.cause, changes.c.logged_serial).join_from(
                changes, distributions
            ),
            "queue": select(*of_file).join_from(read_queue, distributions),
            "project": select(projects.c.name, projects.c.page_serial, projects.c.status),
        }
        for table in (live_intervals, yanked_intervals):
            queries[table.name] = select(*of_file, table.c.start, table.c.end).join_from(table, distributions)
        with self.catalog.read() as connection:
            rows = {what: sorted(map(tuple, connection.execute(query)), key=repr) for what, query in queries.items()}
            return rows | {"counts": sorted(read_counts(connection).items())}

    def has_checkpoint(self) -> bool:
        with self.catalog.read() as connection:
            return bool(connection.scalar(select(func.count()).select_from(checkpoints)))


@contextmanager
def worth(work: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recompute, "_WORTH_A_CHECKPOINT", work)
        yield


def compare(
    subject: Catalog,
    reference: Catalog,
    before: Sequence[tuple[str, str | None, str | None]],
    taken: Sequence[Step],
    history: int,
) -> dict[str, list[tuple[object, ...]]]:
    """Apply the same steps to both catalogs and return the final rows of both.

    The subject uses checkpoints after each visit. The operations in `before` precede the first crawl; their events are
    stored in the step numbered `history`. The last step recomputes the stored rows.
    """
    index = SimulatedIndex()
    for operation in before:
        index.do(*operation)
    stories = [Story(catalog, index, index.state.last_serial or 0) for catalog in (subject, reference)]
    for number, step in enumerate((*taken, RECOMPUTE)):
        for operation in step.operations:
            index.do(*operation)
        for story, work in zip(stories, (0, 10**9), strict=True):
            with worth(work):
                if number == history and story.since:
                    story.store_history()
                story.take(step, number)
        found = [story.content() for story in stories]
        assert found[0] == found[1], (number, step)
    assert not stories[1].has_checkpoint()
    return found[0]


draws = {
    "before": st.sampled_from([0, 0, 3, 8]).flatmap(
        lambda size: st.lists(operation_names, min_size=size, max_size=size)
    ),
    "taken": st.lists(steps, min_size=4, max_size=14),
    "history": st.integers(0, 30),
}


WHEEL, ZIP = "demo-1.0-py3-none-any.whl", "demo-1.0.zip"
ADDED = ("add", "1.0", WHEEL)
STORIES: dict[str, tuple[list[tuple[str, str, str]], list[Step], int]] = {
    "without an event a file goes, and comes back, at the serial at which it was added": (
        [],
        [replace(VISIT, operations=(ADDED,)), replace(VISIT, drift=2), VISIT],
        0,
    ),
    "older events explain a change where it is, and a visit comes before they are applied": (
        [ADDED],
        [replace(VISIT, kind="gone"), VISIT, VISIT],
        2,
    ),
}
"""What happens before the first crawl, the steps, and the step in which older events are stored."""


@pytest.mark.parametrize("story", STORIES)
def test_change_explained_later_is_logged_and_counted_as_explained(tmp_path: Path, story: str) -> None:
    """A checkpoint may have settled the serial already: no fold from that checkpoint returns to it."""
    subject, reference = (open_catalog(sqlite_database(tmp_path / f"{name}.sqlite")) for name in "sr")
    rows = compare(subject, reference, *STORIES[story])
    assert rows["live_intervals"] == [(WHEEL, 4, None)]
    assert rows["changes"] == [(WHEEL, 4, "add file", 4)]
    assert UNEXPLAINED_CHANGES not in dict(rows["counts"])
    subject.close()
    reference.close()


@settings(
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(**draws)
@example(
    before=[],
    taken=[
        *(VISIT, replace(VISIT, operations=(("add", "2.0", "demo-2.0-py3-none-any.whl"),), stored=0)),
        replace(VISIT, operations=(("add", "1.0", ZIP), ("remove-file", "1.0", ZIP), ADDED), stored=3, kind="gone"),
        replace(VISIT, kind="gone", lag=2, facts=1),  # the page is the same at the same serial
    ],
    history=0,
)
@example(
    before=[],
    taken=[
        replace(VISIT, operations=(ADDED,)),
        # the event that explains the 404 is not stored yet
        replace(VISIT, operations=(("add", "1.0", "demo-1.0.tar.gz"),), stored=3, kind="gone", facts=1),
        replace(VISIT, stored=3, kind="gone"),  # the file was gone before that event
    ],
    history=0,
)
def test_rows_with_checkpoints_equal_rows_from_scratch(before, taken, history):
    with tempfile.TemporaryDirectory() as folder:
        subject, reference = (open_catalog(sqlite_database(Path(folder, f"{name}.sqlite"))) for name in "sr")
        try:
            compare(subject, reference, before, taken, history)
        finally:
            subject.close()
            reference.close()


@settings(max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck))
@given(**draws)
def test_rows_with_checkpoints_equal_rows_from_scratch_on_postgres(postgres_url, before, taken, history):
    with database_on_template(postgres_url, "migrated") as url, tempfile.TemporaryDirectory() as folder:
        subject, reference = open_catalog(url), open_catalog(sqlite_database(Path(folder, "reference.sqlite")))
        try:
            compare(subject, reference, before, taken, history)
        finally:
            subject.close()
            reference.close()
