"""Checkpoints of projects as the catalog stores them. Any of them can be discarded: the next visit makes a new one."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, delete, select

from pypi_assets.catalog.database import at_a_time, upsert
from pypi_assets.catalog.derived.checkpoint import Checkpoint, CheckpointError
from pypi_assets.catalog.tables import checkpoints


class StoredCheckpoint(NamedTuple):
    """A checkpoint, and the serial of the page whose facts it has; None where it lacks some of them."""

    checkpoint: Checkpoint
    page_serial: int | None


def load_checkpoints(connection: Connection, project_ids: Collection[int]) -> dict[int, StoredCheckpoint]:
    """The checkpoints of those of the projects that have one. What cannot be read is discarded."""
    found: dict[int, StoredCheckpoint] = {}
    damaged: list[int] = []
    for ids in at_a_time(sorted(project_ids)):
        for row in connection.execute(select(checkpoints).where(checkpoints.c.project_id.in_(ids))):
            try:
                checkpoint = Checkpoint.decode(row.content)
            except CheckpointError:
                damaged.append(row.project_id)
            else:
                found[row.project_id] = StoredCheckpoint(checkpoint, row.page_serial)
    discard_checkpoints(connection, damaged)
    return found


def store_checkpoints(connection: Connection, stored: Mapping[int, StoredCheckpoint]) -> None:
    """Stores checkpoints by project id, in place of the ones before."""
    rows = [
        {
            "project_id": project_id,
            "serial": one.checkpoint.serial,
            "page_serial": one.page_serial,
            "content": one.checkpoint.encode(),
        }
        for project_id, one in sorted(stored.items())
    ]
    upsert(connection, checkpoints, rows, key=("project_id",), update=("serial", "page_serial", "content"))


def discard_checkpoints(connection: Connection, project_ids: Collection[int]) -> None:
    """Discards the checkpoints of these projects, whose past has changed: they are folded from scratch next time."""
    for ids in at_a_time(sorted(project_ids)):
        connection.execute(delete(checkpoints).where(checkpoints.c.project_id.in_(ids)))
