"""Contents as the catalog stores them: as JSON, once each by their hash, in `name_lists` and `shared_details`.

Names of broken distributions can hold half a surrogate pair, which UTF-8 cannot.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from isal import isal_zlib
from sqlalchemy import Connection, Table, select

from pypi_assets.catalog.database import sent_values


def to_json(value: object) -> bytes:
    """Compact JSON. Half a surrogate pair becomes JSON's own escape of it."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def from_json(content: bytes | str) -> Any:
    """What `to_json` was given, with lists for tuples."""
    half_a_pair = r"\ud" in content if isinstance(content, str) else rb"\ud" in content
    return json.loads(content) if half_a_pair else orjson.loads(content)


def to_dump(content: bytes) -> object:
    """Stored JSON as a value of a dump's row: as it is, or decoded where it holds half a surrogate pair."""
    return from_json(content) if rb"\ud" in content else orjson.Fragment(content)


def to_utf8_json(value: object) -> bytes:
    """Compact JSON for others, in UTF-8: half a surrogate pair becomes `?`."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return orjson.dumps(_valid_unicode(value))


def _valid_unicode(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, list):
        return [_valid_unicode(item) for item in value]
    if isinstance(value, dict):
        return {name: _valid_unicode(item) for name, item in value.items()}
    return value


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
