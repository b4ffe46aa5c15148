"""Contents are read by id, in one statement a call, and those of the last call are kept."""

import zlib

from sqlalchemy import event, insert

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.stored_contents import StoredContents, content_digest
from pypi_assets.catalog.tables import shared_details


def test_what_the_last_call_loaded_is_kept(catalog: Catalog) -> None:
    contents = {number: f'{{"summary":"{number}"}}'.encode() for number in range(1, 6)}
    with catalog.write() as connection:
        for number, content in contents.items():
            row = {"id": number, "sha256": content_digest(content), "content": zlib.compress(content)}
            connection.execute(insert(shared_details).values(row))
    statements: list[str] = []
    event.listen(catalog.engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    with catalog.read() as connection:
        stored = StoredContents(connection, shared_details)
        statements.clear()
        assert stored.load([1, 2, None, 2]) == {1: contents[1], 2: contents[2]}
        assert stored.load([2, 3, 4, 5]) == {number: contents[number] for number in (2, 3, 4, 5)}
        assert len(statements) == 2
        assert stored.load([5, 3]) == {3: contents[3], 5: contents[5]}
        assert stored.load([None]) == {}
        assert len(statements) == 2
