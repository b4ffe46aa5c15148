"""Decides what the answer to each visit means, and stores the verdict with the resulting states of files.

A failed visit is postponed, and exhausted at the deadline. `visiting.py` chooses and fetches the pages.
`catalog/derived/` computes the states of files.
"""

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.exc import DataError, IntegrityError

from pypi_assets.catalog.derived.visits import (
    SUCCESSFUL,
    UnexplainedPageError,
    VisitStatus,
    VisitVerdict,
    exhaust_broken,
    record_verdicts,
)
from pypi_assets.catalog.observed.events import explained_absences, with_events, without_file_changes
from pypi_assets.catalog.observed.index_state import replace_pages
from pypi_assets.catalog.work.finished_workloads import forget_done
from pypi_assets.catalog.work.visit_queue import (
    TaskState,
    VisitTask,
    clear_exhausted,
    finish_visits,
    postpone_visits,
    still_claimed,
)
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.listers import query_changelog
from pypi_assets.crawl.stored_events import catch_up, index_serial, store_all_events
from pypi_assets.index.errors import NotOnIndexError, PackageIndexError, StaleError, TransientError, requested_pause_s
from pypi_assets.index.models import NotModified, ProjectPage

_WORK_AT_ONCE = 5_000
"""The most files on the pages of one transaction, which on SQLite holds the only write lock."""
_WORK_OF_A_VISIT = 20
"""The cost of a visit besides the files of its page, measured in files."""
_CACHED_404_S = 600.0
"""The longest time that a cache may serve a 404, in seconds, with a large margin."""
_CACHED_PAGE_S = 600.0
_CACHED_PAGE_PAUSE_S = 120.0
"""The page of a project that a list lacks is requested again for at least 600 seconds, first after 120, then after 240
and 480. It takes few requests, since a truncated list can lack many projects."""
_FAULTS_OF_DATA = (DataError, IntegrityError, ArithmeticError, LookupError, TypeError, ValueError, zlib.error)
"""Errors that storing a project raises because of its data, and not because the database fails."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The index's answer to a visit: the project's page, or an error."""

    task: VisitTask
    visit_id: int
    answer: ProjectPage | NotModified | PackageIndexError


@dataclass(frozen=True, slots=True)
class _JudgedVisit:
    """The verdict on the visit of a task. `is_gone` is set if the answer was a 404."""

    task: VisitTask
    verdict: VisitVerdict
    is_gone: bool = False


def judge(crawler: Crawler, fetched: Sequence[Fetched]) -> int:
    """Store the outcomes of visits, many in one transaction if their pages are small. Return how many were dropped.

    All visits are claimed by one worker for one workload, and belong to distinct projects. A visit is dropped if
    another worker has taken over its claim. Before a page is judged, the events up to its serial are stored, unless the
    changelog is off. If a project cannot be stored, only its own visit fails.
    """
    lost, now = 0, crawler.catalog.clock()
    for one in fetched:
        is_answered = isinstance(one.answer, ProjectPage | NotModified | NotOnIndexError)
        crawler.page_failures.note(one.task.project.id, now, is_answered=is_answered)
    for batch in _batches(fetched):
        failed = _catch_up(crawler, batch)
        gone = [one.task.project.id for one in batch if isinstance(one.answer, NotOnIndexError)]
        with crawler.catalog.read() as connection:
            explained = explained_absences(connection, gone)
            known = with_events(connection, gone)
            current = without_file_changes(connection, _spans_of_old_pages(batch))
        judged = [_judge(crawler, one, failed.get(one.visit_id), explained, known, current) for one in batch]
        lost += _store_explained(crawler, judged)
    return lost


def _batches(fetched: Iterable[Fetched]) -> Iterator[list[Fetched]]:
    """Divide `fetched` into batches of bounded work, with at least one visit each."""
    batch: list[Fetched] = []
    work = 0
    for one in fetched:
        cost = _WORK_OF_A_VISIT + (len(one.answer.files) if isinstance(one.answer, ProjectPage) else 0)
        if batch and work + cost > _WORK_AT_ONCE:
            yield batch
            batch, work = [], 0
        batch.append(one)
        work += cost
    if batch:
        yield batch


def _catch_up(crawler: Crawler, fetched: Collection[Fetched]) -> dict[int, PackageIndexError]:
    """Store the events that each visit needs. Return the errors of visits for which that failed, by visit id.

    While the changelog is off, no visit needs events.
    """
    failed: dict[int, PackageIndexError] = {}
    needed = [(one.answer.last_serial, one.visit_id) for one in fetched if isinstance(one.answer, ProjectPage)]
    gone = [one.visit_id for one in fetched if isinstance(one.answer, NotOnIndexError)]
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
        if missing is not None:  # events up to a smaller serial had to be stored first
            failed[visit_id] = missing
    return failed


def _spans_of_old_pages(fetched: Iterable[Fetched]) -> dict[int, tuple[int, int]]:
    """Return the serial of each page that is older than its visit wants, and the wanted serial, by project id."""
    return {
        one.task.project.id: (one.answer.last_serial, one.task.min_serial)
        for one in fetched
        if isinstance(one.answer, ProjectPage) and one.answer.last_serial < one.task.min_serial
    }


def _judge(
    crawler: Crawler,
    fetched: Fetched,
    failed: PackageIndexError | None,
    explained: Mapping[int, int],
    known: Collection[int],
    current: Collection[int],
) -> _JudgedVisit:
    """Return the verdict on a visit.

    `failed` is the error if its events could not be stored. `explained` has the serials that explain a 404, by project
    id. `known` has the projects with events, which may have arrived after a 404 was sent. `current` has the projects
    whose page is older than wanted although no event in between changes their files. Such events, for example those of
    roles, never refresh a page, so the visit does not wait for a newer page.
    """
    task, visit_id = fetched.task, fetched.visit_id
    match fetched.answer if failed is None else failed:
        case ProjectPage(last_serial=serial) as page:
            if serial >= task.min_serial or task.project.id in current:
                through = task.listed_at if serial == task.min_serial else None
                return _JudgedVisit(
                    task, VisitVerdict(visit_id, task.project, VisitStatus.FULL, page, true_through=through)
                )
            stale = StaleError(
                f"the page is of serial {serial}, older than the event at {task.min_serial}", crawler.index.index_url
            )
            if task.unlisted_at is not None:
                return _judge_unlisted(crawler, fetched, page, stale)
            return _postpone_or_exhaust(crawler, fetched, stale, page)  # the page is still true as of its own serial
        case NotOnIndexError() as gone:
            explained_at = _explanation(task, explained)
            due_at = crawler.next_try(gone, task.attempts, task.first_failed_at)
            if explained_at is None and _may_come_back(crawler, task, due_at, has_events=task.project.id in known):
                return _postponed_or_exhausted(fetched, gone, due_at)
            if explained_at is None and task.listed_at is not None:
                text = f"{gone}: removed since it was listed, at an unknown serial; the next list will show it"
                later = VisitVerdict(visit_id, task.project, VisitStatus.NOT_FOUND, text=text, is_conclusive=False)
                return _JudgedVisit(task, later)
            return _JudgedVisit(
                task, VisitVerdict(visit_id, task.project, VisitStatus.NOT_FOUND, explained_at=explained_at)
            )
        case PackageIndexError() as error:
            if failed is None and _is_enough(crawler, task, error):
                return _postponed_or_exhausted(fetched, error, None)
            return _postpone_or_exhaust(crawler, fetched, error)
        case NotModified():  # a visit sends no ETag
            error = TransientError("304 to an unconditional request", crawler.index.index_url)
            return _postpone_or_exhaust(crawler, fetched, error)


def _judge_unlisted(crawler: Crawler, fetched: Fetched, page: ProjectPage, stale: StaleError) -> _JudgedVisit:
    """Return the verdict on an unchanged page of a project that a list lacks.

    A cache may serve the page of a removed project, so it is requested again for ten minutes. A page that stays is
    believed: the list was wrong. If the project is really removed, the next list lacks it too.
    """
    task, now = fetched.task, crawler.catalog.clock()
    since = task.first_failed_at
    if since is not None and now >= crawler.failing_since(since, now) + _CACHED_PAGE_S:
        text = f"list {task.unlisted_at} lacks the project, but its page has not changed"
        verdict = VisitVerdict(fetched.visit_id, task.project, VisitStatus.FULL, page, text=text, shows_all=False)
        return _JudgedVisit(task, verdict)
    due_at = now + _CACHED_PAGE_PAUSE_S * 2.0 ** min(task.attempts, 2)
    return _postponed_or_exhausted(fetched, stale, due_at, page)


def _explanation(task: VisitTask, explained: Mapping[int, int]) -> int | None:
    """Return the serial at which the project has no page, according to an event or a list of projects without it.

    An event before the project was listed does not explain a 404 after it.
    """
    if task.unlisted_at is not None:
        return max(task.unlisted_at, explained.get(task.project.id, 0))
    event_at = explained.get(task.project.id)
    is_outdated = event_at is not None and task.listed_at is not None and event_at < task.min_serial
    return None if is_outdated else event_at


def _may_come_back(crawler: Crawler, task: VisitTask, due_at: float | None, *, has_events: bool) -> bool:
    """Check whether to retry an unexplained 404 at `due_at`, instead of believing it.

    At the deadline a 404 is believed, unless the answer before was not a 404. For a listed project the deadline is
    shorter, since the next list will omit the project if it was really removed. If no event, list or page has ever
    shown the project, for example because only a requirement names it, two 404s in a row are believed.
    """
    if task.min_serial == 0 and task.project.page_serial is None and not has_events:
        return not task.was_gone
    since, now = None if task.listed_at is None else task.first_failed_at, crawler.catalog.clock()
    if since is not None and now >= crawler.failing_since(since, now) + _CACHED_404_S:
        return False
    return not task.was_gone or due_at is not None


def _is_enough(crawler: Crawler, task: VisitTask, error: PackageIndexError) -> bool:
    """Check whether a page has failed so often that the crawl goes on without it, so that it does not block the crawl.

    If the index as a whole fails, or asks for a pause, the visit waits up to the deadline instead.
    """
    is_last = task.first_failed_at is not None and task.attempts + 1 >= crawler.page_attempts
    if not is_last or isinstance(error, StaleError) or requested_pause_s(error):
        return False
    return crawler.page_failures.is_of_page(task.first_failed_at or 0.0)


def _postpone_or_exhaust(
    crawler: Crawler, fetched: Fetched, error: PackageIndexError, page: ProjectPage | None = None
) -> _JudgedVisit:
    """Postpone the visit if the error is transient and attempts are left. Otherwise mark it as exhausted."""
    task = fetched.task
    is_transient = isinstance(error, TransientError | NotOnIndexError)
    due_at = crawler.next_try(error, task.attempts, task.first_failed_at) if is_transient else None
    return _postponed_or_exhausted(fetched, error, due_at, page)


def _postponed_or_exhausted(
    fetched: Fetched, error: PackageIndexError, due_at: float | None, page: ProjectPage | None = None
) -> _JudgedVisit:
    """Return the verdict on a failed visit: postponed until `due_at`, or exhausted if `due_at` is None."""
    task, project = fetched.task, fetched.task.project
    if due_at is not None:
        return _JudgedVisit(
            task,
            VisitVerdict(
                fetched.visit_id, project, VisitStatus.FAILED, text=str(error), is_conclusive=False, due_at=due_at
            ),
            isinstance(error, NotOnIndexError),
        )
    status = VisitStatus.FAILED if page is None else VisitStatus.PARTIAL
    return _JudgedVisit(task, VisitVerdict(fetched.visit_id, project, status, page, text=str(error)))


@dataclass(frozen=True, slots=True)
class _Known:
    """The state of the stored events when verdicts are stored.

    Until `is_all` is set, pages that no stored event explains are not judged. Afterwards, events are stored up to
    `through`, the index's last serial after the pages were fetched; None if that is not known.
    """

    is_all: bool = False
    through: int | None = None


def _store_explained(crawler: Crawler, judged: Sequence[_JudgedVisit]) -> int:
    """Store verdicts. Return how many were dropped.

    A page may be newer than its own serial. If a page shows a change that no stored event explains, the events up to
    the index's last serial are stored first, once for all pages. If that fails, the visits of such pages are postponed.
    """
    try:
        return _store(crawler, judged, _Known())
    except UnexplainedPageError as unexplained:
        through = None
        try:
            through = query_changelog(crawler, partial(store_all_events, crawler))
        except PackageIndexError as error:
            unknown = unexplained.project_ids
            judged = [_postponed(crawler, one, error) if one.task.project.id in unknown else one for one in judged]
    return _store(crawler, judged, _Known(is_all=True, through=through))


def _postponed(crawler: Crawler, judged: _JudgedVisit, error: PackageIndexError) -> _JudgedVisit:
    visit = Fetched(judged.task, judged.verdict.visit_id, error)
    return _postpone_or_exhaust(crawler, visit, error, judged.verdict.page)


def _store(crawler: Crawler, judged: Sequence[_JudgedVisit], known: _Known) -> int:
    """Store verdicts. Return how many were dropped. Raises UnexplainedPageError as `record_verdicts` does."""
    catalog = crawler.catalog
    now = catalog.clock()
    try:
        lost, cleared = catalog.transact(lambda connection: _record(connection, judged, known, now))
    except _FAULTS_OF_DATA as error:
        if len(judged) > 1:
            return sum(_store_explained(crawler, [one]) for one in judged)
        [one] = judged
        cause = error.orig if isinstance(error, DataError | IntegrityError) else error
        text = f"what is known of the project cannot be stored: {type(cause).__name__}: {cause}"
        failure = VisitVerdict(
            one.verdict.visit_id, one.task.project, VisitStatus.FAILED, text=text, is_conclusive=False
        )
        failed = replace(one, verdict=failure)
        lost, cleared = catalog.transact(lambda connection: _record(connection, [failed], known, now))
    for workload in sorted(cleared):
        catalog.transact(partial(forget_done, workload=workload))
    return lost


def _record(connection: Connection, judged: Sequence[_JudgedVisit], known: _Known, now: float) -> tuple[int, set[str]]:
    """Return how many visits were dropped, and the workloads whose exhausted visits are done now."""
    held = still_claimed(connection, [one.task for one in judged])
    ordered = sorted(  # in one order everywhere, so that no two writers wait for each other
        (one for one in judged if one.task.project.id in held), key=lambda one: one.task.project.id
    )
    reached = {one.task.project.id: _reached(one) for one in ordered if _is_success(one.verdict)}
    cleared = clear_exhausted(connection, reached)
    verdicts = [replace(one.verdict, worker=one.task.worker) for one in ordered]
    record_verdicts(connection, verdicts, now, is_explained=known.is_all, shows_through=known.through)
    _keep_aside(connection, verdicts, now)
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
    return len(judged) - len(ordered), cleared


def _keep_aside(connection: Connection, verdicts: Iterable[VisitVerdict], now: float) -> None:
    """Store the invalid entries of new pages separately. Their files are live, and cannot be read."""
    broken = {
        verdict.project.id: () if verdict.page is None else verdict.page.broken
        for verdict in verdicts
        if verdict.is_conclusive and verdict.status in SUCCESSFUL
    }
    replace_pages(connection, broken, now)
    exhaust_broken(connection, broken)


def _is_success(verdict: VisitVerdict) -> bool:
    return verdict.is_conclusive and verdict.status in SUCCESSFUL


def _reached(judged: _JudgedVisit) -> int | None:
    """Return the serial up to which a successful visit shows the project; None if it has no page."""
    page = judged.verdict.page
    return None if page is None else max(page.last_serial, judged.task.min_serial)


def _state(verdict: VisitVerdict) -> TaskState:
    return TaskState.DONE if verdict.status in SUCCESSFUL else TaskState.EXHAUSTED
