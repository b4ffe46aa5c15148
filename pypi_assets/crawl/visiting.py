"""Visits the pages of projects and judges them, until nothing of a scope is left to visit.

Pages are fetched by threads, and judged one after the other. Whatever fails is put off, and given up at the deadline;
no project keeps the others waiting.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection

from pypi_assets.catalog.events import events_through, explains_absence
from pypi_assets.catalog.queue import (
    ScopeProgress,
    TaskState,
    VisitTask,
    due_visits,
    finish_visit,
    next_visit_due,
    postpone_visit,
    scope_progress,
)
from pypi_assets.catalog.visits import (
    VisitStatus,
    begin_visits,
    end_visit,
    record_absence,
    record_failure,
    record_page,
)
from pypi_assets.crawl.changelog import catch_up
from pypi_assets.crawl.crawler import Crawler, Progress
from pypi_assets.index.errors import GoneError, PackageIndexError, StaleError, TransientError
from pypi_assets.index.models import NotModified, ProjectPage

_BATCH = 200

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class _Visit:
    task: VisitTask
    visit_id: int
    events_through: int  # when the visit began; it only ever grows


def visit_scope(crawler: Crawler, scope: str, kind: str, shards: Sequence[int] | None = None) -> ScopeProgress:
    """Visits every project that `scope` has to visit within `shards`; returns how all its visits stand in the end."""
    catalog = crawler.catalog
    with ThreadPoolExecutor(crawler.connections, thread_name_prefix="visit") as pool:
        while True:
            with catalog.read() as connection:
                tasks = due_visits(connection, scope, shards, catalog.clock(), _BATCH)
                due_at = next_visit_due(connection, scope, shards)
                progress = scope_progress(connection, scope, shards)
                through = events_through(connection)
            crawler.report(Progress("visits", progress.total - progress.todo, progress.total, progress.gave_up))
            if due_at is None:
                return progress
            if not tasks:
                crawler.wait_until(due_at)
                continue
            with catalog.write() as connection:
                ids = begin_visits(connection, [task.project.id for task in tasks], kind, scope, catalog.clock())
            visits = [_Visit(task, ids[task.project.id], through) for task in tasks]
            for visit, page in in_threads(pool, lambda visit: _fetch(crawler, visit), visits):
                _judge(crawler, visit, page)


def in_threads(
    pool: ThreadPoolExecutor, work: Callable[[_Item], _Answer], items: Iterable[_Item]
) -> Iterator[tuple[_Item, _Answer]]:
    """Each item with what `work` made of it, as they get done. What is not begun is dropped when the caller stops."""
    pending: dict[Future[_Answer], _Item] = {pool.submit(work, item): item for item in items}
    try:
        while pending:
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield pending.pop(future), future.result()
    finally:
        for future in pending:
            future.cancel()


def _fetch(crawler: Crawler, visit: _Visit) -> ProjectPage | NotModified | PackageIndexError:
    try:
        return crawler.index.project_page(visit.task.project.normalized)
    except PackageIndexError as error:
        return error


def _judge(crawler: Crawler, visit: _Visit, page: ProjectPage | NotModified | PackageIndexError) -> None:
    try:
        if isinstance(page, GoneError):
            _judge_absence(crawler, visit, page)
        elif isinstance(page, ProjectPage):
            _judge_page(crawler, visit, page)
        elif isinstance(page, PackageIndexError):
            _fail(crawler, visit, page)
        else:  # nobody asked whether it was modified
            _fail(crawler, visit, TransientError("304 to an unconditional request", crawler.index.index_url))
    except PackageIndexError as error:  # the changelog could not be brought up to the page
        _fail(crawler, visit, error)


def _judge_page(crawler: Crawler, visit: _Visit, page: ProjectPage) -> None:
    catalog, task = crawler.catalog, visit.task
    if page.last_serial > visit.events_through:
        catch_up(crawler, page.last_serial)
    if page.last_serial >= task.min_serial:

        def judge(connection: Connection) -> None:
            record_page(connection, visit.visit_id, task.project, page, catalog.clock())
            finish_visit(connection, task, TaskState.DONE)

        catalog.transact(judge)
        return
    stale = StaleError(
        f"the page is of serial {page.last_serial}, older than the event at {task.min_serial}", crawler.index.index_url
    )
    if crawler.next_try(task.attempts, task.first_failed_at) is not None:
        _fail(crawler, visit, stale)
        return

    def judge_by_events(connection: Connection) -> None:  # the page is true of its own serial, and older than the rest
        record_page(connection, visit.visit_id, task.project, page, catalog.clock())
        record_failure(connection, visit.visit_id, task.project, VisitStatus.PARTIAL, str(stale), catalog.clock())
        finish_visit(connection, task, TaskState.GAVE_UP, str(stale))

    catalog.transact(judge_by_events)


def _judge_absence(crawler: Crawler, visit: _Visit, gone: GoneError) -> None:
    """A 404 carries no serial: it is believed where a stored event explains it, or at the deadline."""
    catalog, task = crawler.catalog, visit.task
    catch_up(crawler, crawler.index.last_serial())
    with catalog.read() as connection:
        explained_at = explains_absence(connection, task.project.id)
    if explained_at is None and crawler.next_try(task.attempts, task.first_failed_at) is not None:
        _fail(crawler, visit, gone)
        return

    def believe(connection: Connection) -> None:
        record_absence(connection, visit.visit_id, task.project, explained_at, catalog.clock())
        finish_visit(connection, task, TaskState.DONE)

    catalog.transact(believe)


def _fail(crawler: Crawler, visit: _Visit, error: PackageIndexError) -> None:
    """Puts the visit off if it may work later and the deadline has not passed; else gives it up, counted and shown."""
    catalog, task = crawler.catalog, visit.task
    may_pass = isinstance(error, TransientError | GoneError)
    next_try = crawler.next_try(task.attempts, task.first_failed_at) if may_pass else None
    now = catalog.clock()

    def put_off_or_give_up(connection: Connection) -> None:
        if next_try is not None:
            end_visit(connection, visit.visit_id, VisitStatus.FAILED, now, text=str(error))
            postpone_visit(connection, task, now, next_try, str(error))
            return
        record_failure(connection, visit.visit_id, task.project, VisitStatus.FAILED, str(error), now)
        finish_visit(connection, task, TaskState.GAVE_UP, str(error))

    catalog.transact(put_off_or_give_up)
