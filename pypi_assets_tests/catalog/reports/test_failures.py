"""Failures: listed by project and file, grouped by kind, and counted."""

from pathlib import Path

from sqlalchemy import select

from pypi_assets.catalog.coordination.claims import WORKER_DIED
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.read_outcomes import FinishedRead, ReadOutcome
from pypi_assets.catalog.reports.failures import (
    VISIT,
    WAITING,
    RecordedFailure,
    count_failed_visits,
    count_failures,
    failed_reads_of_range,
    failed_reads_of_shard,
    group_failures,
    list_failures,
)
from pypi_assets.catalog.tables import distributions, projects
from pypi_assets.catalog.work.read_queue import claim_reads, finish_reads
from pypi_assets.catalog.work.visit_queue import TaskState, claim_visits, finish_visits, postpone_visits
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets_tests.catalog.claimed_queues import Reads, Visits
from pypi_assets_tests.served_index import served_index


def failed(catalog: Catalog) -> tuple[str, list[str]]:
    """Finish four reads and two visits with failures. Return the project of the reads and the visited projects."""
    reads, visits = Reads(catalog, 5), Visits(catalog, 3)
    with catalog.write() as connection:
        claimed = claim_reads(connection, reads.workload, None, worker="one", now=1.0, until=9.0, limit=5)
        ids = [read.distribution_id for read in claimed]
        finished = [
            FinishedRead(ids[0], ReadOutcome.ERROR, error_kind="corrupt archive", error_text="no zip"),
            FinishedRead(ids[1], ReadOutcome.EXHAUSTED, error_kind="transient", error_text="503"),
            FinishedRead(ids[2], ReadOutcome.PENDING, error_kind="transient", error_text="504", due_at=70.0),
            FinishedRead(ids[3], ReadOutcome.EXHAUSTED),
            FinishedRead(ids[4], ReadOutcome.UNSUPPORTED, error_kind="unsupported kind"),
        ]
        finish_reads(connection, finished, "one", 1.0)
        tasks = claim_visits(connection, visits.workload, None, worker="one", now=1.0, until=9.0, limit=3)
        finish_visits(connection, [(tasks[0], TaskState.EXHAUSTED, "500"), (tasks[1], TaskState.DONE, None)])
        postpone_visits(connection, 1.0, [(tasks[2], 80.0, "502", False)])
        columns = select(projects.c.name).join(distributions, distributions.c.project_id == projects.c.id)
        name = connection.scalar(columns.where(distributions.c.id == ids[0]))
    return str(name), [tasks[0].project.name, tasks[2].project.name]


def test_failures_are_listed_with_remaining_attempts(catalog: Catalog):
    name, visited = failed(catalog)
    with catalog.read() as connection:
        found = list(list_failures(connection, 4))
    assert found == [
        RecordedFailure(name, "file0", "error", "corrupt archive", "no zip", 1, 0, None),
        RecordedFailure(name, "file1", "gave up", "transient", "503", 1, 0, None),
        RecordedFailure(name, "file2", WAITING, "transient", "504", 1, 3, 70.0),
        RecordedFailure(name, "file3", "gave up", WORKER_DIED, "", 1, 0, None),
        *sorted(
            [
                RecordedFailure(visited[0], "", "gave up", VISIT, "500", 1, 0, None),
                RecordedFailure(visited[1], "", WAITING, VISIT, "502", 1, 3, 80.0),
            ],
            key=lambda failure: failure.project,
        ),
    ]


def test_failures_can_be_filtered_by_kind_or_project(catalog: Catalog):
    name, visited = failed(catalog)
    with catalog.read() as connection:
        everything = list(list_failures(connection, 4))
        for kind in {failure.kind for failure in everything}:
            assert list(list_failures(connection, 4, kind)) == [
                failure for failure in everything if failure.kind == kind
            ]
        for project in (name, *visited, "unknown"):
            expected = [failure for failure in everything if failure.project == project]
            assert list(list_failures(connection, 4, normalized=project)) == expected


def test_finished_visit_with_a_remark_is_not_a_failure(catalog: Catalog):
    visits = Visits(catalog, 1)
    with catalog.write() as connection:
        [task] = claim_visits(connection, visits.workload, None, worker="one", now=1.0, until=9.0, limit=1)
        finish_visits(connection, [(task, TaskState.DONE, "removed since it was listed")])
        assert list(list_failures(connection, 4)) == []


def test_groups_are_ordered_by_frequency_and_counts_omit_waiting_work(catalog: Catalog):
    failed(catalog)
    with catalog.read() as connection:
        groups = group_failures(list_failures(connection, 4))
        counted = count_failures(connection)
        exhausted = count_failures(connection, only_exhausted=True)
        assert count_failed_visits(connection) == 1
    assert [(group.kind, group.count) for group in groups] == [
        ("transient", 2),
        (VISIT, 2),
        ("corrupt archive", 1),
        (WORKER_DIED, 1),
    ]
    assert groups[0].outcomes == {"gave up": 1, WAITING: 1}
    assert counted == {"corrupt archive": 1, "transient": 1, WORKER_DIED: 1, VISIT: 1}
    assert exhausted == {"transient": 1, WORKER_DIED: 1, VISIT: 1}


def test_group_shows_a_few_examples():
    failures = [
        RecordedFailure("demo", f"file{number}", "error", "wrong content", "", 1, 0, None) for number in range(9)
    ]
    [group] = group_failures(failures)
    assert (group.count, group.examples) == (9, failures[:3])


def test_failures_of_a_range_cover_files_changed_in_it(catalog: Catalog, tmp_path: Path) -> None:
    with served_index(tmp_path / "served") as index:
        index.raw("older-1.0-py3-none-any.whl", b"no zip")
        crawler = index.crawler(catalog)
        crawl_full(crawler)
        index.raw("zulu-1.0-py3-none-any.whl", b"no zip")
        index.wheel("fine", "1.0")
        index.raw("alpha-1.0-py3-none-any.whl", b"no zip")
        [result] = crawl_incremental(crawler)
        with catalog.read() as connection:
            found = failed_reads_of_range(connection, result.serials, 50)
            shard = connection.scalar(select(projects.c.shard).where(projects.c.name == "older"))
            assert shard is not None
            [older] = failed_reads_of_shard(connection, shard, 50, 9)
            assert failed_reads_of_shard(connection, shard, 50, 0) == []
    assert [failure.project for failure in found] == ["alpha", "zulu"]
    assert {(failure.kind, failure.attempts) for failure in found} == {("corrupt archive", 1)}
    assert older.filename == "older-1.0-py3-none-any.whl"
