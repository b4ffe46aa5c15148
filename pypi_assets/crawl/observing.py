"""Has an index without serials looked at before its serials are used; nothing is done for other kinds of index.

What a look means is decided in `index/observing/`.
"""

from pypi_assets.catalog.observed.followed import follows_all
from pypi_assets.catalog.observed.observations import require_counter
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.index.protocol import Observation
from pypi_assets.progress import Progress


def observe(crawler: Crawler, *, everything: bool = False, with_list: bool = False) -> Observation:
    """One round of looking at the index: at what is due, or at `everything`. People are notified of what is wrong.

    Where scopes decide what is followed, the list of projects is not requested, unless `with_list`: then `everything`
    is all that the index lists, and else all that is known.

    Raises CatalogError where the catalog follows serials of another kind, or another index.
    """
    crawler.clock_steps.follow(crawler.catalog)
    with crawler.catalog.read() as connection:
        require_counter(connection, crawler.index.index_url, is_observed=crawler.index.is_observed)
        with_list = with_list or follows_all(connection)

    def report(done: int, total: int) -> None:
        crawler.report(Progress("looks", done, total))

    found = crawler.index.observe(report, everything=everything, with_list=with_list)
    crawler.observed(found)
    for message in found.messages:
        crawler.notify(message)
    return found
