"""Contents that are stored once under their hash, in `name_lists` and `shared_details`.

For each list of modules, the top-level names are stored too, to find the lists that contain a module; for each list of
requirements, the projects that it names. Shared details are the same for most files of a release: summary, licence,
links, entry points, extras. A record's row has its other details, and refers to the shared ones.
"""

import hashlib
import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, NamedTuple

from isal import isal_zlib
from sqlalchemy import Connection, Table, select, update

from pypi_assets.catalog.database import at_a_time, insert_missing, sent_values, storable
from pypi_assets.catalog.reads.stored_json import from_json, to_json
from pypi_assets.catalog.tables import module_roots, name_lists, required_names, shared_details
from pypi_assets.distributions.record import SHARED_FIELDS, DistributionRecord, ModulesGrade
from pypi_assets.distributions.requirement_names import required_projects
from pypi_assets.index.models import LONGEST_NAME


def content_digest(content: bytes) -> str:
    """Return the hash under which a content is stored, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


class StoredContents:
    """A reader of contents of `table` by id. It caches the last contents, since files of a release share them."""

    def __init__(self, connection: Connection, table: Table) -> None:
        self._connection = connection
        self._table = table
        self._last: dict[int, bytes] = {}

    def load(self, ids: Iterable[int | None]) -> Mapping[int, bytes]:
        """Return the contents with these ids, with at most one statement. None is skipped."""
        wanted = {content_id for content_id in ids if content_id is not None}
        loaded = self._last = {content_id: self._last[content_id] for content_id in wanted & self._last.keys()}
        if missing := sorted(wanted - loaded.keys()):
            table = self._table.c
            sent = sent_values(self._connection, table.id, missing)
            query = select(table.id, table.content).where(table.id.in_(select(sent.c.value)))
            for content_id, content in self._connection.execute(query):
                loaded[content_id] = isal_zlib.decompress(content)
        return loaded


def store_lists(
    connection: Connection, requirements: Iterable[Sequence[str]], modules: Iterable[Sequence[str]] = ()
) -> dict[tuple[str, ...], int]:
    """Store those lists that are new. Return the id of each list.

    Afterwards, the lists of `modules` can be found by their top-level names, and the lists of `requirements` by the
    projects that they name.
    """
    of_requirements = {tuple(names) for names in requirements}
    of_modules = {tuple(names) for names in modules}
    contents = {names: to_json(names) for names in of_requirements | of_modules}
    ids = store_list_contents(
        connection, {contents[names] for names in of_requirements}, {contents[names] for names in of_modules}
    )
    return {names: ids[content] for names, content in contents.items()}


def store_list_contents(
    connection: Connection, requirements: Collection[bytes], modules: Collection[bytes]
) -> dict[bytes, int]:
    """Store lists like `store_lists`, but in the form of `to_json`. Only new lists are parsed."""
    of_modules, of_requirements = set(modules), set(requirements)
    digests = {content: content_digest(content) for content in of_requirements | of_modules}
    known = _find_lists(connection, set(digests.values()))
    names = {content: from_json(content) for content, digest in digests.items() if digest not in known}
    rows = [
        {
            "sha256": digests[content],
            "length": len(listed),
            "content": zlib.compress(content),
            "has_roots": content in of_modules,
            "has_required": content in of_requirements,
        }
        for content, listed in names.items()
    ]
    insert_missing(connection, name_lists, sorted(rows, key=lambda row: str(row["sha256"])))
    found = known | _find_lists(connection, {str(row["sha256"]) for row in rows})
    ids = {content: found[digest].id for content, digest in digests.items()}

    def listed(content: bytes) -> Sequence[str]:
        found: Sequence[str] = names.get(content) or from_json(content)
        return found

    rootless = {content for content in of_modules if not known.get(digests[content], _NEW).has_roots}
    _store_roots(connection, {ids[content]: listed(content) for content in rootless})
    _mark(connection, [ids[content] for content in rootless if not found[digests[content]].has_roots], "has_roots")
    unnamed = {content for content in of_requirements if not known.get(digests[content], _NEW).has_required}
    _store_required(connection, {ids[content]: listed(content) for content in unnamed})
    _mark(connection, [ids[one] for one in unnamed if not found[digests[one]].has_required], "has_required")
    return ids


class _StoredList(NamedTuple):
    """A stored list; whether its top-level names are stored, and whether the projects that it names are stored."""

    id: int
    has_roots: bool
    has_required: bool


_NEW = _StoredList(0, has_roots=False, has_required=False)


def _find_lists(connection: Connection, digests: Collection[str]) -> dict[str, _StoredList]:
    found: dict[str, _StoredList] = {}
    lists = name_lists.c
    for wanted in at_a_time(sorted(digests)):
        query = select(lists.sha256, lists.id, lists.has_roots, lists.has_required).where(lists.sha256.in_(wanted))
        rows = connection.execute(query.with_for_update(read=True, key_share=True))  # locked against pruning
        found.update((sha256, _StoredList(*one)) for sha256, *one in rows)
    return found


def _store_roots(connection: Connection, lists: Mapping[int, Sequence[str]]) -> None:
    rows = [{"name": root, "list_id": id_} for id_ in sorted(lists) for root in _roots(lists[id_])]
    insert_missing(connection, module_roots, rows)


def _store_required(connection: Connection, lists: Mapping[int, Sequence[str]]) -> None:
    rows = [
        {"name": name, "list_id": id_, "condition": condition}
        for id_ in sorted(lists)
        for name, condition in sorted(required_projects(lists[id_]).items())
        if len(name) <= LONGEST_NAME  # a longer name is not a project's name
    ]
    insert_missing(connection, required_names, rows)


def _mark(connection: Connection, ids: Sequence[int], flag: str) -> None:
    """Set a flag of lists that were first stored as lists of the other kind."""
    for chunk in at_a_time(sorted(ids)):
        connection.execute(update(name_lists).where(name_lists.c.id.in_(chunk)).values({flag: True}))


def _roots(modules: Iterable[str]) -> list[str]:
    """Return the top-level names, in order."""
    return sorted({_root(name) for name in {module.partition(".")[0] for module in modules}})


def _root(module: str) -> str:
    return storable(module.partition(".")[0][:LONGEST_NAME])


def lists_with_module(connection: Connection, module: str) -> Iterator[int]:
    """Yield the ids of the lists that contain `module`."""
    of_root = connection.scalars(select(module_roots.c.list_id).where(module_roots.c.name == _root(module))).all()
    for ids in at_a_time(of_root):
        lists = StoredLists(connection).load(ids)
        yield from (list_id for list_id in ids if module in lists[list_id])


class StoredLists:
    """A reader of lists by id. It caches the last lists, since files of a release share them."""

    def __init__(self, connection: Connection) -> None:
        self._contents = StoredContents(connection, name_lists)

    def load(self, ids: Iterable[int | None]) -> dict[int, list[str]]:
        """Return the lists with these ids. None is skipped."""
        return {list_id: json.loads(content) for list_id, content in self.load_json(ids).items()}

    def load_json(self, ids: Iterable[int | None]) -> Mapping[int, bytes]:
        """Return the lists with these ids, in the form of `to_json`. None is skipped."""
        return self._contents.load(ids)


def list_digest(names: Sequence[str]) -> str:
    """Return the hash under which a list is stored, in hexadecimal."""
    return content_digest(to_json(names))


_NO_DETAILS = frozenset(
    {
        *("filename", "kind", "project", "variant", "sha256", "size", "error", "metadata_version", "requires_python"),
        *("requires_dist", "modules"),
    }
)
"""The fields of a record that are not stored as JSON, or have another name there."""
_DETAILS = {one.name: one for one in fields(DistributionRecord) if one.name not in _NO_DETAILS}
OWN_DETAILS = tuple(name for name in _DETAILS if name not in SHARED_FIELDS)
"""The fields that are stored as JSON for each file, in its order, after the name."""
_NEVER_NULL = frozenset({"provides_extra", "stubs"})
"""Lists that are empty also for files that were not read."""


@dataclass(frozen=True, slots=True)
class RecordDetails:
    """The parts of a record that are stored as JSON: in its own row, and shared with other records (None if empty)."""

    own: str
    shared: bytes | None


def record_details(record: DistributionRecord) -> RecordDetails:
    """Return the details of a record. Both parts omit empty values, so that the same facts produce the same bytes.

    Only `import_names` can be present and empty: then the project declares that there is nothing to import.
    `entry_points` is null in the record's own part if the file was read and its entry points are unknown.
    `modules_grade` is omitted if it is exact, which is always so for wheels.
    """
    shared = {name: getattr(record, name) for name in SHARED_FIELDS}
    own = {"name": record.project} | {name: getattr(record, name) for name in OWN_DETAILS}
    if record.modules_grade == ModulesGrade.EXACT:
        del own["modules_grade"]
    in_common = {name: value for name, value in shared.items() if value or (value == () and name == "import_names")}
    unknown = {"entry_points": None} if record.entry_points is None and record.error is None else {}
    return RecordDetails(
        own=to_json({name: value for name, value in own.items() if value} | unknown).decode(),
        shared=to_json(in_common) if in_common else None,
    )


@cache
def unstored_details(*, is_read: bool, is_sdist: bool) -> Mapping[str, Any]:
    """Return the values of details that are not stored: lists are empty if the whole file was read, else None."""
    values: dict[str, Any] = {name: one.default for name, one in _DETAILS.items() if name != "version"}
    for name, value in values.items():
        if value == ():
            values[name] = [] if is_read or name in _NEVER_NULL else None
    values["entry_points"] = {} if is_read else None
    if is_sdist:
        values["start_up_paths"] = None  # they are known only after the sdist is built
    return values


def merged_details(own: str | None, shared: bytes | None) -> dict[str, Any]:
    """Return all details of a record by name, from both parts."""
    return {**(from_json(own) if own else {}), **(from_json(shared) if shared else {})}


def store_shared_details(connection: Connection, contents: Iterable[bytes]) -> dict[bytes, int]:
    """Store those contents that are new. Return the id of each content. It takes three statements."""
    digests = {content: content_digest(content) for content in contents}
    found = _find_details(connection, digests.values())
    rows = [
        {"sha256": digest, "content": zlib.compress(content)}
        for content, digest in digests.items()
        if digest not in found
    ]
    insert_missing(connection, shared_details, sorted(rows, key=lambda row: str(row["sha256"])))
    found |= _find_details(connection, [str(row["sha256"]) for row in rows])
    return {content: found[digest] for content, digest in digests.items()}


def _find_details(connection: Connection, digests: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for wanted in at_a_time(sorted(digests)):
        query = select(shared_details.c.sha256, shared_details.c.id).where(shared_details.c.sha256.in_(wanted))
        rows = connection.execute(query.with_for_update(read=True, key_share=True))  # locked against pruning
        found.update((row.sha256, row.id) for row in rows)
    return found
