"""Which lister is followed: the changelog, or the list of projects for as long as there is no changelog.

With `auto` that depends on the changelog's answers. The result is kept in the state of the lister `xmlrpc`, for all
processes. The listers themselves are in `stored_events.py` and `simple_lister.py`.
"""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC
from pypi_assets.catalog.observed.index_state import Content, read_lister_state, save_lister_state
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.index.errors import PackageIndexError, RefusedError, StaleError

AUTO = "auto"
_T = TypeVar("_T")


def query_changelog(crawler: Crawler, query: Callable[[], _T], *, again: bool = False) -> _T | None:
    """What `query` gets from the changelog; None where it is off, and the list of projects is to be followed.

    With `auto` the changelog is off once it was refused, or has failed up to the retry deadline. Then it is queried
    only with `again`, and on again as soon as it answers. Raises what `query` raises while the changelog is not off.
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
    except StaleError:  # it answers
        raise
    except PackageIndexError as error:
        if not _note_failure(crawler, error):
            raise
        return None
    if "failing_since" in known:
        _note(crawler, lambda content: {"serial": content["serial"]} if "serial" in content else {})
        if "off_since" in known:
            crawler.notify("the changelog answers again, and is followed")
    return answer


def _note_failure(crawler: Crawler, error: PackageIndexError) -> bool:
    """Records that the changelog fails; returns whether it is off."""
    now = crawler.catalog.clock()

    def failing(content: Content) -> Content:
        since = content.get("failing_since", now)
        is_off = isinstance(error, RefusedError) or now >= since + crawler.retry_deadline_s
        off = {"off_since": content.get("off_since", now)} if is_off or "off_since" in content else {}
        return {**content, "failing_since": since, "error": str(error)} | off

    before, after = _note(crawler, failing)
    if "off_since" in after and "off_since" not in before:
        crawler.notify(f"the changelog is off, so the list of projects is followed, which has no events: {error}")
    return "off_since" in after


def _note(crawler: Crawler, change: Callable[[Content], Content]) -> tuple[Content, Content]:
    def save(connection: Connection) -> tuple[Content, Content]:
        before = read_lister_state(connection, XMLRPC, crawler.index.index_url, lock=True)
        after = save_lister_state(
            connection, before, change(before.content), crawler.catalog.clock(), lambda stored, _: change(stored)
        )
        return before.content, after.content

    return crawler.catalog.transact(save)
