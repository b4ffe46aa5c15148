"""Has the index answer before an empty catalog becomes the one of that index.

A full crawl of everything requests the list of projects anyway, before it opens. Named projects are followed without
the list, from the changelog alone, which can have another URL.
"""

from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import TypeVar

from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC
from pypi_assets.catalog.work.full_crawls import followed_index
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.index.errors import GoneError, LoginError, NoAnswerError, PackageIndexError

_T = TypeVar("_T")
_MOST_PAGES = 3


def query_first(crawler: Crawler, query: Callable[[], _T]) -> _T:
    """Return the result of `query`, which is tried once: a first crawl is likely to have a setting to mend.

    Raises the error of `query`, with advice if `crawler.lister` may be what is wrong.
    """
    try:
        return query()
    except PackageIndexError as error:
        if crawler.lister not in {XMLRPC, SIMPLE} or isinstance(error, NoAnswerError | LoginError):
            raise
        text = f"{error.message}; PYPI_ASSETS_LISTER={crawler.lister} needs an index with serials"
        raise type(error)(f"{text}: set it to auto, which finds out what the index is", error.url) from error


def require_answer(crawler: Crawler, names: Collection[str]) -> None:
    """Request pages of these projects until the index has one, or else its list, if the catalog follows no index yet.

    Raises PackageIndexError if the index has neither: its URL is wrong, or it does not answer.
    """
    with crawler.catalog.read() as connection:
        if not names or followed_index(connection) is not None:
            return
    failure: PackageIndexError | None = None
    for name in sorted(names)[:_MOST_PAGES]:
        try:
            crawler.index.project_page(name)
        except PackageIndexError as error:
            failure = error
            if not isinstance(error, GoneError):  # the index can have one broken page: its list decides
                break
        else:
            return
    if crawler.index.is_observed and failure is not None:  # its list is what was observed so far
        raise failure
    with ExitStack() as opened:
        query_first(crawler, lambda: opened.enter_context(crawler.index.iter_listing()))
