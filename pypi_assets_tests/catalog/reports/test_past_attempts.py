"""All attempts of a file or page: in the log, under way, and known to be deleted."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select, update

from pypi_assets.catalog.coordination.claims import WORKER_DIED
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.visits import ABANDONED_VISIT, VisitStatus, VisitVerdict, begin_visits, record_verdicts
from pypi_assets.catalog.observed.projects import load_projects
from pypi_assets.catalog.reads.read_outcomes import FinishedRead, ReadOutcome
from pypi_assets.catalog.reports.past_attempts import AttemptedItem, LoggedAttempt, attempted_items
from pypi_assets.catalog.tables import distributions, past_generations, projects, read_attempts, visit_statuses
from pypi_assets.catalog.work.read_queue import finish_reads, queue_reads
from pypi_assets.catalog.work.visit_queue import TaskState, claim_visits, finish_visits, postpone_visits
from pypi_assets.index.models import ProjectPage
from pypi_assets_tests.catalog.claimed_queues import LEASE_S, Reads, Visits
from pypi_assets_tests.examples import examples
from pypi_assets_tests.small_catalog import small_catalog

MOST = 9
SHA256, EARLIER = "ab" * 32, "cd" * 32


def shown(catalog: Catalog, subject: str, project: str | None = None) -> list[AttemptedItem]:
    with catalog.read() as connection:
        return attempted_items(connection, subject, MOST, project)


def renamed(catalog: Catalog, reads: Reads, *files: tuple[str, str | None]) -> None:
    """Give the first files of the queue these names and hashes, and name their project `demo`."""
    with catalog.write() as connection:
        for id_, (filename, sha256) in zip(reads.items, files, strict=False):
            values = {"filename": filename, "sha256": sha256}
            connection.execute(update(distributions).where(distributions.c.id == id_).values(values))
        its = select(distributions.c.project_id).where(distributions.c.id == reads.items[0]).scalar_subquery()
        connection.execute(update(projects).where(projects.c.id == its).values(name="Demo", normalized="demo"))


def tried(catalog: Catalog, reads: Reads, worker: str, now: float, *outcomes: ReadOutcome) -> None:
    """Claim the next reads, and finish the first ones with these outcomes."""
    reads.claim(worker, now, 1)
    finished = [
        FinishedRead(
            id_,
            outcome,
            error_kind=None if outcome == ReadOutcome.DATA else "transient",
            error_text=None if outcome == ReadOutcome.DATA else "503",
            due_at=now + 1,
            started_at=now,
            seconds=0.5,
            bytes_fetched=7,
            requests=2,
        )
        for id_, outcome in zip(reads.items, outcomes, strict=False)
    ]
    with catalog.write() as connection:
        assert len(finish_reads(connection, finished, worker, now)) == len(outcomes)


def test_attempts_of_a_file_are_listed_up_to_its_success(catalog: Catalog):
    reads = Reads(catalog, 1)
    renamed(catalog, reads, ("demo-1.0.tar.gz", SHA256))
    [item] = shown(catalog, "demo-1.0.tar.gz")
    assert (item.kind, item.project, item.version, item.sha256) == ("read", "Demo", "1.0", SHA256)
    assert (item.outcome, item.attempts, item.next_due, item.deleted) == ("pending", (), None, 0)

    tried(catalog, reads, "one", 10.0, ReadOutcome.PENDING)
    [item] = shown(catalog, "demo-1.0.tar.gz")
    first = LoggedAttempt(1, 10.0, 0.5, "failed", "transient", "503", "one", None, 7, 2)
    assert (item.outcome, item.next_due, item.attempts_remaining) == ("waiting", 11.0, MOST - 1)
    assert (item.attempts, item.failed, item.succeeded_at) == ((first,), 1, None)

    reads.claim("two", 20.0, 1)
    [item] = shown(catalog, "demo-1.0.tar.gz")
    assert item.attempts == (first, LoggedAttempt(2, None, None, "ongoing", None, None, "two"))
    tried(catalog, reads, "three", 20.0 + LEASE_S, ReadOutcome.DATA)
    [item] = shown(catalog, "demo-1.0.tar.gz")
    assert item.attempts == (
        first,
        LoggedAttempt(2, None, None, "abandoned", WORKER_DIED, None, "two", None, 0, 0),
        LoggedAttempt(3, 30.0, 0.5, "data", None, None, "three", None, 7, 2),
    )
    assert (item.outcome, item.succeeded_at, item.failed, item.has_succeeded) == ("data", 30.0, 2, True)
    assert (item.next_due, item.attempts_remaining, item.deleted) == (None, 0, 0)

    for left, deleted in ((3, 2), (4, 1)):  # no attempt is left: at least the success is missing
        with catalog.write() as connection:
            connection.execute(delete(read_attempts).where(read_attempts.c.attempt < left))
        [item] = shown(catalog, "demo-1.0.tar.gz")
        assert (len(item.attempts), item.deleted, item.succeeded_at) == (4 - left, deleted, 30.0)


def test_files_are_found_by_what_people_have_of_them(catalog: Catalog):
    reads = Reads(catalog, 4)
    names = ("demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz", "odd name.zip", "demo+x-1.0.zip")
    renamed(catalog, reads, (names[0], SHA256), (names[1], SHA256), (names[2], None), (names[3], None))
    with catalog.write() as connection:
        row = {"distribution_id": reads.items[2], "generation": 1, "until": 5, "sha256": EARLIER, "content": b""}
        connection.execute(past_generations.insert().values(row))
    found = {
        names[0]: names[:1],
        f"  {names[0]}\n": names[:1],
        f"dist/{names[1]}": names[1:2],
        f"https://files.example.org/ab/cd/{names[1]}#sha256={SHA256}": names[1:2],
        "https://files.example.org/demo%2Bx-1.0.zip?x=1": (),
        SHA256: names[:2],
        f"sha256:{SHA256.upper()}": names[:2],
        EARLIER: names[2:3],
        "Demo==1.0": names,
        "demo==1": names,
        "demo == v1.0.0": names,
        "demo==1.0.1": (),
        "demo==2": (),
        "demo==": (),
        "demo-1.0": (),
        "00" * 32: (),
        "": (),
        "\0": (),
        "x" * 100_000: (),
        "x-" * 50_000: (),
    }
    for subject, expected in found.items():
        assert [item.filename for item in shown(catalog, subject)] == sorted(expected), subject
    assert shown(catalog, names[2]) == []
    assert [item.filename for item in shown(catalog, names[2], "DEMO")] == [names[2]]
    assert [item.filename for item in shown(catalog, names[3], "demo")] == [names[3]]
    assert shown(catalog, names[0], "other") == []
    assert [(item.kind, item.filename) for item in shown(catalog, "dEmO")] == [("visit", "")]


def test_visits_of_a_page_are_listed_with_their_workers(catalog: Catalog):
    visits = Visits(catalog, 1)
    with catalog.read() as connection:
        [project] = load_projects(connection, visits.items)

    def claimed(worker: str, now: float) -> int:
        with catalog.write() as connection:
            options = {"worker": worker, "now": now, "until": now + LEASE_S, "limit": 1}
            [task] = claim_visits(connection, visits.workload, None, **options)
            dead = {} if task.taken_from is None else {task.project.id: task.taken_from}
            visits.tasks[worker, task.project.id] = task
            ids = begin_visits(connection, visits.items, "incremental", visits.workload, now, dead)
            return ids[task.project.id]

    def ended(worker: str, visit_id: int, status: VisitStatus, now: float) -> None:
        is_full = status == VisitStatus.FULL
        page = ProjectPage(project.name, 5, "active", ()) if is_full else None
        later = None if is_full else now + 1
        text = None if is_full else "503"
        verdict = VisitVerdict(
            visit_id, project, status, page, text=text, is_conclusive=is_full, due_at=later, worker=worker
        )
        task = visits.tasks[worker, project.id]
        with catalog.write() as connection:
            record_verdicts(connection, [verdict], now)
            if later is None:
                finish_visits(connection, [(task, TaskState.DONE, None)])
            else:
                postpone_visits(connection, now, [(task, later, "503", False)])

    assert shown(catalog, project.name)[0].outcome == "pending"
    ended("one", claimed("one", 1.0), VisitStatus.FAILED, 3.0)
    claimed("two", 10.0)
    [item] = shown(catalog, project.name)
    scope = visits.workload
    first = LoggedAttempt(1, 1.0, 2.0, "failed", "visit", "503", "one", scope)
    assert item.attempts == (first, LoggedAttempt(2, 10.0, None, "ongoing", None, None, "two", scope))
    assert (item.outcome, item.next_due, item.attempts_remaining) == ("waiting", 4.0, MOST - 1)
    ended("three", claimed("three", 10.0 + LEASE_S), VisitStatus.FULL, 22.0)
    [item] = shown(catalog, project.name)
    assert item.attempts == (
        first,
        LoggedAttempt(2, 10.0, 10.0, "failed", "visit", ABANDONED_VISIT, "two", scope),
        LoggedAttempt(3, 20.0, 2.0, "full", None, None, "three", scope),
    )
    assert (item.outcome, item.next_due, item.succeeded_at, item.failed) == ("full", None, 22.0, 2)


def test_worker_of_a_visit_is_recorded_only_around_failures(catalog: Catalog):
    visits = Visits(catalog, 1)
    with catalog.read() as connection:
        [project] = load_projects(connection, visits.items)
    for number, status in enumerate(("full", "failed", "failed", "full", "full")):
        with catalog.write() as connection:
            [visit_id] = begin_visits(connection, [project.id], "full", "crawl:1", number).values()
            page = ProjectPage(project.name, 5, "active", ()) if status == "full" else None
            verdict = VisitVerdict(visit_id, project, VisitStatus(status), page, worker=f"worker {number}")
            record_verdicts(connection, [verdict], number)
    with catalog.read() as connection:
        query = select(visit_statuses.c.worker).where(visit_statuses.c.status != "ongoing")
        workers = connection.scalars(query.order_by(visit_statuses.c.id)).all()
    assert workers == [None, "worker 1", "worker 2", "worker 3", None]


steps = st.lists(
    st.tuples(st.sampled_from(["fails", "dies", "ends", "queued"]), st.sampled_from(["one", "two", "three"])),
    max_size=12,
)


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_any_attempts_are_listed_in_their_order(tmp_path_factory, steps):
    catalog = small_catalog(Path(tmp_path_factory.mktemp("catalog"))).catalog
    reads = Reads(catalog, 1)
    renamed(catalog, reads, ("demo-1.0.tar.gz", None))
    expected: list[tuple[str, str, int]] = []
    number, is_queued, claimer = 1, True, ""
    for place, (step, name) in enumerate(steps):
        now, worker = (place + 1) * 10 * LEASE_S, f"{name} {place}"
        if step == "queued":
            with catalog.write() as connection:
                queue_reads(connection, [(reads.items[0], _project(catalog, reads))])
            number, is_queued, claimer = 1, True, ""
        elif is_queued:
            if claimer:
                expected.append(("abandoned", claimer, number))
                number += 1
            if step == "dies":
                assert reads.claim(worker, now, 1) == reads.items
                claimer = worker
                continue
            outcome = ReadOutcome.PENDING if step == "fails" else ReadOutcome.DATA
            tried(catalog, reads, worker, now, outcome)
            expected.append(("failed" if step == "fails" else "data", worker, number))
            number, is_queued, claimer = number + 1, step == "fails", ""
    [item] = shown(catalog, "demo-1.0.tar.gz")
    found = [(one.outcome, str(one.worker), one.attempt) for one in item.attempts]
    catalog.close()
    assert found == expected + ([("ongoing", claimer, number)] if claimer else [])
    assert item.failed == sum(outcome in {"failed", "abandoned"} for outcome, _, _ in expected)


def _project(catalog: Catalog, reads: Reads) -> int:
    with catalog.read() as connection:
        found = connection.scalar(select(distributions.c.project_id).where(distributions.c.id == reads.items[0]))
    assert found is not None
    return int(found)
