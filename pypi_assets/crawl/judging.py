"""Judges what was fetched of project pages: what each visit came to is stored with the state that follows from it.

It knows nothing of threads, nor of what is visited when. Whatever fails is put off, and given up at the deadline.
"""

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.exc import DataError, IntegrityError

from pypi_assets.catalog.derived.visits import SUCCESSFUL, Verdict, VisitStatus, record_verdicts
from pypi_assets.catalog.observed.events import explained_absences
from pypi_assets.catalog.work.visit_queue import TaskState, VisitTask, finish_visits, postpone_visits, still_claimed
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.lister_choice import query_changelog
from pypi_assets.crawl.stored_events import catch_up, index_serial
from pypi_assets.index.errors import GoneError, PackageIndexError, StaleError, TransientError
from pypi_assets.index.models import NotModified, ProjectPage

_AT_ONCE = 100
_LATE_404_S = 600.0
"""For how long a 404 can come from a cache, with much to spare, in seconds."""
_FAULTS_OF_DATA = (DataError, IntegrityError, ArithmeticError, LookupError, TypeError, ValueError, zlib.error)
"""What storing a project may raise that is the project's own; a database that is out of order is nobody's."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What the index answered when `task` was visited: the project's page, or why there is none."""

    task: VisitTask
    visit_id: int
    answer: ProjectPage | NotModified | PackageIndexError


@dataclass(frozen=True, slots=True)
class _Judged:
    """What the visit of a task came to."""

    task: VisitTask
    verdict: Verdict
    is_gone: bool = False


def judge(crawler: Crawler, fetched: Sequence[Fetched]) -> int:
    """Gives each visit its outcome, up to a hundred in one transaction; no two are of one project.

    The events up to a page's own serial are stored before it is judged, unless the changelog is off. A project that
    cannot be stored costs its own visit, and nobody else's. All are claimed by one worker for one scope; those whose
    claim another one has taken over are dropped. Returns how many.
    """
    lost = 0
    for start in range(0, len(fetched), _AT_ONCE):
        batch = fetched[start : start + _AT_ONCE]
        failed = _catch_up(crawler, batch)
        gone = [one.task.project.id for one in batch if isinstance(one.answer, GoneError)]
        with crawler.catalog.read() as connection:
            explained = explained_absences(connection, gone)
        lost += _store(crawler, [_judge(crawler, one, failed.get(one.visit_id), explained) for one in batch])
    return lost


def _catch_up(crawler: Crawler, fetched: Collection[Fetched]) -> dict[int, PackageIndexError]:
    """Stores the events up to what each visit needs; the visits for which that failed, each with the reason.

    Where the changelog is off, none needs any.
    """
    failed: dict[int, PackageIndexError] = {}
    needed = [(one.answer.last_serial, one.visit_id) for one in fetched if isinstance(one.answer, ProjectPage)]
    gone = [one.visit_id for one in fetched if isinstance(one.answer, GoneError)]
    if gone:
        try:
            last = query_changelog(crawler, partial(index_serial, crawler))
        except PackageIndexError as error:
            failed = dict.fromkeys(gone, error)
        else:
            needed += [(last, visit_id) for visit_id in gone if last is not None]
    through = -1
    missing: PackageIndexError | None = None
    for serial, visit_id in sorted(needed):
        if serial > through and missing is None:
            try:
                reached = query_changelog(crawler, partial(catch_up, crawler, serial))
            except PackageIndexError as error:
                missing = error
            else:
                if reached is None:
                    break
                through = reached
        if missing is not None:  # who needs the events up to a greater serial needs these too
            failed[visit_id] = missing
    return failed


def _judge(
    crawler: Crawler, fetched: Fetched, failed: PackageIndexError | None, explained: Mapping[int, int]
) -> _Judged:
    task, visit_id = fetched.task, fetched.visit_id
    match fetched.answer if failed is None else failed:
        case ProjectPage(last_serial=serial) as page:
            if serial >= task.min_serial:
                through = task.listed_at if serial == task.min_serial else None
                return _Judged(task, Verdict(visit_id, task.project, VisitStatus.FULL, page, true_through=through))
            stale = StaleError(
                f"the page is of serial {serial}, older than the event at {task.min_serial}", crawler.index.index_url
            )
            return _put_off_or_give_up(crawler, fetched, stale, page)  # it is true of its own serial all the same
        case GoneError() as gone:
            explained_at = _explanation(task, explained)
            if explained_at is None and _may_come_back(crawler, task, gone):
                return _put_off_or_give_up(crawler, fetched, gone)
            if explained_at is None and task.listed_at is not None:
                text = f"{gone}: removed since it was listed, nobody knows when; the next list tells"
                later = Verdict(visit_id, task.project, VisitStatus.NOT_FOUND, text=text, is_conclusive=False)
                return _Judged(task, later)
            return _Judged(task, Verdict(visit_id, task.project, VisitStatus.NOT_FOUND, explained_at=explained_at))
        case PackageIndexError() as error:
            return _put_off_or_give_up(crawler, fetched, error)
        case NotModified():  # nobody asked whether it was
            error = TransientError("304 to an unconditional request", crawler.index.index_url)
            return _put_off_or_give_up(crawler, fetched, error)


def _explanation(task: VisitTask, explained: Mapping[int, int]) -> int | None:
    """The serial at which the project has no page, as an event tells it, or the list of projects that lacks it.

    An event from before the project was listed explains nothing.
    """
    if task.unlisted_at is not None:
        return max(task.unlisted_at, explained.get(task.project.id, 0))
    told_at = explained.get(task.project.id)
    is_outdated = told_at is not None and task.listed_at is not None and told_at < task.min_serial
    return None if is_outdated else told_at


def _may_come_back(crawler: Crawler, task: VisitTask, gone: GoneError) -> bool:
    """Whether a 404 that nothing explains is not believed yet: at the deadline it is, but not where the last answer was
    another one. A list that has the project is soon followed by one that has not, so it is not waited for as long as
    where an event is to explain it."""
    is_late = task.listed_at is not None and task.first_failed_at is not None
    if is_late and crawler.catalog.clock() >= (task.first_failed_at or 0) + _LATE_404_S:
        return False
    return not task.was_gone or crawler.next_try(gone, task.attempts, task.first_failed_at) is not None


def _put_off_or_give_up(
    crawler: Crawler, fetched: Fetched, error: PackageIndexError, page: ProjectPage | None = None
) -> _Judged:
    """Puts the visit off if it may work later and the deadline has not passed; else gives it up, counted and shown."""
    task, project = fetched.task, fetched.task.project
    is_transient = isinstance(error, TransientError | GoneError)
    due_at = crawler.next_try(error, task.attempts, task.first_failed_at) if is_transient else None
    if due_at is not None:
        return _Judged(
            task,
            Verdict(fetched.visit_id, project, VisitStatus.FAILED, text=str(error), is_conclusive=False, due_at=due_at),
            isinstance(error, GoneError),
        )
    status = VisitStatus.FAILED if page is None else VisitStatus.PARTIAL
    return _Judged(task, Verdict(fetched.visit_id, project, status, page, text=str(error)))


def _store(crawler: Crawler, judged: Sequence[_Judged]) -> int:
    """Stores what visits came to; returns how many are dropped."""
    now = crawler.catalog.clock()
    try:
        return crawler.catalog.transact(lambda connection: _record(connection, judged, now))
    except _FAULTS_OF_DATA as error:
        if len(judged) > 1:
            return sum(_store(crawler, [one]) for one in judged)
        [one] = judged
        cause = error.orig if isinstance(error, DataError | IntegrityError) else error
        text = f"what is known of the project cannot be stored: {type(cause).__name__}: {cause}"
        failure = Verdict(one.verdict.visit_id, one.task.project, VisitStatus.FAILED, text=text, is_conclusive=False)
        given_up = replace(one, verdict=failure)
        return crawler.catalog.transact(lambda connection: _record(connection, [given_up], now))


def _record(connection: Connection, judged: Sequence[_Judged], now: float) -> int:
    held = still_claimed(connection, [one.task for one in judged])
    ordered = sorted(  # so that no two writers wait for each other
        (one for one in judged if one.task.project.id in held), key=lambda one: one.task.project.id
    )
    record_verdicts(connection, [one.verdict for one in ordered], now)
    finish_visits(
        connection,
        [(one.task, _state(one.verdict), one.verdict.text) for one in ordered if one.verdict.due_at is None],
    )
    postpone_visits(
        connection,
        now,
        [
            (one.task, one.verdict.due_at, one.verdict.text or "", one.is_gone)
            for one in ordered
            if one.verdict.due_at is not None
        ],
    )
    return len(judged) - len(ordered)


def _state(verdict: Verdict) -> TaskState:
    return TaskState.DONE if verdict.status in SUCCESSFUL else TaskState.EXHAUSTED
