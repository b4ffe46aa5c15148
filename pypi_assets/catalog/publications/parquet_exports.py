"""The names of Parquet exports, each allocated once. The manifests in the storage decide which exports there are."""

from sqlalchemy import Connection, func, insert, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import lock_state
from pypi_assets.catalog.tables import parquet_exports


def allocate_export(catalog: Catalog, serial: int) -> str:
    """A directory for one attempt to export what is live at `serial`: `0-1350`, then `0-1350.2` and so on."""

    def allocate(connection: Connection) -> str:
        lock_state(connection, exclusive=True)
        attempts = connection.scalar(select(func.count()).where(parquet_exports.c.serial == serial)) or 0
        directory = f"0-{serial}.{attempts + 1}" if attempts else f"0-{serial}"
        row = {"serial": serial, "directory": directory, "started_at": catalog.clock()}
        connection.execute(insert(parquet_exports).values(**row))
        return directory

    return catalog.transact(allocate)
