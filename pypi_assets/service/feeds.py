"""The RSS feeds of new releases and new projects, in PyPI's form.

A feed shows the newest items. Its link `next` has a cursor, and leads to the items after these. A reader that follows
this link, however rarely, misses no item.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Annotated

import orjson
from msgspec import Meta
from packaging.utils import canonicalize_name
from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.reports.catalog_status import read_followed
from pypi_assets.catalog.reports.journal_format import Record
from pypi_assets.journal.cursors import Cursor, JournalCursorError
from pypi_assets.service.changes import journal_problems
from pypi_assets.service.index_events import EventBatch, newest_events, next_events, offered_through
from pypi_assets.service.operations import Call, Operation
from pypi_assets.service.pages.page import index_address
from pypi_assets.service.pages.rendering import page_address
from pypi_assets.service.parameters import OperationParameters, whole
from pypi_assets.service.problems import not_found
from pypi_assets.service.responses import WholeAnswer
from pypi_assets.service.service import Service
from pypi_assets.service.xmlrpc_messages import text_in_xml

MOST_ITEMS = 100
RSS = "application/rss+xml"
_ATOM = "http://www.w3.org/2005/Atom"
_NEW_RELEASE = b'"action":"new release"'
_ADDED_FILE = b'"kind":"add file"'
_CREATED = b'"kind":"create project"'
FeedCursor = Annotated[
    str,
    Meta(pattern=whole(r"^[A-Za-z0-9_-]{4,80}$"), description="the cursor in a link of the feed; default: the newest"),
]


class FeedParameters(OperationParameters, frozen=True):
    """The position in a feed."""

    since: FeedCursor | None = None


@dataclass(frozen=True, slots=True)
class _Feed:
    """A feed: its path, its texts, and its items. `wants_line` returns the filter of the events that are items."""

    path: str
    title: str
    description: str
    wants_line: Callable[[Service], Callable[[bytes], bool]]
    item: Callable[[Record], "_Item"]


@dataclass(frozen=True, slots=True)
class _Item:
    """An item: its title, and the project and version (None: the project itself) that it links to."""

    title: str
    project: str
    version: str | None = None


def _wants_release(service: Service) -> Callable[[bytes], bool]:
    """Return the filter of new releases. An index without serials announces only files."""
    wanted = _ADDED_FILE if _is_observed(service) else _NEW_RELEASE
    return lambda line: wanted in line and b'"version":' in line


def _is_observed(service: Service) -> bool:
    if service.catalog is None:
        return False
    try:
        with service.catalog.read() as connection:
            return read_followed(connection).observed_serial is not None
    except (CatalogError, SQLAlchemyError):
        return False


def _wants_project(_service: Service) -> Callable[[bytes], bool]:
    return lambda line: _CREATED in line


def _release_item(record: Record) -> _Item:
    return _Item(f"{record['project']} {record['version']}", record["project"], record["version"])


def _project_item(record: Record) -> _Item:
    return _Item(f"{record['project']} added to the index", record["project"])


UPDATES = _Feed(
    path="/rss/updates.xml",
    title="Recent updates",
    description="New releases of the package index",
    wants_line=_wants_release,
    item=_release_item,
)
PACKAGES = _Feed(
    path="/rss/packages.xml",
    title="Newest packages",
    description="New projects of the package index",
    wants_line=_wants_project,
    item=_project_item,
)


def _answer(feed: _Feed, service: Service, call: Call[FeedParameters]) -> WholeAnswer:
    since = call.parameters.since
    with journal_problems():
        batch = _batch(feed, service, since)
        through = offered_through(service)
    records = [orjson.loads(line) for line in reversed(batch.lines)]
    base = index_address(service, None).base
    body = _document(feed, base, _each_once(feed, records), since, batch.cursor)
    # no Last-Modified: a later event can have the same time as an earlier one, or the time of a clock that went back
    return WholeAnswer(body.encode(), f"{RSS}; charset=utf-8", serial=through)


def _batch(feed: _Feed, service: Service, since: str | None) -> EventBatch:
    wants_line = feed.wants_line(service)
    if since is None:
        return newest_events(service, MOST_ITEMS, wants_line)
    try:
        after = Cursor.parse(since)
    except JournalCursorError as error:
        raise not_found(str(error), parameter="since") from None
    return next_events(service, after, MOST_ITEMS, wants_line, crosses_gaps=True)


def _each_once(feed: _Feed, records: Iterable[Record]) -> list[tuple[_Item, Record]]:
    """Return the items, each with its first record: several files of a release are one item."""
    found: dict[_Item, Record] = {}
    for record in records:
        found.setdefault(feed.item(record), record)
    return list(found.items())


def _document(feed: _Feed, base: str, items: list[tuple[_Item, Record]], since: str | None, following: Cursor) -> str:
    own = f"{base}{feed.path}"
    links = {"self": own if since is None else f"{own}?since={since}", "next": f"{own}?since={following}"}
    return "".join(
        (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" xmlns:atom="{_ATOM}">\n<channel>\n',
            f"<title>{feed.title}</title>\n<link>{text_in_xml(base)}/</link>\n",
            f"<description>{feed.description}</description>\n<language>en</language>\n",
            *(
                f'<atom:link rel="{rel}" type="{RSS}" href="{text_in_xml(address)}"/>\n'
                for rel, address in links.items()
            ),
            *(_item(base, item, record) for item, record in items),
            "</channel>\n</rss>\n",
        )
    )


def _item(base: str, item: _Item, record: Record) -> str:
    project = canonicalize_name(item.project)
    parts = ("project", project) if item.version is None else ("release", project, item.version)
    address = page_address("", *parts)
    link = "" if address is None else f"<link>{text_in_xml(base + address)}</link>\n"
    at = record["at"]
    date = "" if at is None else f"<pubDate>{format_datetime(datetime.fromtimestamp(at, UTC), usegmt=True)}</pubDate>\n"
    # the same release can be announced again after a removal, so its address does not identify the item
    identity = f'<guid isPermaLink="false">{record["serial"]}</guid>\n'
    return f"<item>\n<title>{text_in_xml(item.title)}</title>\n{link}{identity}{date}</item>\n"


def _operation(feed: _Feed, summary: str) -> Operation:
    def answer(service: Service, call: Call[FeedParameters]) -> WholeAnswer:
        return _answer(feed, service, call)

    return Operation(
        path=feed.path,
        handler=answer,
        summary=summary,
        description=(
            f"RSS 2.0, the newest first, at most {MOST_ITEMS}. Store the link `next` and follow it at the next poll,"
            " until an answer has no item: so no item is missed."
        ),
        parameters=FeedParameters,
        media_types=(RSS,),
        problems=(404, 410),
        tag="simple",
        at_serial=False,
    )


OPERATIONS = (
    _operation(UPDATES, "Show new releases as RSS"),
    _operation(PACKAGES, "Show new projects as RSS"),
)
