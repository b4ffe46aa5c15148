"""Visits the pages of projects and has them judged, until nothing of a scope is left to visit.

Pages are fetched by threads; no project keeps the others waiting.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from pypi_assets.catalog.queue import ScopeProgress, VisitTask, due_visits, next_visit_due, scope_progress
from pypi_assets.catalog.visits import begin_visits
from pypi_assets.crawl.crawler import Crawler, Progress
from pypi_assets.crawl.judging import Fetched, judge
from pypi_assets.index.errors import PackageIndexError
from pypi_assets.index.models import NotModified, ProjectPage

_BATCH = 1_000
_GATHER_S = 0.2

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


def visit_scope(crawler: Crawler, scope: str, kind: str, shards: Sequence[int] | None = None) -> ScopeProgress:
    """Visits every project that `scope` has to visit within `shards`; returns how all its visits stand in the end."""
    catalog = crawler.catalog
    with ThreadPoolExecutor(crawler.connections, thread_name_prefix="visit") as pool:
        while True:
            with catalog.read() as connection:
                tasks = due_visits(connection, scope, shards, catalog.clock(), _BATCH)
                due_at = next_visit_due(connection, scope, shards)
                progress = scope_progress(connection, scope, shards)
            crawler.report(Progress("visits", progress.total - progress.todo, progress.total, progress.gave_up))
            if due_at is None:
                return progress
            if not tasks:
                crawler.wait_until(due_at)
                continue
            with catalog.write() as connection:
                ids = begin_visits(connection, [task.project.id for task in tasks], kind, scope, catalog.clock())
            for answers in in_threads(pool, lambda task: _fetch(crawler, task), tasks):
                judge(crawler, [Fetched(task, ids[task.project.id], answer) for task, answer in answers])


def in_threads(
    pool: ThreadPoolExecutor, work: Callable[[_Item], _Answer], items: Iterable[_Item]
) -> Iterator[list[tuple[_Item, _Answer]]]:
    """Items with what `work` made of them, as many at a time as got done in a fraction of a second.

    What is not begun is dropped when the caller stops.
    """
    pending: dict[Future[_Answer], _Item] = {pool.submit(work, item): item for item in items}
    try:
        while pending:
            done, _ = wait(pending, timeout=_GATHER_S)
            if done:
                yield [(pending.pop(future), future.result()) for future in done]
    finally:
        for future in pending:
            future.cancel()


def _fetch(crawler: Crawler, task: VisitTask) -> ProjectPage | NotModified | PackageIndexError:
    try:
        return crawler.index.project_page(task.project.normalized)
    except PackageIndexError as error:
        return error
