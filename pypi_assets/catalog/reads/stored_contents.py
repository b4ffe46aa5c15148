"""Contents that are stored once each, by their hash: the tables `name_lists` and `shared_details`."""

import hashlib
from collections.abc import Iterable, Mapping

from isal import isal_zlib
from sqlalchemy import Connection, Table, select

from pypi_assets.catalog.database import sent_values


def content_digest(content: bytes) -> str:
    """The hash by which a content is stored, in hex."""
    return hashlib.sha256(content).hexdigest()


class StoredContents:
    """Reads contents of `table` by id, and keeps those of the last call: files of one release have the same ones."""

    def __init__(self, connection: Connection, table: Table) -> None:
        self._connection = connection
        self._table = table
        self._last: dict[int, bytes] = {}

    def load(self, ids: Iterable[int | None]) -> Mapping[int, bytes]:
        """The contents with these ids, in one statement at most; None is left out."""
        wanted = {content_id for content_id in ids if content_id is not None}
        loaded = self._last = {content_id: self._last[content_id] for content_id in wanted & self._last.keys()}
        if missing := sorted(wanted - loaded.keys()):
            table = self._table.c
            sent = sent_values(self._connection, table.id, missing)
            query = select(table.id, table.content).where(table.id.in_(select(sent.c.value)))
            for content_id, content in self._connection.execute(query):
                loaded[content_id] = isal_zlib.decompress(content)
        return loaded
