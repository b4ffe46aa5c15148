"""Visits the project pages of a workload until none is left: fetches the pages in threads, and has them judged.

`judging.py` decides what an answer means. `reading.py` has the same loop for distributions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from pypi_assets.catalog.derived.visits import begin_visits
from pypi_assets.catalog.work.visit_queue import (
    REVISITS,
    VisitTask,
    WorkloadProgress,
    claim_visits,
    visit_kind,
    visits_ready_at,
    workload_progress,
)
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.draining import Pace, claiming, drain
from pypi_assets.crawl.judging import Fetched, judge
from pypi_assets.index.errors import PackageIndexError, RefusedError, TransientError
from pypi_assets.index.models import NotModified, ProjectPage
from pypi_assets.progress import Progress

_Answer = ProjectPage | NotModified | PackageIndexError


def visit_workload(
    crawler: Crawler, workload: str, shards: Sequence[int] | None = None, *, only_due: bool = False
) -> WorkloadProgress:
    """Visit every project that `workload` has queued within `shards` (None: all). Return the final state of all its
    visits.

    It returns when no process has such a visit left. With `only_due`, it returns if no remaining visit is due and free.
    """
    with claiming(crawler, workload) as worker:
        visiting = _Visiting(crawler, worker, workload, shards)
        drain(crawler, visiting, only_due=only_due)
    return visiting.report()


class _Visiting:
    """The visits of one workload. An item is a task with the id of its visit, which begins with the claim."""

    def __init__(self, crawler: Crawler, worker: str, workload: str, shards: Sequence[int] | None) -> None:
        self._crawler = crawler
        self._catalog = crawler.catalog
        self._worker = worker
        self._workload = workload
        self._shards = shards
        self._lost = 0
        self._reason = ""
        self._counting = Pace()

    def claim(self, limit: int) -> list[list[tuple[VisitTask, int]]]:
        now = self._catalog.clock()

        def begin(connection: Connection) -> list[list[tuple[VisitTask, int]]]:
            tasks = claim_visits(
                connection,
                self._workload,
                self._shards,
                worker=self._worker,
                now=now,
                until=now + self._crawler.claim_lease_s,
                limit=limit,
            )
            ids = begin_visits(
                connection,
                [task.project.id for task in tasks],
                visit_kind(self._workload),
                self._workload,
                now,
                {task.project.id: task.taken_from for task in tasks if task.taken_from is not None},
            )
            return [[(task, ids[task.project.id])] for task in tasks]

        return self._catalog.transact(begin)

    def do(self, bundle: Iterable[tuple[VisitTask, int]]) -> list[_Answer]:
        return [self._fetch(task) for task, _ in bundle]

    def is_enough(self, done: Sequence[tuple[tuple[VisitTask, int], _Answer]]) -> bool:
        return bool(done)

    def store(self, done: Sequence[tuple[tuple[VisitTask, int], _Answer]]) -> None:
        self._lost += judge(self._crawler, [Fetched(task, visit_id, answer) for (task, visit_id), answer in done])
        if self._counting.is_due():
            with self._counting.timed():
                self.report()

    def ready_at(self) -> float | None:
        with self._catalog.read() as connection:
            return visits_ready_at(connection, self._workload, self._shards)

    def _fetch(self, task: VisitTask) -> _Answer:
        index = self._crawler.index
        if task.attempts >= self._crawler.max_attempts:
            text = f"no attempt is left: of {task.attempts}, the last ones ended with their worker"
            return RefusedError(text, index.index_url)
        try:
            return index.project_page(task.project.normalized)
        except PackageIndexError as error:
            if isinstance(error, TransientError):
                self._reason = str(error)
            return error

    def report(self, wait_s: float = 0.0) -> WorkloadProgress:
        """Report the state of the visits, and return it."""
        with self._catalog.read() as connection:
            progress = workload_progress(connection, self._workload, self._shards)
        stage, done = "audit" if self._workload == REVISITS else "visits", progress.total - progress.todo
        reason = self._reason if wait_s else ""
        self._crawler.report(Progress(stage, done, progress.total, progress.exhausted, wait_s, reason))
        return replace(progress, lost=self._lost)
