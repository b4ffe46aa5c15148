"""The state of each lister, and the origin of the files that the first pages of the index agreed on.

The state of a lister is saved after each of its pages, and compared before it is overwritten. An *instance* is the URL
of the listed index. How far events are stored is not here but in `catalog_state`. On which origin pages agree is
decided in `index/file_origins.py`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, exists, select, update

from pypi_assets.catalog.database import CatalogError, insert_missing
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC
from pypi_assets.catalog.tables import catalog_state, distributions, lister_states, visits

Content = Mapping[str, Any]


class OvertakenError(CatalogError):
    """Another run of the same lister has advanced its state meanwhile."""


@dataclass(frozen=True, slots=True)
class ListerState:
    """The last saved state of `lister` for `instance`: JSON values. `revision` counts the saves; times are unix
    seconds."""

    lister: str
    instance: str
    content: Content
    revision: int = 0
    updated_at: float = 0.0


def read_lister_state(connection: Connection, lister: str, instance: str, *, lock: bool = False) -> ListerState:
    """The last saved state, or an empty one of revision 0. `lock` keeps the row locked until the transaction ends."""
    query = select(lister_states).where(lister_states.c.lister == lister, lister_states.c.instance == instance)
    if lock:
        query = query.with_for_update()
    row = connection.execute(query).first()
    if row is None:
        return ListerState(lister, instance, {})
    return ListerState(lister, instance, json.loads(row.state), row.revision, row.updated_at)


def save_lister_state(
    connection: Connection,
    known: ListerState,
    content: Content,
    now: float,
    reconcile: Callable[[Content, Content], Content],
) -> ListerState:
    """Saves `content`, which follows from `known`.

    Where another run has saved a different state since, `reconcile` merges the stored content and `content`, or raises
    OvertakenError.
    """
    key = {"lister": known.lister, "instance": known.instance}
    insert_missing(connection, lister_states, [key | {"state": "{}", "revision": 0, "updated_at": now}])
    stored = read_lister_state(connection, known.lister, known.instance, lock=True)
    if stored.revision != known.revision and stored.content != known.content:
        content = reconcile(stored.content, content)
    revision = stored.revision + 1
    connection.execute(
        update(lister_states)
        .where(lister_states.c.lister == known.lister, lister_states.c.instance == known.instance)
        .values(state=json.dumps(dict(content), sort_keys=True), revision=revision, updated_at=now)
    )
    return ListerState(known.lister, known.instance, content, revision, now)


@dataclass(frozen=True, slots=True)
class ChangelogTrouble:
    """The changelog has failed since `since` (unix seconds). While `is_off`, the list of projects is followed instead,
    if the settings allow it."""

    since: float
    is_off: bool
    text: str


def changelog_trouble(connection: Connection, instance: str) -> ChangelogTrouble | None:
    """Why and since when the changelog of the index fails; None where it works, as far as is known."""
    known = read_lister_state(connection, XMLRPC, instance).content
    if "failing_since" not in known:
        return None
    return ChangelogTrouble(known["failing_since"], "off_since" in known, known["error"])


def last_listed(connection: Connection, instance: str) -> tuple[int | None, float | None]:
    """The serial of the list that the lister `simple` compared last, and the time when that ended (unix seconds)."""
    known = read_lister_state(connection, SIMPLE, instance).content
    return known.get("serial"), known.get("ended_at")


def known_file_origin(connection: Connection) -> str | None:
    """The stored origin, such as `https://files.example.org`; empty: the index's own hosts alone; None: not decided."""
    return connection.scalar(select(catalog_state.c.file_origin))


def first_file_urls(connection: Connection, pages: int) -> list[str]:
    """The URLs of the files on the first `pages` pages that were visited and have any."""
    has_files = exists().where(distributions.c.project_id == visits.c.project_id, distributions.c.url.is_not(None))
    first = select(visits.c.project_id).where(visits.c.visit == 1, has_files).order_by(visits.c.id).limit(pages)
    ids = connection.scalars(first).all()
    query = select(distributions.c.url).where(distributions.c.project_id.in_(ids), distributions.c.url.is_not(None))
    return list(connection.scalars(query.order_by(distributions.c.id)))


def store_file_origin(connection: Connection, origin: str) -> bool:
    """Stores `origin`, unless one is stored already. Returns whether this one was."""
    statement = update(catalog_state).where(catalog_state.c.file_origin.is_(None)).values(file_origin=origin)
    return connection.execute(statement).rowcount == 1
