"""Lists of names (modules, requirements), each stored once by the hash of its content.

Of each list of modules the top-level names are stored as well, so that the lists that hold a module are found.
"""

import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from sqlalchemy import Connection, select, update

from pypi_assets.catalog.database import at_a_time, insert_missing, storable
from pypi_assets.catalog.reads.stored_contents import StoredContents, content_digest
from pypi_assets.catalog.reads.stored_json import to_json
from pypi_assets.catalog.tables import module_roots, name_lists
from pypi_assets.index.models import LONGEST_NAME


def store_lists(
    connection: Connection, requirements: Iterable[Sequence[str]], modules: Iterable[Sequence[str]] = ()
) -> dict[tuple[str, ...], int]:
    """Stores those of the lists that are not there yet; returns the id of each.

    The lists of `modules` can be found by their top-level names afterwards.
    """
    of_modules = {tuple(names) for names in modules}
    contents = {names: to_json(names) for names in {*map(tuple, requirements), *of_modules}}
    digests = {names: content_digest(content) for names, content in contents.items()}
    found = _find_lists(connection, set(digests.values()))
    rows = [
        {
            "sha256": digests[names],
            "length": len(names),
            "content": zlib.compress(content),
            "has_roots": names in of_modules,
        }
        for names, content in contents.items()
        if digests[names] not in found
    ]
    insert_missing(connection, name_lists, sorted(rows, key=lambda row: str(row["sha256"])))
    rootless = {names for names in of_modules if not found.get(digests[names], (0, False))[1]}
    found |= _find_lists(connection, {str(row["sha256"]) for row in rows})
    ids = {names: found[digest][0] for names, digest in digests.items()}
    _store_roots(connection, {ids[names]: names for names in rootless})
    _mark_rooted(connection, [ids[names] for names in rootless if not found[digests[names]][1]])
    return ids


def _find_lists(connection: Connection, digests: Collection[str]) -> dict[str, tuple[int, bool]]:
    """Of each list that is there, its id and whether its top-level names are stored."""
    found: dict[str, tuple[int, bool]] = {}
    for wanted in at_a_time(sorted(digests)):
        query = select(name_lists.c.sha256, name_lists.c.id, name_lists.c.has_roots).where(
            name_lists.c.sha256.in_(wanted)
        )
        found.update((row.sha256, (row.id, row.has_roots)) for row in connection.execute(query))
    return found


def _store_roots(connection: Connection, lists: Mapping[int, Sequence[str]]) -> None:
    rows = [{"name": root, "list_id": id_} for id_ in sorted(lists) for root in sorted({*map(_root, lists[id_])})]
    insert_missing(connection, module_roots, rows)


def _mark_rooted(connection: Connection, ids: Sequence[int]) -> None:
    """Of lists that were stored as requirements first."""
    for some in at_a_time(sorted(ids)):
        connection.execute(update(name_lists).where(name_lists.c.id.in_(some)).values(has_roots=True))


def _root(module: str) -> str:
    return storable(module.partition(".")[0][:LONGEST_NAME])


def lists_with_module(connection: Connection, module: str) -> Iterator[int]:
    """The ids of the lists that hold `module`."""
    of_root = connection.scalars(select(module_roots.c.list_id).where(module_roots.c.name == _root(module))).all()
    for ids in at_a_time(of_root):
        lists = StoredLists(connection).load(ids)
        yield from (list_id for list_id in ids if module in lists[list_id])


class StoredLists:
    """Reads lists by id, and keeps those of the last call: files of one release have the same ones."""

    def __init__(self, connection: Connection) -> None:
        self._contents = StoredContents(connection, name_lists)

    def load(self, ids: Iterable[int | None]) -> dict[int, list[str]]:
        """The lists with these ids; None is left out."""
        return {list_id: json.loads(content) for list_id, content in self.load_json(ids).items()}

    def load_json(self, ids: Iterable[int | None]) -> Mapping[int, bytes]:
        """The lists with these ids, each as `to_json` writes it; None is left out."""
        return self._contents.load(ids)


def list_digest(names: Sequence[str]) -> str:
    """The hash by which a list is stored, in hex."""
    return content_digest(to_json(names))
