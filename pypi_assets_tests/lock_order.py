"""Check the order in which transactions lock rows. Two transactions that lock in different orders can deadlock.

docs/design.md defines the order in *The order of locks*. A transaction must lock each table for the first time in this
order. Later statements may lock rows of the same tables again. Operations that never wait are ignored: plain inserts,
SKIP LOCKED, and SQLite, which has one writer at a time. Only transactions of `Catalog.transact` are checked, because
tests may prepare data in any order.
"""

import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection, Delete, Engine, Function, Insert, Select, Table, Update, event
from sqlalchemy.sql import visitors

from pypi_assets.catalog.database import Catalog

_T = TypeVar("_T")

NAMES = "names"
NEW_PROJECTS = "projects, new ones"
LOCK_ORDER = (
    NAMES,
    "full_crawls",
    "audits",
    NEW_PROJECTS,
    "visit_queue",
    "requested_visits",
    "projects",
    "snapshots",
    "releases",
    "read_queue",
    "distribution_data",
    "past_generations",
    "distributions",
    "extract_packs",
    "name_lists",
    "module_roots",
    "required_names",
    "shared_details",
    "catalog_state",
    "changes",
    "live_intervals",
    "yanked_intervals",
    "followed_intervals",
    "scope_edges",
    "scope_projects",
    "scope_marks",
    "epochs",
    "journal_notices",
    "visit_statistics",
    "events",
    "broken_entries",
    "serial_ranges",
    "scopes",
    "observed_projects",
    "lister_states",
    "workload_claims",
    "read_attempts",
    "visit_statuses",
    "visits",
    "pruning_positions",
    "journal_segments",
    "journal_takedowns",
    "journal_consumers",
    "journal_letters",
    "leases",
    "rates",
)
GUARDED = frozenset(
    {"sightings", "checkpoints", "dumps", "dump_files", "leveldb_builds", "leveldb_versions"}
    | {"kept_files", "kept_in_scopes", "forgotten_files"}
)
"""Tables that need no place in the order. Only the holder of the lock on the project, of the exclusive lock on the
state, or of the name of kept files touches their rows together with other transactions, so nothing waits for them.
"""


def locked_tables(statement: Any) -> list[str]:
    """Return the entries of LOCK_ORDER whose rows the statement locks, and for which it may wait."""
    found = [name for part in visitors.iterate(statement) for name in _locked_by(part)]
    return list(dict.fromkeys(found))


def owned_tables(statement: Any) -> set[str]:
    """Return the tables whose rows the statement locks without waiting: new or not locked by others."""
    if isinstance(statement, Insert):
        return set() if locked_tables(statement) else {statement.table.name}
    if isinstance(statement, Select) and (locking := statement._for_update_arg) is not None and locking.skip_locked:
        tables = locking.of or statement.get_final_froms()
        return {table.name for table in tables if isinstance(table, Table)}
    return set()


def _locked_by(part: Any) -> list[str]:
    if isinstance(part, Insert):
        if part._post_values_clause is None:
            return []
        return [NEW_PROJECTS if part.table.name == "projects" else part.table.name]
    if isinstance(part, Update | Delete):
        return [part.table.name]
    if isinstance(part, Function) and part.name == "pg_advisory_xact_lock":
        return [NAMES]
    if isinstance(part, Select) and (locking := part._for_update_arg) is not None and not locking.skip_locked:
        tables = locking.of or part.get_final_froms()
        return [table.name for table in tables if isinstance(table, Table)]
    return []


class LockOrder:
    """The locks that the transactions of all catalogs have taken so far, and each breach of the order."""

    def __init__(self) -> None:
        self.breaches: list[str] = []
        self._inserted: weakref.WeakKeyDictionary[Connection, set[str]] = weakref.WeakKeyDictionary()
        self._locked: weakref.WeakKeyDictionary[Connection, list[str]] = weakref.WeakKeyDictionary()

        self._watched = threading.local()

    def transact(self, original: Callable[..., _T], catalog: Catalog, work: Callable[[Connection], _T]) -> _T:
        self._watched.depth = getattr(self._watched, "depth", 0) + 1
        try:
            return original(catalog, work)
        finally:
            self._watched.depth -= 1

    def begin(self, connection: Connection) -> None:
        self._locked[connection] = []
        self._inserted[connection] = set()

    def note(self, connection: Connection, statement: Any, *_: Any) -> None:
        if connection.dialect.name == "sqlite" or not getattr(self._watched, "depth", 0):
            return
        locked = self._locked.setdefault(connection, [])
        inserted = self._inserted.setdefault(connection, set())
        inserted.update(owned_tables(statement))
        for name in locked_tables(statement):
            if name in locked or name in inserted or name in GUARDED:
                continue
            if name not in LOCK_ORDER:
                self._add(f"{name} has no place in LOCK_ORDER")
            elif locked and LOCK_ORDER.index(name) < max(map(LOCK_ORDER.index, locked)):
                last = max(locked, key=LOCK_ORDER.index)
                self._add(f"{name} is locked after {last}, and LOCK_ORDER has it before")
            if name in LOCK_ORDER:
                locked.append(name)

    def _add(self, what: str) -> None:
        frames = [frame for frame in traceback.extract_stack() if "/pypi_assets" in frame.filename]
        shown = [f"{frame.filename.rpartition('/pypi_assets')[2]}:{frame.lineno} {frame.name}" for frame in frames]
        self.breaches.append("\n  ".join([what, *shown[-9:-2]]))


@contextmanager
def watched_lock_order() -> Iterator[LockOrder]:
    """Watch all transactions of this process until the block ends."""
    order = LockOrder()
    event.listen(Engine, "begin", order.begin)
    event.listen(Engine, "before_execute", order.note)
    original = Catalog.transact
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Catalog, "transact", lambda catalog, work: order.transact(original, catalog, work))
            yield order
    finally:
        event.remove(Engine, "begin", order.begin)
        event.remove(Engine, "before_execute", order.note)
