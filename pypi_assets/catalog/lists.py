"""Lists of names (modules, requirements), each stored once by the hash of its content."""

import hashlib
import json
import zlib
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence

import orjson
from sqlalchemy import Connection, select

from pypi_assets.catalog.database import insert_missing
from pypi_assets.catalog.tables import name_lists

_CACHED_LISTS = 4_096


def store_lists(connection: Connection, lists: Iterable[Sequence[str]]) -> dict[tuple[str, ...], int]:
    """Stores those of `lists` that are not there yet; returns the id of each."""
    contents = {tuple(names): to_json(names) for names in lists}
    digests = {names: _digest(content) for names, content in contents.items()}
    found = _find_lists(connection, set(digests.values()))
    rows = [
        {"sha256": digests[names], "length": len(names), "content": zlib.compress(content)}
        for names, content in contents.items()
        if digests[names] not in found
    ]
    insert_missing(connection, name_lists, sorted(rows, key=lambda row: str(row["sha256"])))
    found |= _find_lists(connection, {str(row["sha256"]) for row in rows})
    return {names: found[digest] for names, digest in digests.items()}


def _find_lists(connection: Connection, digests: Collection[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    wanted = sorted(digests)
    for start in range(0, len(wanted), 1_000):
        query = select(name_lists.c.sha256, name_lists.c.id).where(
            name_lists.c.sha256.in_(wanted[start : start + 1_000])
        )
        found.update((sha256, list_id) for sha256, list_id in connection.execute(query))
    return found


class StoredLists:
    """Reads lists by id, keeping the last few thousand: the files of a release share theirs."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cache: OrderedDict[int, list[str]] = OrderedDict()

    def load(self, ids: Iterable[int | None]) -> dict[int, list[str]]:
        """The lists with these ids; None is left out."""
        wanted = {list_id for list_id in ids if list_id is not None}
        loaded = {list_id: self._cache[list_id] for list_id in wanted if list_id in self._cache}
        missing = sorted(wanted - loaded.keys())
        for start in range(0, len(missing), 1_000):
            query = select(name_lists.c.id, name_lists.c.content).where(
                name_lists.c.id.in_(missing[start : start + 1_000])
            )
            for list_id, content in self._connection.execute(query):
                loaded[list_id] = self._cache[list_id] = json.loads(zlib.decompress(content))
        while len(self._cache) > _CACHED_LISTS:
            self._cache.popitem(last=False)
        return loaded


def list_digest(names: Sequence[str]) -> str:
    """The hash by which a list is stored, in hex."""
    return _digest(to_json(names))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def to_json(value: object) -> bytes:
    """Compact JSON. Half a surrogate pair, which UTF-8 cannot say, stays as JSON's own escape of it."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
