"""Runs listers, which find the projects to visit, and chooses the lister to follow.

The changelog is followed if it answers, and otherwise the list of projects. Each page of a lister is committed in the
same transaction as the lister's state, and so is its end.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC
from pypi_assets.catalog.observed.index_state import Content, ListerState, read_lister_state, save_lister_state
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.index.errors import PackageIndexError, RefusedError, StaleError

PageT = TypeVar("PageT")


class Lister(Protocol[PageT]):
    """A source of changes, which are stored in the catalog page by page.

    `commit` stores one page, and `finalize` stores the results of all pages. Both return the lister's new state, and
    both may run again: they change only the catalog, and attributes whose values a repetition does not change.
    `reconcile` merges this lister's state with the state that another run has stored meanwhile, or raises
    OvertakenError.
    """

    name: str

    def pages(self) -> Iterator[PageT]: ...

    def commit(self, connection: Connection, page: PageT) -> Content: ...

    def finalize(self, connection: Connection) -> Content | None: ...

    def reconcile(self, stored: Content, own: Content) -> Content: ...


def run_lister(crawler: Crawler, lister: Lister[PageT]) -> None:
    """Run a lister from its first page to its end."""
    catalog = crawler.catalog
    with catalog.read() as connection:
        state = read_lister_state(connection, lister.name, crawler.index.index_url)
    for page in lister.pages():
        state = catalog.transact(partial(_commit, crawler, lister, state, page))
    catalog.transact(partial(_finalize, crawler, lister, state))


def _commit(
    crawler: Crawler, lister: Lister[PageT], known: ListerState, page: PageT, connection: Connection
) -> ListerState:
    content = lister.commit(connection, page)
    return save_lister_state(connection, known, content, crawler.catalog.clock(), lister.reconcile)


def _finalize(crawler: Crawler, lister: Lister[PageT], known: ListerState, connection: Connection) -> None:
    end = lister.finalize(connection)
    if end is not None:
        save_lister_state(connection, known, end, crawler.catalog.clock(), lister.reconcile)


AUTO = "auto"
_T = TypeVar("_T")


def query_changelog(crawler: Crawler, query: Callable[[], _T], *, again: bool = False) -> _T | None:
    """Return the changelog's answer to `query`; None if the changelog is off.

    Then the list of projects is followed. With the lister `auto`, the changelog goes off if it is rejected, or fails up
    to the retry deadline. It is then queried only with `again`, and is on again when it answers. Raises the errors of
    `query` while the changelog is not off.
    """
    if crawler.lister == SIMPLE:
        return None
    if crawler.lister != AUTO:
        return query()
    with crawler.catalog.read() as connection:
        known = read_lister_state(connection, XMLRPC, crawler.index.index_url).content
    if "off_since" in known and not again:
        return None
    try:
        answer = query()
    except StaleError:  # the changelog does answer
        raise
    except PackageIndexError as error:
        if not _note_failure(crawler, error):
            raise
        return None
    if "failing_since" in known:
        _note(crawler, lambda content: {"serial": content["serial"]} if "serial" in content else {})
        if "off_since" in known:
            crawler.notify("the changelog answers again, and is followed again")
    return answer


def _note_failure(crawler: Crawler, error: PackageIndexError) -> bool:
    """Record a failure of the changelog. Return whether the changelog is off."""
    now = crawler.catalog.clock()

    def failing(content: Content) -> Content:
        since = content.get("failing_since", now)
        is_off = isinstance(error, RefusedError) or now >= since + crawler.retry_deadline_s
        off = {"off_since": content.get("off_since", now)} if is_off or "off_since" in content else {}
        return {**content, "failing_since": since, "error": str(error)} | off

    before, after = _note(crawler, failing)
    if "off_since" in after and "off_since" not in before:
        crawler.notify(f"the changelog is off; the list of projects is followed, which has no events: {error}")
    return "off_since" in after


def _note(crawler: Crawler, change: Callable[[Content], Content]) -> tuple[Content, Content]:
    def save(connection: Connection) -> tuple[Content, Content]:
        before = read_lister_state(connection, XMLRPC, crawler.index.index_url, lock=True)
        after = save_lister_state(
            connection, before, change(before.content), crawler.catalog.clock(), lambda stored, _: change(stored)
        )
        return before.content, after.content

    return crawler.catalog.transact(save)
