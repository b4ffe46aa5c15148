"""Write `parquet/pypi.duckdb`, a DuckDB database whose views read the files of an export.

The database has no rows of its own, so it is small. A view names the files of one export, so a program that has opened
the database reads this export even after the next one replaced the file. Only this module needs DuckDB.
"""

import io
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pypi_assets.extras import install_command
from pypi_assets.parquet.export_manifest import PARQUET, PARQUET_COLUMNS, Export, ParquetError, file_path
from pypi_assets.storage.store import Storage

VIEWS = f"{PARQUET}/pypi.duckdb"
_STORAGE_VERSION = "v1.0.0"
"""Each DuckDB since this version opens the file."""
_DATABASE = "pypi"
_NAME = r"^\s*[A-Za-z0-9._-]+"
_EXTRAS = r"\s*(?:\[[^\]]*\])?"
_URL = rf"{_NAME}{_EXTRAS}\s*@\s*(\S+)"
_COLUMNS = ", ".join(PARQUET_COLUMNS)
_KEYS = "project, normalized, version, filename, yanked, uploaded_at"

_DERIVED = {
    "requirements": (
        "each requirement of each distribution, taken apart",
        rf"""
        SELECT {_KEYS}, requirement,
            lower(
                regexp_replace(regexp_extract(requirement, '^\s*([A-Za-z0-9._-]+)', 1), '[-_.]+', '-', 'g')
            ) AS required,
            regexp_extract_all(regexp_extract(requirement, '{_NAME}\s*\[([^\]]*)\]', 1), '[^,\s]+') AS extras,
            CASE WHEN regexp_matches(requirement, '{_URL}') THEN ''
                ELSE regexp_replace(
                    regexp_extract(requirement, '{_NAME}{_EXTRAS}\s*\(?([^;()]*)', 1), '\s+', '', 'g'
                )
            END AS specifier,
            nullif(regexp_extract(requirement, '{_URL}', 1), '') AS url,
            nullif(trim(
                CASE WHEN regexp_matches(requirement, '{_URL}') THEN regexp_extract(requirement, '{_URL}\s+;(.*)$', 2)
                    ELSE regexp_extract(requirement, '^[^;]*;(.*)$', 1)
                END
            ), '') AS marker
        FROM (SELECT {_KEYS}, unnest(requires_dist) AS requirement FROM distributions)
        """,
    ),
    "modules": (
        "each module of each distribution",
        f"SELECT {_KEYS}, unnest(modules) AS module FROM distributions",
    ),
    "commands": (
        "each command of each distribution",
        rf"""
        SELECT {_KEYS}, trim(string_split(entry, '=')[1]) AS command,
            trim(regexp_replace(entry, '^[^=]*=', '')) AS target
        FROM (SELECT {_KEYS}, unnest(console_scripts) AS entry FROM distributions)
        """,
    ),
    "newest": (
        "the distributions of each project's release that was uploaded last and is not yanked",
        f"""
        SELECT {_COLUMNS} FROM (
            SELECT *, max(coalesce(uploaded_at, first_seen_at)) OVER (PARTITION BY normalized, version) AS released
            FROM distributions WHERE NOT yanked
        )
        QUALIFY dense_rank() OVER (PARTITION BY normalized ORDER BY released DESC NULLS LAST, version DESC) = 1
        """,
    ),
}
"""The views on the view `distributions`: what they have, and their query."""
VIEW_NAMES = ("latest", "distributions", *_DERIVED)


def write_views(storage: Storage, export: Export) -> None:
    """Write the database of views on `export`, in place of an earlier one. Raises ParquetError without DuckDB.

    No file of the export is read: DuckDB gets empty files with the same columns instead.
    """
    require_duckdb()
    import duckdb

    with TemporaryDirectory(prefix="pypi-assets-views-") as folder:
        path = Path(folder, "pypi.duckdb")
        with duckdb.connect() as connection:
            if storage.root is None:
                connection.register_filesystem(_stand_in(storage.url.partition("://")[0]))
            connection.execute(f"ATTACH {_text(str(path))} AS {_DATABASE} (STORAGE_VERSION {_text(_STORAGE_VERSION)})")
            connection.execute(f"USE {_DATABASE}")
            for name, (meaning, query) in view_queries(storage, export).items():
                connection.execute(f"CREATE VIEW {name} AS {query}")
                connection.execute(f"COMMENT ON VIEW {name} IS {_text(meaning)}")
            connection.execute("USE memory")
            connection.execute(f"DETACH {_DATABASE}")
        storage.put(VIEWS, path)


def view_queries(storage: Storage, export: Export) -> Mapping[str, tuple[str, str]]:
    """Return the meaning and the query of each view, by name. A view uses those before it."""
    rows, *changes = export.layers
    files = _files(storage, (file.name for file in rows.files))
    changed = _files(storage, (file.name for layer in changes for file in layer.files))
    queries = {
        "latest": (
            "the serial, the folder and the number of distributions of the export",
            f"SELECT {export.serial} AS serial, {_text(export.directory)} AS directory, {export.rows} AS distributions",
        ),
        "distributions": (
            "the distributions that are live at the serial",
            f"SELECT {_COLUMNS} FROM {files}" if changed is None else _merged(files or "", changed),
        ),
    }
    return queries | _DERIVED


def _merged(files: str, changed: str) -> str:
    return f"""
        SELECT {_COLUMNS} FROM {files} AS unchanged
        ANTI JOIN (SELECT normalized, filename FROM {changed}) AS changed USING (normalized, filename)
        UNION ALL
        SELECT {_COLUMNS} FROM (
            SELECT * FROM {changed}
            QUALIFY row_number() OVER (PARTITION BY normalized, filename ORDER BY layer DESC) = 1
        )
        WHERE NOT tombstone
    """


def _files(storage: Storage, names: Iterator[str]) -> str | None:
    paths = [storage.local_path(file_path(name)) or storage.uri(file_path(name)) for name in names]
    listed = ", ".join(_text(str(path)) for path in paths)
    return f"read_parquet([{listed}], hive_partitioning = false)" if listed else None


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def require_duckdb() -> None:
    """Raise ParquetError if DuckDB is not installed."""
    try:
        import duckdb  # noqa: F401 - it is an extra
        import fsspec  # noqa: F401
    except ImportError as error:
        raise ParquetError(f"{error}: the views need `{install_command('views')}`") from error


def _stand_in(scheme: str) -> Any:
    import fsspec
    import pyarrow as pa
    from pyarrow import parquet

    from pypi_assets.parquet.parquet_writer import CHANGES_SCHEMA, SCHEMA

    def empty(schema: pa.Schema) -> bytes:
        buffer = io.BytesIO()
        parquet.write_table(schema.empty_table(), buffer)
        return buffer.getvalue()

    contents = {True: empty(CHANGES_SCHEMA), False: empty(SCHEMA)}

    class EmptyFiles(fsspec.AbstractFileSystem):  # type: ignore[misc]
        """A file system in which each path is an empty file with the columns of its name."""

        protocol = (scheme,)

        def _open(self, path: str, **_: object) -> io.BytesIO:
            return io.BytesIO(contents["/changes/" in path])

        def info(self, path: str, **_: object) -> dict[str, object]:
            return {"name": path, "size": len(contents["/changes/" in path]), "type": "file"}

        def glob(self, path: str, **_: object) -> list[str]:
            return [path]

        def modified(self, path: str) -> datetime:  # noqa: ARG002 - DuckDB calls it with a path
            return datetime(2026, 1, 1, tzinfo=UTC)

    return EmptyFiles()
