"""Checkpoints are stored whole, and what cannot be read is discarded."""

from sqlalchemy import func, select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.checkpoint import (
    Checkpoint,
    StoredCheckpoint,
    discard_checkpoints,
    load_checkpoints,
    store_checkpoints,
)
from pypi_assets.catalog.tables import checkpoints
from pypi_assets_tests.catalog.ended_visits import enter


def checkpoint(serial: int) -> Checkpoint:
    files = {"demo-1.0.zip": (0, 1, 3, -1), "demo-2.0.zip": (0, 0, -1, -1)}
    facts = {"demo-1.0.zip": 2**47 + 1, "demo-2.0.zip": -1}
    unexplained = 3, 1_780_000_000.5
    fixed = serial, frozenset(), False, [("1.0", 0)], files
    return Checkpoint(serial, 0, 3, 5, *fixed, *unexplained, ("demo-2.0.zip",), facts)


def test_a_checkpoint_is_replaced_by_the_next_one(catalog: Catalog):
    with catalog.write() as connection:
        one, other, without = (project.id for project in enter(connection, 3))
        store_checkpoints(connection, {one: StoredCheckpoint(checkpoint(7), 5)})
        stored = {one: StoredCheckpoint(checkpoint(9), 8), other: StoredCheckpoint(checkpoint(8), None)}
        store_checkpoints(connection, stored)
        assert load_checkpoints(connection, [one, other, without]) == stored
        discard_checkpoints(connection, [other, without])
        assert load_checkpoints(connection, [one, other]) == {one: stored[one]}
        assert connection.execute(select(checkpoints.c.serial, checkpoints.c.page_serial)).all() == [(9, 8)]


def test_what_is_damaged_or_of_another_version_is_discarded(catalog: Catalog):
    with catalog.write() as connection:
        one, other = (project.id for project in enter(connection, 2))
        stored = {id_: StoredCheckpoint(checkpoint(7), 5) for id_ in (one, other)}
        store_checkpoints(connection, stored)
        connection.execute(update(checkpoints).where(checkpoints.c.project_id == one).values(content=b"damaged"))
        assert load_checkpoints(connection, [one, other]) == {other: stored[other]}
        assert connection.scalar(select(func.count()).select_from(checkpoints)) == 1
