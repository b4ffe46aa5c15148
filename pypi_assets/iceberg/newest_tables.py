"""The object `latest.json`, which names the newest metadata of all tables, for readers without the catalog."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import orjson

from pypi_assets.dumps.cover import Cover
from pypi_assets.dumps.held_dumps import HeldDumps
from pypi_assets.storage.store import ObjectNotFoundError, Storage

FORMAT = 1


@dataclass(frozen=True, slots=True)
class NewestTable:
    """The newest state of a table: the location of its metadata, its snapshot, and the number of its rows."""

    metadata: str
    snapshot_id: int
    rows: int


@dataclass(frozen=True, slots=True)
class NewestTables:
    """The newest snapshots of all tables, which have one serial. `dumps` are encoded as in `HeldDumps`."""

    namespace: str
    serial: int
    dumps: tuple[str, ...]
    tables: Mapping[str, NewestTable]

    def encode(self) -> bytes:
        """Return the JSON. It contains no time, so writing it again gives the same bytes."""
        tables = {name: asdict(table) for name, table in self.tables.items()}
        fields = {
            "format": FORMAT,
            "namespace": self.namespace,
            "serial": self.serial,
            "dumps": self.dumps,
            "tables": tables,
        }
        return orjson.dumps(fields, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


NEWEST_PATH = "tables/latest.json"


def write_newest(storage: Storage, newest: NewestTables) -> None:
    storage.put(NEWEST_PATH, newest.encode())


def read_newest(storage: Storage) -> NewestTables | None:
    """Return the newest state of the tables; None before the first, or if this version cannot read it."""
    try:
        fields = orjson.loads(storage.get(NEWEST_PATH))
        if fields["format"] != FORMAT:
            return None
        tables = {name: NewestTable(**table) for name, table in fields["tables"].items()}
        return NewestTables(str(fields["namespace"]), int(fields["serial"]), tuple(fields["dumps"]), tables)
    except (ObjectNotFoundError, AttributeError, KeyError, TypeError, ValueError):
        return None


def are_tables_due(storage: Storage, cover: Cover) -> bool:
    """Check whether an update would add a snapshot. A person makes the first tables, so none is due before them."""
    newest = read_newest(storage)
    return newest is not None and bool(cover.dumps) and newest.dumps != tuple(HeldDumps.of(cover.dumps).encode())
