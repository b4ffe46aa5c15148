"""Observations of an index without serials: the state of its projects, and the events of our own counter.

They are in the same database as the catalog. So all machines that follow the index share them, one backup has both, and
the counter can never be older than a catalog that follows it. `index/observing/` decides which pages are believed. The
counter is stored as the state of the lister `pages`.
"""

import zlib
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec
from packaging.utils import canonicalize_name
from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, func, insert, or_, select, update

from pypi_assets.catalog.database import (
    Catalog,
    CatalogError,
    at_a_time,
    insert_missing,
    lock_rows,
    sent_values,
    storable,
)
from pypi_assets.catalog.observed.index_state import Content, read_lister_state, save_lister_state
from pypi_assets.catalog.tables import catalog_state, lister_states, observed_events, observed_projects
from pypi_assets.index.kind_names import PAGES
from pypi_assets.index.models import LONGEST_ACTION, LONGEST_NAME, ChangelogEvent, ListedProject
from pypi_assets.index.observing.comparison import KnownPage
from pypi_assets.index.observing.round_state import KnownList, KnownProject, Look
from pypi_assets.index.observing.shown_pages import ShownProject, Validators
from pypi_assets.visit_policies import ChangeTimes

PAGE_DECODER = msgspec.json.Decoder(KnownPage)
_LONGEST_VALIDATOR = 1_000
_LONGEST_ERROR = 1_000


class Observations:
    """The stored observations of the index at `index_url`, for the protocol in `index/observing/round_state.py`."""

    def __init__(self, catalog: Catalog, index_url: str) -> None:
        self._catalog = catalog
        self._instance = index_url

    def now(self) -> float:
        """Return the time in unix seconds, by the catalog's clock."""
        return self._catalog.clock()

    def last_serial(self) -> int:
        """Return the last serial of the counter; 0 before the first event."""
        with self._catalog.read() as connection:
            return counted_serial(connection, self._instance)

    def events(self, after: int, limit: int) -> list[ChangelogEvent]:
        """Return the next events above the serial `after`, in order."""
        c = observed_events.c
        query = select(c.name, c.version, c.seen_at, c.action, c.serial).where(c.serial > after)
        with self._catalog.read() as connection:
            rows = connection.execute(query.order_by(c.serial).limit(limit)).all()
        return [ChangelogEvent(name, version, int(at), action, serial) for name, version, at, action, serial in rows]

    def listed(self) -> tuple[int, list[ListedProject]]:
        """Return the last serial, and the projects that have a page or were never polled."""
        c = observed_projects.c
        query = select(c.project, c.serial).where(or_(c.is_there, c.looked_at.is_(None)))
        with self._catalog.read() as connection:
            serial = counted_serial(connection, self._instance)
            rows = connection.execute(query.order_by(c.project)).all()
        return serial, [ListedProject(project, of_project) for project, of_project in rows]

    def known_list(self) -> KnownList:
        """Return when the list of projects was last seen, and its validators."""
        with self._catalog.read() as connection:
            content = read_lister_state(connection, PAGES, self._instance).content
        validators = Validators(content.get("list_etag"), content.get("list_last_modified"))
        return KnownList(content.get("listed_at"), validators)

    def save_list(self, projects: Iterable[ShownProject] | None, validators: Validators, now: float) -> None:
        """Insert new projects, due immediately, and make projects due that are no longer listed.

        If `projects` is None, the list has not changed.
        """
        if projects is not None:
            listed = {canonicalize_name(project.name): project.url for project in projects}
            with self._catalog.read() as connection:
                c = observed_projects.c
                rows = connection.execute(select(c.project, c.url).where(c.is_there))
                there: dict[str, str | None] = {project: url for project, url in rows}
            self.enter((ShownProject(name, url) for name, url in listed.items() if there.get(name, "") != url), now)
            for names in at_a_time(sorted(there.keys() - listed.keys())):
                self._catalog.transact(partial(_make_due, names=names, now=now))
        self._catalog.transact(partial(self._note_list, validators=validators, now=now))

    def enter(self, projects: Iterable[ShownProject], now: float) -> None:
        """Insert unknown projects, due immediately. Known projects take the new URL."""
        urls = {canonicalize_name(project.name): project.url for project in projects}
        usable = {name: url for name, url in urls.items() if 0 < len(name) <= LONGEST_NAME and storable(name) == name}
        for names in at_a_time(sorted(usable)):
            self._catalog.transact(partial(_enter, urls={name: usable[name] for name in names}, now=now))

    def load(self, project: str) -> KnownProject | None:
        """Return the state of a project; None if it is unknown."""
        with self._catalog.read() as connection:
            row = connection.execute(_KNOWN.where(observed_projects.c.project == project)).first()
        return None if row is None else _known(row)

    def take_due(
        self, now: float, until: float, limit: int, *, seen_before: float, among: Collection[str] | None
    ) -> list[KnownProject]:
        """Return some due projects, the longest due first. No other poller gets them before `until`."""
        return self._catalog.transact(
            partial(_take_due, now=now, until=until, limit=limit, seen_before=seen_before, among=among)
        )

    def count_due(self, now: float, *, seen_before: float, among: Collection[str] | None) -> int:
        """Return how many projects `take_due` would return."""
        query = select(func.count()).select_from(observed_projects).where(_is_due(now, seen_before))
        with self._catalog.read() as connection:
            return connection.scalar(query.where(*_among(connection, among))) or 0

    def make_due(self, now: float, among: Collection[str] | None) -> None:
        """Make all projects due now, or only those `among` the given ones."""
        self._catalog.transact(partial(_make_all_due, now=now, among=among))

    def save(self, looks: Sequence[Look]) -> tuple[int, int]:
        """Save the results of polls, and allocate the serials of their events, in one transaction."""
        return self._catalog.transact(partial(self._save, looks=looks))

    def note_serials(self) -> bool:
        """Record that the index provides its own serials. Return whether this was not known before."""
        return self._catalog.transact(self._note_serials)

    def _save(self, connection: Connection, looks: Sequence[Look]) -> tuple[int, int]:
        names = [look.known.project for look in looks]
        lock_rows(connection, observed_projects, observed_projects.c.project.in_(names))
        c = observed_projects.c
        found = connection.execute(select(c.project, c.revision).where(c.project.in_(names)))
        revisions: dict[str, int] = {project: revision for project, revision in found}
        valid = [look for look in looks if revisions.get(look.known.project) == look.known.revision]
        count = sum(len(look.events) for look in valid)
        serial = self._allocate(connection, count) if count else 0
        events: list[dict[str, Any]] = []
        for look in valid:
            first = serial
            for event in look.events:
                serial += 1
                events.append(_event_row(look, event.version, event.action, serial))
            connection.execute(
                update(observed_projects).where(c.project == look.known.project).values(_saved(look, serial, first))
            )
        if events:
            connection.execute(insert(observed_events), events)
        return count, len(looks) - len(valid)

    def _allocate(self, connection: Connection, count: int) -> int:
        """Return the serial before the `count` new ones. The counter is locked until the transaction ends."""
        state = self._require_own(connection)
        before = int(state.get("serial", 0))
        self._store(connection, {"serial": before + count})
        return before

    def _note_list(self, connection: Connection, validators: Validators, now: float) -> None:
        self._require_own(connection)
        found = {"list_etag": validators.etag, "list_last_modified": validators.last_modified}
        kept = {name: value for name, value in found.items() if value and len(value) <= _LONGEST_VALIDATOR}
        self._store(connection, {"listed_at": now, **dict.fromkeys(found), **kept})

    def _note_serials(self, connection: Connection) -> bool:
        known = self._require_own(connection)
        if known.get("gives_serials"):
            return False
        self._store(connection, {"gives_serials": True})
        return True

    def _require_own(self, connection: Connection) -> Content:
        """Return the counter's state, locked. Raises CatalogError if the catalog follows something else."""
        require_counter(connection, self._instance, is_observed=True)
        state = read_lister_state(connection, PAGES, self._instance)
        if not state.revision:
            save_lister_state(connection, state, {"serial": 0}, self.now(), lambda stored, _: stored)
        return read_lister_state(connection, PAGES, self._instance, lock=True).content

    def _store(self, connection: Connection, changed: Content) -> None:
        state = read_lister_state(connection, PAGES, self._instance, lock=True)
        content = {name: value for name, value in {**state.content, **changed}.items() if value is not None}
        save_lister_state(connection, state, content, self.now(), lambda _, own: own)


def counted_serial(connection: Connection, instance: str) -> int:
    """Return the last serial of the counter of an observed index; 0 before its first event."""
    return int(read_lister_state(connection, PAGES, instance).content.get("serial", 0))


def seen_without(connection: Connection, serials: Collection[int]) -> dict[int, float | None]:
    """Return, by the serial of an observed event, when its project was last seen without the change (unix seconds).

    So the change happened after this time, and before the time of the event. None stands for the first look at a
    project, which finds what has been there for an unknown time.
    """
    c = observed_events.c
    query = select(c.serial, c.not_before)
    return {
        serial: at
        for chunk in at_a_time(sorted(serials))
        for serial, at in connection.execute(query.where(c.serial.in_(chunk)))
    }


def begin_counter(connection: Connection, instance: str, now: float) -> None:
    """Create the counter of an index, at 0, unless it exists. Raises CatalogError as `require_counter` does."""
    require_counter(connection, instance, is_observed=True)
    known = read_lister_state(connection, PAGES, instance)
    if not known.revision:
        save_lister_state(connection, known, known.content, now, lambda stored, _: stored)


def observed_instance(connection: Connection) -> str | None:
    """Return the URL of the index that this catalog observes; None if it observes none."""
    return connection.scalar(select(lister_states.c.instance).where(lister_states.c.lister == PAGES).limit(1))


def observed_serial(connection: Connection, instance: str) -> int | None:
    """Return the last serial of the counter of an observed index; None if the index is not observed."""
    state = read_lister_state(connection, PAGES, instance)
    return int(state.content.get("serial", 0)) if state.revision else None


def first_observed_at(connection: Connection, after: int) -> float | None:
    """Return when the first observed event above the serial `after` was seen (unix seconds); None if there is none."""
    c = observed_events.c
    return connection.scalar(select(c.seen_at).where(c.serial > after).order_by(c.serial).limit(1))


def require_counter(connection: Connection, instance: str, *, is_observed: bool) -> None:
    """Raise CatalogError if the catalog has serials of another kind than requested.

    The kinds are the index's own serials, and serials of our counter (`is_observed`).
    """
    counted = connection.scalars(select(lister_states.c.instance).where(lister_states.c.lister == PAGES)).all()
    followed = connection.scalar(select(catalog_state.c.index_url))
    if not is_observed:
        if counted:
            raise CatalogError(
                f"this catalog follows {counted[0]} by observing its pages, with serials from our own counter: set"
                " PYPI_ASSETS_LISTER back to what it was, or start a new catalog in another PYPI_ASSETS_HOME;"
                " nothing was changed"
            )
        return
    if followed is not None and not counted:
        raise CatalogError(
            f"this catalog follows the serials of {followed} itself, but an observed index has serials from our own"
            " counter: set PYPI_ASSETS_LISTER back to what it was, or start a new catalog in another"
            " PYPI_ASSETS_HOME; nothing was changed"
        )
    other = next((one for one in (followed, *counted) if one not in {None, instance}), None)
    if other is not None:
        raise CatalogError(
            f"this catalog observes {other}, not {instance}: set PYPI_ASSETS_INDEX_URL back, or start a new catalog in"
            " another PYPI_ASSETS_HOME; nothing was changed"
        )


_KNOWN: Select[Any] = select(observed_projects)


def _known(row: Row[Any]) -> KnownProject:
    page = KnownPage(row.project) if row.content is None else PAGE_DECODER.decode(zlib.decompress(row.content))
    return KnownProject(
        row.project,
        page,
        row.url,
        row.revision,
        row.serial,
        Validators(row.etag, row.last_modified),
        row.pause_s,
        row.looked_at,
        row.failures,
        ChangeTimes(row.changed_at, row.change_gap_s),
    )


def _among(connection: Connection, names: Collection[str] | None) -> list[ColumnElement[bool]]:
    if names is None:
        return []
    project = observed_projects.c.project
    return [project.in_(select(sent_values(connection, project, sorted(names)).c.value))]


def _is_due(now: float, seen_before: float) -> ColumnElement[bool]:
    c = observed_projects.c
    return (c.due_at <= now) & or_(c.looked_at.is_(None), c.looked_at < seen_before)


def _take_due(
    connection: Connection,
    now: float,
    until: float,
    limit: int,
    seen_before: float,
    among: Collection[str] | None,
) -> list[KnownProject]:
    c = observed_projects.c
    query = (
        _KNOWN.where(_is_due(now, seen_before), *_among(connection, among)).order_by(c.due_at, c.project).limit(limit)
    )
    if connection.dialect.name != "sqlite":
        query = query.with_for_update(skip_locked=True)
    rows = connection.execute(query).all()
    if rows:
        names = [row.project for row in rows]
        connection.execute(update(observed_projects).where(c.project.in_(names)).values(due_at=until))
    return [_known(row) for row in rows]


def _make_due(connection: Connection, names: Sequence[str], now: float) -> None:
    _make_all_due(connection, now, names)


def _make_all_due(connection: Connection, now: float, among: Collection[str] | None) -> None:
    conditions = [observed_projects.c.due_at > now, *_among(connection, among)]
    lock_rows(connection, observed_projects, *conditions)
    connection.execute(update(observed_projects).where(*conditions).values(due_at=now))


def _enter(connection: Connection, urls: dict[str, str | None], now: float) -> None:
    lock_rows(connection, observed_projects, observed_projects.c.project.in_(sorted(urls)))
    rows = [{"project": name, "url": url, "revision": 0, "due_at": now} for name, url in sorted(urls.items())]
    insert_missing(connection, observed_projects, rows)
    moved = [{"of_project": name, "new_url": url} for name, url in sorted(urls.items()) if url is not None]
    if moved:
        c = observed_projects.c
        is_other = (c.project == bindparam("of_project")) & or_(c.url.is_(None), c.url != bindparam("new_url"))
        connection.execute(update(observed_projects).where(is_other).values(url=bindparam("new_url")), moved)


def _event_row(look: Look, version: str | None, action: str, serial: int) -> dict[str, Any]:
    return {
        "serial": serial,
        "project": look.known.project,
        "name": storable(look.known.page.name if look.page is None else look.page.name)[:LONGEST_NAME],
        "version": None if version is None else storable(version)[:LONGEST_NAME],
        "action": storable(action)[:LONGEST_ACTION],
        "seen_at": look.at,
        "not_before": look.known.looked_at,
    }


def _saved(look: Look, serial: int, before: int) -> dict[str, Any]:
    """Return the columns of a project after a poll whose events have the serials above `before` up to `serial`."""
    common: dict[str, Any] = {"due_at": look.due_at, "pause_s": look.pause_s, "revision": look.known.revision + 1}
    if look.page is None:
        error = storable(look.error or "")[:_LONGEST_ERROR]
        return common | {"failures": look.known.failures + 1, "error_text": error}
    etag, modified = look.validators.etag, look.validators.last_modified
    found: dict[str, Any] = {
        "looked_at": look.at,
        "failures": 0,
        "error_text": None,
        "changed_at": look.changes.last_at,
        "change_gap_s": look.changes.every_s,
        "etag": etag if etag and len(etag) <= _LONGEST_VALIDATOR else None,
        "last_modified": modified if modified and len(modified) <= _LONGEST_VALIDATOR else None,
    }
    if look.page != look.known.page or look.known.looked_at is None:
        found |= {"content": zlib.compress(msgspec.json.encode(look.page)), "is_there": look.page.is_there}
    return common | found | ({"serial": serial} if serial > before else {})
