"""Each row of the docs' retention table: the named mechanism deletes old rows, and keeps recent rows.

A case makes old rows, then recent rows, then runs the mechanism that the docs name. So it yields twice.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select, update

from pypi_assets.catalog import counters as counted
from pypi_assets.catalog import pruning
from pypi_assets.catalog.coordination.claims import claim_workload
from pypi_assets.catalog.counters import add_counts, read_counts
from pypi_assets.catalog.derived.visits import begin_visits
from pypi_assets.catalog.ledger.epochs import note_change
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.followed import mark_projects
from pypi_assets.catalog.observed.index_state import replace_list, replace_pages
from pypi_assets.catalog.publications.allocated_names import allocate_version, begin_build
from pypi_assets.catalog.publications.journal_deliveries import NewLetter, delete_letter, letters_of, store_letters
from pypi_assets.catalog.reads.read_outcomes import FinishedRead, ReadOutcome
from pypi_assets.catalog.reads.stored_contents import store_shared_details
from pypi_assets.catalog.scopes import discovery
from pypi_assets.catalog.scopes.discovery import discover
from pypi_assets.catalog.scopes.members import remove_scope
from pypi_assets.catalog.scopes.stored_scopes import create_scope, require_scope
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    dumps,
    extract_packs,
    leases,
    metadata,
    projects,
    read_attempts,
    requested_visits,
    scope_edges,
    visit_queue,
    visit_statuses,
)
from pypi_assets.catalog.work.finished_workloads import forget_visits
from pypi_assets.catalog.work.read_queue import claim_reads, finish_reads, queue_reads
from pypi_assets.catalog.work.visit_queue import queue_visits, range_workload
from pypi_assets.dumps.compaction import compact
from pypi_assets.extracts.packs import PackedExtract
from pypi_assets.index.models import BrokenEntry
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.settings import load_settings
from pypi_assets.upkeep.deletion import DeletionChain, Pruning, kept_from
from pypi_assets_tests.extracts.stored_packs import put
from pypi_assets_tests.keeping.kept_model import KeptModel
from pypi_assets_tests.upkeep.simulated_upkeep import Upkeep

DOCS = Path(__file__).parents[2] / "docs" / "operations.md"
URL = "https://index.example.org/simple/"
DAY_HOURS = 24.0
OLD_HOURS = 200 * DAY_HOURS
"""Older than anything is kept by default."""

Case = Callable[[Upkeep], Iterator[None]]


def pruned_tables() -> dict[str, list[str]]:
    """Return the tables of each docs row that names a deletion mechanism, by the first table."""
    section = DOCS.read_text().partition("\n## What the catalog keeps\n")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    names = [re.findall(r"`(\w+)`", row[1]) for row in rows if row[3].strip()]
    return {of_row[0]: of_row for of_row in names}


def keys_of(upkeep: Upkeep, name: str) -> set[tuple[Any, ...]]:
    with upkeep.catalog.read() as connection:
        return {tuple(row) for row in connection.execute(select(*metadata.tables[name].primary_key))}


def chain(upkeep: Upkeep) -> DeletionChain:
    settings = load_settings(home=upkeep.folder, contact="test@example.org")
    return DeletionChain(upkeep.catalog, upkeep.storage, kept_from(settings))


def prune(upkeep: Upkeep) -> None:
    """Run the catalog part of `pypi-assets admin prune` and the nightly clean-up."""
    chain(upkeep).clean_rows()


def file_ids(upkeep: Upkeep) -> list[int]:
    with upkeep.catalog.read() as connection:
        return list(connection.scalars(select(distributions.c.id).order_by(distributions.c.id)))


def visited(upkeep: Upkeep) -> Iterator[None]:
    def visit() -> None:
        with upkeep.catalog.write() as connection:
            [project_id] = connection.scalars(select(projects.c.id).where(projects.c.normalized == "a"))
            now = upkeep.catalog.clock()
            [visit_id] = begin_visits(connection, [project_id], "range", "range:1-2", now).values()
            connection.execute(insert(visit_statuses).values(visit_id=visit_id, at=now, status="full"))

    upkeep.change()
    visit()
    yield
    visit()
    yield
    prune(upkeep)


def requested(upkeep: Upkeep) -> Iterator[None]:
    def request() -> None:
        with upkeep.catalog.write() as connection:
            [project_id] = connection.scalars(select(projects.c.id).where(projects.c.normalized == "a"))
            now = upkeep.catalog.clock()
            row = {"project_id": project_id, "requested_at": now, "before_visit": 0, "ended_at": now, "visit": 1}
            connection.execute(insert(requested_visits).values(row))

    upkeep.change()
    request()
    yield
    request()
    yield
    prune(upkeep)


def attempted(upkeep: Upkeep) -> Iterator[None]:
    def attempt() -> None:
        row = {"attempt": 1, "worker": "w", "seconds": 1.0, "outcome": "data", "bytes_fetched": 1, "requests": 1}
        with upkeep.catalog.write() as connection:
            row |= {"distribution_id": file_ids(upkeep)[0], "started_at": upkeep.catalog.clock()}
            connection.execute(insert(read_attempts).values(row))

    upkeep.change()
    attempt()
    yield
    attempt()
    yield
    prune(upkeep)


def listed(upkeep: Upkeep) -> Iterator[None]:
    """Reprocess a file: its old lists are deleted, and its current lists stay."""
    upkeep.small.add(1, "demo", "1", "demo-1.tar.gz", modules=("m",), requires_dist=("base",))
    yield
    upkeep.small.reprocess("demo-1.tar.gz", ("n",), ("other",))
    yield
    prune(upkeep)


def detailed(upkeep: Upkeep) -> Iterator[None]:
    def store(content: bytes) -> None:
        with upkeep.catalog.write() as connection:
            [id_] = store_shared_details(connection, [content]).values()
            connection.execute(update(distribution_data).values(shared_details_id=id_))

    upkeep.change()
    store(b'{"summary":"a"}')
    yield
    store(b'{"summary":"b"}')
    yield
    prune(upkeep)


def dumped(upkeep: Upkeep) -> Iterator[None]:
    for _ in range(5):
        upkeep.dump_range()
    list(compact(upkeep.catalog, upkeep.storage, growth=1))
    upkeep.wait(2 * DAY_HOURS)
    upkeep.clean()
    with upkeep.catalog.read() as connection:
        assert connection.scalar(select(dumps.c.id).where(dumps.c.state == "dropped").limit(1))
    yield
    for _ in range(5):
        upkeep.dump_range()
    list(compact(upkeep.catalog, upkeep.storage, growth=1))
    upkeep.wait(2 * DAY_HOURS)
    upkeep.clean()
    yield
    prune(upkeep)


def versioned(upkeep: Upkeep) -> Iterator[None]:
    for age in range(2):
        begin_build(upkeep.catalog, "modules", allocate_version(upkeep.catalog, 1 + age))
        yield
    prune(upkeep)


def packed(upkeep: Upkeep) -> Iterator[None]:
    """Move an extract into a newer pack: the old pack is deleted, and the referenced pack stays."""

    def pack(content: bytes) -> None:
        name = put(upkeep.storage, [PackedExtract("demo", "demo-1.tar.gz", None, content)])
        with upkeep.catalog.write() as connection:
            row = insert(extract_packs).values(name=name, size=1).returning(extract_packs.c.id)
            place = {"pack_id": connection.scalar(row), "pack_offset": 0, "pack_length": 1}
            connection.execute(update(distribution_data).values(place))

    upkeep.small.add(1, "demo", "1", "demo-1.tar.gz")
    pack(b"one")
    yield
    pack(b"two")
    yield
    upkeep.wait(0)
    chain(upkeep).clean_packs()


def queued_reads(upkeep: Upkeep) -> Iterator[None]:
    def queue(file_id: int) -> None:
        with upkeep.catalog.write() as connection:
            of_file = distribution_data.c.distribution_id == file_id
            connection.execute(update(distribution_data).where(of_file).values(outcome=ReadOutcome.PENDING))
            queue_reads(connection, [(file_id, 1)])

    upkeep.change()
    first, second, *_ = file_ids(upkeep)
    queue(first)
    yield
    queue(second)
    yield
    with upkeep.catalog.write() as connection:
        now = upkeep.catalog.clock()
        [read] = claim_reads(connection, None, None, worker="w", now=now, until=now + 60, limit=1)
        assert finish_reads(connection, [FinishedRead(read.distribution_id, ReadOutcome.ERROR)], "w", now)


def queued_visits(upkeep: Upkeep) -> Iterator[None]:
    done, under_way = upkeep.change(), SerialRange(upkeep.serial, upkeep.serial + 3)
    for serials in (done, under_way):
        with upkeep.catalog.write() as connection:
            queue_visits(connection, range_workload(serials), [(1, 0, serials.end)])
            connection.execute(update(visit_queue).values(state="done"))
        yield
    for serials in (done, under_way):  # the second range is not complete
        forget_visits(upkeep.catalog, range_workload(serials))


def folded(upkeep: Upkeep) -> Iterator[None]:
    """Fold counts: all appended rows become one row with the same sum."""
    catalog = upkeep.catalog

    def add(connection: Connection) -> None:
        add_counts(connection, {"a": 1})

    for _ in range(5):
        catalog.transact(add)
    yield
    yield
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counted, "_FOLDED_EVERY", 1)
        catalog.transact(add)
    with catalog.read() as connection:
        assert read_counts(connection) == {"a": 6}
    assert len(keys_of(upkeep, "counters")) == 1


def claimed(upkeep: Upkeep) -> Iterator[None]:
    def claim(worker: str) -> None:
        now = upkeep.catalog.clock()
        with upkeep.catalog.write() as connection:
            claim_workload(connection, "range:1-2", worker, now, now + 300)

    with upkeep.catalog.write() as connection:
        claim_workload(connection, "range:1-2", "dead", upkeep.catalog.clock(), upkeep.catalog.clock() + 300)
    yield
    with upkeep.catalog.write() as connection:  # already active when the other one was
        claim_workload(connection, "range:1-2", "living", 0.0, upkeep.catalog.clock() + 300)
    yield
    claim("next")


def leased(upkeep: Upkeep) -> Iterator[None]:
    for name in ("killed", "held"):
        now = upkeep.catalog.clock()
        with upkeep.catalog.write() as connection:
            row = {"name": name, "holder": name, "taken_at": now, "expires_at": now + 3_600}
            connection.execute(insert(leases).values(row))
        yield
    assert not chain(upkeep).clean_all(Pruning(lambda _: 0, lambda _: 0), lambda _: None).failures


def kept_aside(upkeep: Upkeep) -> Iterator[None]:
    upkeep.change()
    with upkeep.catalog.write() as connection:
        replace_pages(connection, {1: [BrokenEntry("no url", "{}")]}, 1.0)
    yield
    with upkeep.catalog.write() as connection:
        replace_list(connection, [BrokenEntry("no name", "{}")], 2.0)
    yield
    with upkeep.catalog.write() as connection:
        replace_pages(connection, {1: []}, 3.0)


def changed_late(upkeep: Upkeep) -> Iterator[None]:
    """Change serial 4: it replaces the change at 5, and the change at 3 stays."""

    def change(serial: int) -> None:
        with upkeep.catalog.write() as connection:
            note_change(connection, serial)

    for _ in range(2):
        upkeep.change()
    change(3)
    change(5)
    yield
    yield
    change(4)
    assert keys_of(upkeep, "epochs") == {(3,), (4,)}


def marked(upkeep: Upkeep) -> Iterator[None]:
    """Search a scope: it takes the oldest marks and leaves newer marks to the next search."""

    def mark(connection: Connection) -> None:
        mark_projects(connection, [1])

    upkeep.change()
    upkeep.catalog.transact(partial(create_scope, plan=plan("tools"), serial=1, index_url=URL, now=0.0))
    upkeep.catalog.transact(mark)
    yield
    upkeep.catalog.transact(mark)
    yield
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discovery, "_MARKS_AT_ONCE", 1)
        patch.setattr(discovery, "mark_projects", lambda *_: None)  # entering projects are marked too
        upkeep.catalog.transact(partial(discover, now=0.0))


def scoped(upkeep: Upkeep) -> Iterator[None]:
    upkeep.change()
    for name in ("old", "young"):
        upkeep.catalog.transact(partial(create_scope, plan=plan(name), serial=1, index_url=URL, now=0.0))
        yield
    remove_old_scope(upkeep)


def entered(upkeep: Upkeep) -> Iterator[None]:
    upkeep.change()
    for name in ("old", "young"):
        scope = upkeep.catalog.transact(partial(create_scope, plan=plan(name), serial=1, index_url=URL, now=0.0))
        upkeep.catalog.transact(partial(discover, now=0.0))
        with upkeep.catalog.write() as connection:
            edge = {"scope_id": scope.id, "project_id": 1, "required": "b", "start": 1}
            connection.execute(insert(scope_edges).values(edge))
        yield
    remove_old_scope(upkeep)


def kept(upkeep: Upkeep) -> Iterator[None]:
    upkeep.change()
    model = KeptModel(upkeep.catalog, upkeep.storage, first_id=9_000)
    for number, name in enumerate(("old", "young")):
        model.add_scope(name, None, [9_000 + number])
        model.keep(model.add_file(9_000 + number, number, 100, number))
        yield
    remove_old_scope(upkeep)
    DeletionChain(upkeep.catalog, upkeep.storage, kept_from(load_settings())).clean_files()


def delivered(upkeep: Upkeep) -> Iterator[None]:
    def store(cursor: str, expected: str | None) -> None:
        letters = [NewLetter("a", cursor, b"[]")]
        assert store_letters(upkeep.catalog, "hook", letters, cursor, 1, expected)

    upkeep.change()
    store("first", None)
    yield
    store("second", "first")
    yield
    with upkeep.catalog.read() as connection:
        first = next(letters_of(connection))
    delete_letter(upkeep.catalog, first.id)


def plan(name: str) -> ScopePlan:
    return ScopePlan(name, {"a": frozenset()})


def remove_old_scope(upkeep: Upkeep) -> None:
    with upkeep.catalog.read() as connection:
        scope = require_scope(connection, "old")
    upkeep.catalog.transact(partial(remove_scope, scope=scope))


CASES: dict[str, Case] = {
    "scope_marks": marked,
    "scopes": scoped,
    "scope_projects": entered,
    "kept_files": kept,
    "visits": visited,
    "requested_visits": requested,
    "read_attempts": attempted,
    "name_lists": listed,
    "shared_details": detailed,
    "dumps": dumped,
    "leveldb_versions": versioned,
    "extract_packs": packed,
    "read_queue": queued_reads,
    "visit_queue": queued_visits,
    "counters": folded,
    "workload_claims": claimed,
    "leases": leased,
    "journal_letters": delivered,
    "broken_entries": kept_aside,
    "epochs": changed_late,
}


def test_each_documented_deletion_has_a_case() -> None:
    assert sorted(CASES) == sorted(pruned_tables())


@pytest.mark.nightly
@pytest.mark.parametrize("names", pruned_tables().values(), ids=lambda names: names[0])
def test_documented_mechanism_deletes_only_old_rows(
    upkeep: Upkeep, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "FIRST_VISITS_KEPT", 0)
    case = CASES[names[0]](upkeep)
    next(case)
    old = {name: keys_of(upkeep, name) for name in names}
    upkeep.wait(OLD_HOURS)
    next(case)
    young = {name: keys_of(upkeep, name) - old[name] for name in names}
    assert next(case, None) is None
    for name in names:
        left = keys_of(upkeep, name)
        assert young[name] or name in {"counters", "epochs"}  # their cases check what stays
        assert old[name] - left, f"no old row of {name} was deleted"
        assert young[name] <= left, f"{name} lost recent rows"
