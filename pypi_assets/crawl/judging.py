"""Decides what the answer to each visit means, and stores that with the file states that follow from it.

A failed visit is postponed, and exhausted at the deadline. Fetching pages, and which are fetched when, does not belong
here: see `visiting.py`. The file states are computed in `catalog/derived/`.
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
"""How many files the pages of one transaction have; on SQLite it holds the one write lock."""
_WORK_OF_A_VISIT = 20
"""What a visit costs besides the files of its page, in files."""
_CACHED_404_S = 600.0
"""For how long a 404 can come from a cache, with much to spare, in seconds."""
_FAULTS_OF_DATA = (DataError, IntegrityError, ArithmeticError, LookupError, TypeError, ValueError, zlib.error)
"""Errors that storing a project raises because of its data; those of a failing database are not among them."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The index's answer when `task` was visited: the project's page, or why there is none."""

    task: VisitTask
    visit_id: int
    answer: ProjectPage | NotModified | PackageIndexError


@dataclass(frozen=True, slots=True)
class _JudgedVisit:
    """The verdict on the visit of a task. `is_gone`: the answer was a 404."""

    task: VisitTask
    verdict: VisitVerdict
    is_gone: bool = False


def judge(crawler: Crawler, fetched: Sequence[Fetched]) -> int:
    """Stores the outcome of each visit, many in one transaction as long as their pages are small; no two are of one
    project.

    The events up to a page's own serial are stored before it is judged, unless the changelog is off. A project that
    cannot be stored costs its own visit alone. All visits are claimed by one worker for one workload. Returns how many
    were dropped, since another worker has taken over their claims.
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
    """`fetched` in parts of bounded work, each of at least one visit."""
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
    """Stores the events that each visit needs. Returns the ids of visits for which that failed, with the error.

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
        if missing is not None:  # the events up to a greater serial include these
            failed[visit_id] = missing
    return failed


def _spans_of_old_pages(fetched: Iterable[Fetched]) -> dict[int, tuple[int, int]]:
    """By project id, the serial of each page that is older than its visit wants, and the wanted serial."""
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
    """The verdict on one visit.

    `failed` is why its events could not be stored. `explained` are serials that explain a 404, by project id. `known`
    are the projects with events, which can have come after a 404 was sent. `current` are the projects whose pages are
    older than wanted, while no event in between changes their files. Some events, such as those of roles, never refresh
    a page, so it is not waited for.
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
            return _postpone_or_exhaust(crawler, fetched, stale, page)  # it is true of its own serial all the same
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


def _explanation(task: VisitTask, explained: Mapping[int, int]) -> int | None:
    """The serial at which the project has no page, known from an event or from a list of projects without it.

    An event from before the project was listed explains nothing.
    """
    if task.unlisted_at is not None:
        return max(task.unlisted_at, explained.get(task.project.id, 0))
    event_at = explained.get(task.project.id)
    is_outdated = event_at is not None and task.listed_at is not None and event_at < task.min_serial
    return None if is_outdated else event_at


def _may_come_back(crawler: Crawler, task: VisitTask, due_at: float | None, *, has_events: bool) -> bool:
    """Whether an unexplained 404, to be tried again at `due_at`, is not believed yet.

    At the deadline it is, unless the last answer was another one. A listed project has a shorter deadline, since the
    next list will lack it if it is really gone. Of a project that no event, list or page has shown, as where only a
    requirement names it, two in a row are believed.
    """
    if task.min_serial == 0 and task.project.page_serial is None and not has_events:
        return not task.was_gone
    since, now = None if task.listed_at is None else task.first_failed_at, crawler.catalog.clock()
    if since is not None and now >= crawler.failing_since(since, now) + _CACHED_404_S:
        return False
    return not task.was_gone or due_at is not None


def _is_enough(crawler: Crawler, task: VisitTask, error: PackageIndexError) -> bool:
    """Whether a page has failed often enough to go on without it, so that one odd page holds up no crawl.

    While the index itself fails, or asks for a pause, its pages are waited for up to the deadline.
    """
    is_last = task.first_failed_at is not None and task.attempts + 1 >= crawler.page_attempts
    if not is_last or isinstance(error, StaleError) or requested_pause_s(error):
        return False
    return crawler.page_failures.is_of_page(task.first_failed_at or 0.0)


def _postpone_or_exhaust(
    crawler: Crawler, fetched: Fetched, error: PackageIndexError, page: ProjectPage | None = None
) -> _JudgedVisit:
    """Postpones the visit where the error is transient and attempts are left; else it is exhausted, and shown so."""
    task = fetched.task
    is_transient = isinstance(error, TransientError | NotOnIndexError)
    due_at = crawler.next_try(error, task.attempts, task.first_failed_at) if is_transient else None
    return _postponed_or_exhausted(fetched, error, due_at, page)


def _postponed_or_exhausted(
    fetched: Fetched, error: PackageIndexError, due_at: float | None, page: ProjectPage | None = None
) -> _JudgedVisit:
    """Returns the verdict on a failed visit: postponed until `due_at`, or exhausted where that is None."""
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
    """What is known of the events when verdicts are stored.

    Until it `is_all`, pages that no stored event explains are not judged. Then the events are stored up to `through`,
    the index's last serial after the pages were fetched; None where that is not known.
    """

    is_all: bool = False
    through: int | None = None


def _store_explained(crawler: Crawler, judged: Sequence[_JudgedVisit]) -> int:
    """Stores verdicts; returns how many are dropped.

    A page can be newer than its own serial. So where one shows what no stored event explains, the events up to the
    index's last serial are stored first, once for all; where that fails, the visits of such pages are postponed.
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
    """Stores verdicts; returns how many are dropped. Raises UnexplainedPageError as `record_verdicts` does."""
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
    """Returns how many are dropped, and the workloads whose exhausted visits are done now."""
    held = still_claimed(connection, [one.task for one in judged])
    ordered = sorted(  # so that no two writers wait for each other
        (one for one in judged if one.task.project.id in held), key=lambda one: one.task.project.id
    )
    reached = {one.task.project.id: _reached(one) for one in ordered if _is_success(one.verdict)}
    cleared = clear_exhausted(connection, reached)
    verdicts = [one.verdict for one in ordered]
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
    """Keeps the broken entries of new pages aside. Their files are live, and cannot be read."""
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
    """The serial up to which a successful visit shows the project; None where it has no page."""
    page = judged.verdict.page
    return None if page is None else max(page.last_serial, judged.task.min_serial)


def _state(verdict: VisitVerdict) -> TaskState:
    return TaskState.DONE if verdict.status in SUCCESSFUL else TaskState.EXHAUSTED
