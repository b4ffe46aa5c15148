"""A checkpoint holds the complete state of a project in a few bytes per file."""

import zlib

import orjson
import pytest
from sqlalchemy import func, select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.checkpoint import (
    Checkpoint,
    CheckpointError,
    StoredCheckpoint,
    captured,
    discard_checkpoints,
    load_checkpoints,
    state_of,
    store_checkpoints,
)
from pypi_assets.catalog.derived.file_history import fold
from pypi_assets.catalog.derived.seen_pages import Sighting
from pypi_assets.catalog.tables import checkpoints
from pypi_assets.index.models import ChangelogEvent
from pypi_assets_tests.catalog.ended_visits import enter
from pypi_assets_tests.simulated_index import version_of

WHEEL, SDIST, OTHER = "demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz", "demo-2.0.tar.gz"


def checkpoint() -> Checkpoint:
    rows = [
        ("1.0", f"add py3 file {WHEEL}"),
        ("2.0", f"add source file {OTHER}"),
        ("1.0", "yank release"),
        ("2.0", "release quarantined"),
        ("3", "yank release"),
    ]
    events = [ChangelogEvent("Demo", version, 0, action, 11 + n) for n, (version, action) in enumerate(rows)]
    pages = [Sighting(9, 9, {SDIST: False}, is_page=True), Sighting(15, 15, {WHEEL: True, SDIST: True}, is_page=True)]
    folded = fold(events, pages, known_since=10, events_through=15, version_of=version_of)
    assert folded is not None
    assert folded.checkpoint is not None
    return folded.checkpoint


def test_checkpoint_round_trips():
    made = checkpoint()
    made.facts = {WHEEL: 2**63 - 1, SDIST: 7}
    made.unsettled = (OTHER,)
    assert Checkpoint.decode(made.encode()) == made
    assert made.visible == {WHEEL: True, SDIST: True}
    assert made.files.keys() == {WHEEL, SDIST, OTHER}


def test_checkpoint_restores_the_project_state():
    made = checkpoint()
    state = state_of(made, version_of)
    again = captured(state)
    assert again == {"is_quarantined": False, "releases": made.releases, "files": made.files}
    assert state.visible == made.visible
    assert [release.text for release in state.releases.values() if release.is_named_alone] == ["3"]
    assert state.releases["2.0"].is_quarantined
    assert state.files[SDIST].is_baseline
    assert not state.files[WHEEL].is_baseline
    assert not state.traces


def test_checkpoint_takes_few_bytes_per_file():
    names = [f"demo-1.{n}-cp{py}-cp{py}-manylinux_2_17_x86_64.whl" for n in range(500) for py in (311, 312, 313, 314)]
    events = [ChangelogEvent("Demo", None, 0, f"add x file {name}", 5 * n + 1) for n, name in enumerate(names)]
    folded = fold(events, [], known_since=0, events_through=20_000, version_of=version_of)
    assert folded is not None
    assert folded.checkpoint is not None
    assert len(folded.checkpoint.encode()) < 20 * len(names)


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"not compressed",
        zlib.compress(b"not JSON"),
        zlib.compress(b"{}"),
        zlib.compress(b"[1]"),
        checkpoint().encode()[:-9],
        zlib.compress(orjson.dumps({"version": 99})),
    ],
)
def test_unreadable_checkpoint_is_rejected(damaged: bytes):
    with pytest.raises(CheckpointError):
        Checkpoint.decode(damaged)


def test_only_pages_between_first_page_and_checkpoint_keep_the_past():
    made = checkpoint()
    assert (made.first_page, made.known_since, made.serial) == (9, 10, 15)
    assert [serial for serial in (8, 9, 10, 11, 15) if made.allows(serial)] == [11, 15]
    made.first_page = None
    assert not made.allows(11)


def checkpoint_at(serial: int) -> Checkpoint:
    files = {"demo-1.0.zip": (0, 1, 3, -1), "demo-2.0.zip": (0, 0, -1, -1)}
    facts = {"demo-1.0.zip": 2**47 + 1, "demo-2.0.zip": -1}
    unexplained = 3, 1_780_000_000.5
    fixed = serial, frozenset(), False, [("1.0", 0)], files
    return Checkpoint(serial, 0, 3, 5, *fixed, *unexplained, ("demo-2.0.zip",), facts)


def test_checkpoint_is_replaced_by_the_next(catalog: Catalog):
    with catalog.write() as connection:
        one, other, without = (project.id for project in enter(connection, 3))
        store_checkpoints(connection, {one: StoredCheckpoint(checkpoint_at(7), 5)})
        stored = {one: StoredCheckpoint(checkpoint_at(9), 8), other: StoredCheckpoint(checkpoint_at(8), None)}
        store_checkpoints(connection, stored)
        assert load_checkpoints(connection, [one, other, without]) == stored
        discard_checkpoints(connection, [other, without])
        assert load_checkpoints(connection, [one, other]) == {one: stored[one]}
        assert connection.execute(select(checkpoints.c.serial, checkpoints.c.page_serial)).all() == [(9, 8)]


def test_corrupt_or_outdated_checkpoint_is_discarded(catalog: Catalog):
    with catalog.write() as connection:
        one, other = (project.id for project in enter(connection, 2))
        stored = {id_: StoredCheckpoint(checkpoint_at(7), 5) for id_ in (one, other)}
        store_checkpoints(connection, stored)
        connection.execute(update(checkpoints).where(checkpoints.c.project_id == one).values(content=b"damaged"))
        assert load_checkpoints(connection, [one, other]) == {other: stored[other]}
        assert connection.scalar(select(func.count()).select_from(checkpoints)) == 1
