"""Trusts the host of files on first use: the one that the first pages agree on, then no other for all processes.

Which host may be trusted at all is decided in `index/file_origins.py`.
"""

from sqlalchemy import Connection

from pypi_assets.catalog.observed.index_state import first_file_urls, known_file_origin, store_file_origin
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.index.file_origins import FileOrigin
from pypi_assets.index.urls import shown_host

FIRST_PAGES = 20
"""How many pages must agree, or all that were visited before the first read, where these are fewer."""


def choose_file_origin(crawler: Crawler) -> None:
    """Lets the index's client fetch files from the stored origin; chooses and stores it where none is stored.

    Nothing happens where the settings list the hosts, or where no page with files has been visited. Of several
    processes that choose at once, the first one's choice counts for all, and is reported once.
    Raises RefusedError where the pages disagree, or name a host that must not be trusted.
    """
    if not crawler.trusts_first_file_host:
        return
    with crawler.catalog.read() as connection:
        origin = known_file_origin(connection)
        urls = first_file_urls(connection, FIRST_PAGES) if origin is None else []
    agreed = crawler.patiently(lambda: crawler.index.agreed_file_origin(urls)) if urls else None
    if agreed is not None:
        origin = _store(crawler, agreed)
    if origin is not None:
        crawler.index.trust_file_origin(origin)


def _store(crawler: Crawler, agreed: FileOrigin) -> str | None:
    """The origin that counts: `agreed`, or what another process has stored meanwhile."""

    def store(connection: Connection) -> tuple[bool, str | None]:
        return store_file_origin(connection, agreed.origin), known_file_origin(connection)

    is_new, origin = crawler.catalog.transact(store)
    if is_new and agreed.origin:
        crawler.notify(
            f"files are fetched from {shown_host(agreed.origin)}, which the first pages of the index name, and from no"
            " other host; PYPI_ASSETS_ALLOWED_FILE_HOSTS can list others in its place"
        )
    elif is_new and agreed.refused:
        crawler.notify(
            f"files are fetched from the index's own host alone, and not from {', '.join(agreed.refused)}, which the"
            " first pages name too; PYPI_ASSETS_ALLOWED_FILE_HOSTS lists hosts that you trust"
        )
    return origin
