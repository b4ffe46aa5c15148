"""Restore the rows of dumps from their manifests in the storage, for a catalog that has lost them."""

import json
from collections.abc import Sequence

from sqlalchemy import Connection, insert, select, update

from pypi_assets.catalog.database import Catalog, upsert
from pypi_assets.catalog.ledger.range_ledger import lock_state
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_columns import DumpFile, DumpKind, Leaves
from pypi_assets.catalog.publications.dump_registry import DumpState
from pypi_assets.catalog.tables import catalog_state, dump_files, dumps


def restore_dump(
    catalog: Catalog,
    *,
    kind: DumpKind,
    serials: SerialRange,
    directory: str,
    sequence: int,
    shards: int,
    inputs: Sequence[str],
    files: Sequence[DumpFile],
    columns: Sequence[str],
    joined: Leaves | None = None,
) -> None:
    """Insert a dump that has a manifest in the storage. If it is known as committed, do nothing."""

    def restore(connection: Connection) -> None:
        lock_state(connection, exclusive=True)
        known = connection.execute(select(dumps).where(dumps.c.directory == directory)).first()
        if known is not None and known.state == DumpState.COMMITTED:
            return
        values = {
            "kind": kind,
            "start": serials.start,
            "end": serials.end,
            "sequence": sequence,
            "shards": shards,
            "state": DumpState.COMMITTED,
            "inputs": json.dumps(list(inputs)),
            "committed_at": catalog.clock(),
            "columns": json.dumps(list(columns)),
            "leaf_count": joined and joined.count,
            "leaf_digest": joined and joined.digest,
        }
        if known is None:
            values |= {"directory": directory, "opened_at": catalog.clock()}
            dump_id = connection.execute(insert(dumps).values(values).returning(dumps.c.id)).scalar_one()
        else:
            dump_id = known.id
            connection.execute(update(dumps).where(dumps.c.id == dump_id).values(values))
        _restore_files(connection, dump_id, files)
        connection.execute(
            update(catalog_state)
            .where(catalog_state.c.next_dump_sequence <= sequence)
            .values(next_dump_sequence=sequence + 1)
        )

    catalog.transact(restore)


def _restore_files(connection: Connection, dump_id: int, files: Sequence[DumpFile]) -> None:
    """Replace the dump's files with `files`."""
    connection.execute(update(dump_files).where(dump_files.c.dump_id == dump_id).values(frozen=False))
    rows = [
        {
            "dump_id": dump_id,
            "shard": file.shard,
            "name": file.name,
            "rows": file.rows,
            "size": file.size,
            "sha256": file.sha256,
            "frozen": True,
        }
        for file in files
    ]
    upsert(connection, dump_files, rows, key=("dump_id", "name"), update=("shard", "rows", "size", "sha256", "frozen"))
