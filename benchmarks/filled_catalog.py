"""A catalog of any size: rows of dumps, inserted in bulk in the same form as by a full crawl and its reads."""

import hashlib
import itertools
import zlib
from collections.abc import Iterable, Sequence

from sqlalchemy import Table, insert, text

from pypi_assets.catalog.database import Catalog, insert_missing
from pypi_assets.catalog.ledger.range_ledger import allocate_range, complete_range
from pypi_assets.catalog.observed.projects import project_bucket, project_shard
from pypi_assets.catalog.reads.stored_json import to_json
from pypi_assets.catalog.tables import (
    catalog_state,
    distribution_data,
    distributions,
    full_crawls,
    live_intervals,
    name_lists,
    projects,
    releases,
    shared_details,
    yanked_intervals,
)
from pypi_assets.dumps.dump_format import Row

BATCH = 20_000
_OF_FILE = (
    "filename",
    "kind",
    "url",
    "sha256",
    "size",
    "uploaded_at",
    "requires_python",
    "yanked_reason",
    "core_metadata_sha256",
)
_OF_DATA = ("outcome", "error_kind", "extractor_version", "metadata_version", "requires_python")
_OF_DETAILS = ("modules_by", "requires_by", "stubs", "left_out")
_SHARED = ("summary", "provides_extra", "license_expression", "license", "license_classifiers", "project_urls")


def fill_catalog(catalog: Catalog, rows: Iterable[Row]) -> int:
    """Insert live `rows` into an empty catalog, which is then complete up to their greatest serial. Return their
    number.

    The rows of a project, and of a release within it, must be consecutive. The names at the top of lists are omitted.
    """
    ids = _Ids()
    count = 0
    serial = 1
    source = iter(rows)
    while batch := list(itertools.islice(source, BATCH)):
        with catalog.write() as connection:
            if not catalog.is_sqlite:  # otherwise each row would check its foreign keys
                connection.execute(text("SET LOCAL session_replication_role = replica"))
            for table, entered in ids.tables(batch).items():
                insert_missing(connection, table, entered)
        count += len(batch)
        serial = max(serial, *(int(str(row["live_since"])) for row in batch))
    with catalog.write() as connection:
        connection.execute(
            insert(catalog_state).values(
                id=1,
                index_url="https://index.example.org/simple/",
                events_since=0,
                events_through=serial,
                exact_from=serial,
                next_dump_sequence=1,
            )
        )
        connection.execute(
            insert(full_crawls).values(
                id=1,
                serial=serial,
                selection="[]",
                opened_at=0.0,
                listed_at=0.0,
                listed_serial=serial,
                completed_at=0.0,
            )
        )
        serials = allocate_range(connection, serial, 0.0)
        if serials is not None:
            complete_range(connection, serials, 0.0)
    with catalog.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE" if catalog.is_sqlite else "VACUUM ANALYZE"))
    return count


class _Ids:
    """Allocates ids, and tracks the next project and release and the existing lists."""

    def __init__(self) -> None:
        self._counted = itertools.count(1)
        self._project: tuple[object, int] = (None, 0)
        self._release: tuple[object, int] = (None, 0)
        self._lists: dict[bytes, int] = {}
        self._shared: dict[bytes, int] = {}

    def tables(self, rows: Sequence[Row]) -> dict[Table, list[dict[str, object]]]:
        """Return the content of each table for `rows`, in an order in which it can be inserted."""
        entered: dict[Table, list[dict[str, object]]] = {
            table: []
            for table in (
                projects,
                releases,
                distributions,
                live_intervals,
                yanked_intervals,
                name_lists,
                shared_details,
                distribution_data,
            )
        }
        for row in rows:
            self._enter(row, entered)
        return {table: values for table, values in entered.items() if values}

    def _enter(self, row: Row, entered: dict[Table, list[dict[str, object]]]) -> None:
        normalized, version = str(row["normalized"]), row["version"]
        if self._project[0] != normalized:
            self._project, self._release = (normalized, next(self._counted)), (None, 0)
            entered[projects].append(
                {
                    "id": self._project[1],
                    "normalized": normalized,
                    "name": row["project"],
                    "bucket": project_bucket(normalized),
                    "shard": project_shard(normalized),
                    "known_since": 0,
                }
            )
        project_id = self._project[1]
        if self._release[0] != version:
            self._release = (version, next(self._counted))
            entered[releases].append({"id": self._release[1], "project_id": project_id, "version": version})
        id_ = next(self._counted)
        owner = {"id": id_, "project_id": project_id, "release_id": self._release[1]}
        entered[distributions].append(owner | {name: row[name] for name in _OF_FILE})
        entered[live_intervals].append({"distribution_id": id_, "start": row["live_since"], "end": None})
        if row["yanked"]:
            entered[yanked_intervals].append({"distribution_id": id_, "start": row["live_since"], "end": None})
        details = {"name": row["project"], "version": version} | {name: row[name] for name in _OF_DETAILS if row[name]}
        lists = {f"{name}_id": self._list(row[name], entered[name_lists]) for name in ("requires_dist", "modules")}
        data = {name: row[name] for name in _OF_DATA} | {
            "shared_details_id": self._shared_details(row, entered[shared_details])
        }
        entered[distribution_data].append(
            {"distribution_id": id_, **data, **lists, "details": to_json(details).decode()}
        )

    def _shared_details(self, row: Row, new: list[dict[str, object]]) -> int | None:
        shared = {name: row[name] for name in _SHARED if row[name]}
        if scripts := row["console_scripts"]:
            shared["entry_points"] = {"console_scripts": dict(script.split(" = ") for script in scripts)}  # type: ignore[attr-defined]
        if not shared:
            return None
        content = to_json(shared)
        digest = hashlib.sha256(content)
        known = self._shared.get(digest.digest())
        if known is None:
            known = self._shared[digest.digest()] = next(self._counted)
            new.append({"id": known, "sha256": digest.hexdigest(), "content": zlib.compress(content)})
        return known

    def _list(self, names: object, new: list[dict[str, object]]) -> int | None:
        if names is None:
            return None
        content = to_json(names)
        digest = hashlib.sha256(content)
        known = self._lists.get(digest.digest())
        if known is None:
            known = self._lists[digest.digest()] = next(self._counted)
            new.append(
                {
                    "id": known,
                    "sha256": digest.hexdigest(),
                    "length": len(names),  # type: ignore[arg-type]
                    "content": zlib.compress(content),
                }
            )
        return known
