"""Judges what was fetched of project pages: what each visit came to is stored with the state that follows from it.

It knows nothing of threads, nor of what is visited when. Whatever fails is put off, and given up at the deadline.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from pypi_assets.catalog.events import explains_absence
from pypi_assets.catalog.queue import TaskState, VisitTask, finish_visit, postpone_visit
from pypi_assets.catalog.visits import VisitStatus, end_visit, record_absence, record_failure, record_page
from pypi_assets.crawl.changelog import catch_up
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.index.errors import GoneError, PackageIndexError, StaleError, TransientError
from pypi_assets.index.models import NotModified, ProjectPage


@dataclass(frozen=True, slots=True)
class Fetched:
    """What the index answered when `task` was visited: the project's page, or why there is none."""

    task: VisitTask
    visit_id: int
    answer: ProjectPage | NotModified | PackageIndexError


def judge(crawler: Crawler, fetched: Sequence[Fetched]) -> None:
    """Gives each visit its outcome. The events up to a page's own serial are stored before it is judged."""
    for one in fetched:
        _judge(crawler, one)


def _judge(crawler: Crawler, fetched: Fetched) -> None:
    try:
        match fetched.answer:
            case GoneError() as gone:
                _judge_absence(crawler, fetched, gone)
            case ProjectPage() as page:
                _judge_page(crawler, fetched, page)
            case PackageIndexError() as error:
                _fail(crawler, fetched, error)
            case NotModified():  # nobody asked whether it was
                error = TransientError("304 to an unconditional request", crawler.index.index_url)
                _fail(crawler, fetched, error)
    except PackageIndexError as error:  # the changelog could not be brought up to the page
        _fail(crawler, fetched, error)


def _judge_page(crawler: Crawler, fetched: Fetched, page: ProjectPage) -> None:
    catalog, task = crawler.catalog, fetched.task
    catch_up(crawler, page.last_serial)
    if page.last_serial >= task.min_serial:

        def judge(connection: Connection) -> None:
            record_page(connection, fetched.visit_id, task.project, page, catalog.clock())
            finish_visit(connection, task, TaskState.DONE)

        catalog.transact(judge)
        return
    stale = StaleError(
        f"the page is of serial {page.last_serial}, older than the event at {task.min_serial}", crawler.index.index_url
    )
    if crawler.next_try(task.attempts, task.first_failed_at) is not None:
        _fail(crawler, fetched, stale)
        return

    def judge_by_events(connection: Connection) -> None:  # the page is true of its own serial, and older than the rest
        record_page(connection, fetched.visit_id, task.project, page, catalog.clock())
        record_failure(connection, fetched.visit_id, task.project, VisitStatus.PARTIAL, str(stale), catalog.clock())
        finish_visit(connection, task, TaskState.GAVE_UP, str(stale))

    catalog.transact(judge_by_events)


def _judge_absence(crawler: Crawler, fetched: Fetched, gone: GoneError) -> None:
    """A 404 carries no serial: it is believed where a stored event explains it, or at the deadline."""
    catalog, task = crawler.catalog, fetched.task
    catch_up(crawler, crawler.index.last_serial())
    with catalog.read() as connection:
        explained_at = explains_absence(connection, task.project.id)
    if explained_at is None and crawler.next_try(task.attempts, task.first_failed_at) is not None:
        _fail(crawler, fetched, gone)
        return

    def believe(connection: Connection) -> None:
        record_absence(connection, fetched.visit_id, task.project, explained_at, catalog.clock())
        finish_visit(connection, task, TaskState.DONE)

    catalog.transact(believe)


def _fail(crawler: Crawler, fetched: Fetched, error: PackageIndexError) -> None:
    """Puts the visit off if it may work later and the deadline has not passed; else gives it up, counted and shown."""
    catalog, task = crawler.catalog, fetched.task
    may_pass = isinstance(error, TransientError | GoneError)
    next_try = crawler.next_try(task.attempts, task.first_failed_at) if may_pass else None
    now = catalog.clock()

    def put_off_or_give_up(connection: Connection) -> None:
        if next_try is not None:
            end_visit(connection, fetched.visit_id, VisitStatus.FAILED, now, text=str(error))
            postpone_visit(connection, task, now, next_try, str(error))
            return
        record_failure(connection, fetched.visit_id, task.project, VisitStatus.FAILED, str(error), now)
        finish_visit(connection, task, TaskState.GAVE_UP, str(error))

    catalog.transact(put_off_or_give_up)
