"""Open the Iceberg catalog and create its tables: in the project's own database, or in a REST catalog of the user.

The objects of the tables are below `tables/NAMESPACE/` in the storage, whichever catalog names them. Only this package
imports pyiceberg, which is an extra. What the tables contain does not belong here.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import Catalog
from pypi_assets.errors import ExpectedError
from pypi_assets.extras import install_command
from pypi_assets.iceberg.table_columns import EVENTS, KEYS, TABLES
from pypi_assets.parquet.export_manifest import (
    BOOLEAN,
    INTEGER,
    PARQUET_COLUMNS,
    STRING,
    STRINGS,
    TIMESTAMP,
    ParquetColumn,
)
from pypi_assets.storage.store import Storage

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as IcebergCatalog
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

CATALOG_NAME = "pypi_assets"
"""The catalog's name in pyiceberg's own configuration, such as PYICEBERG_CATALOG__PYPI_ASSETS__TOKEN."""
DEFAULT_NAMESPACE = "pypi"
_SQLITE_TIMEOUT_S = 60
_SCHEMES = ("file", "s3", "gs")
_S3_VARIABLES = {
    "s3.endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "s3.region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "s3.access-key-id": ("AWS_ACCESS_KEY_ID",),
    "s3.secret-access-key": ("AWS_SECRET_ACCESS_KEY",),
    "s3.session-token": ("AWS_SESSION_TOKEN",),
}
"""pyiceberg's properties, and the environment variables that the storage reads for the same purpose."""
_PROPERTIES = {
    "format-version": "2",
    "commit.retry.num-retries": "0",  # a repeated commit could add the rows of a range twice
    "write.metadata.previous-versions-max": "20",
    "write.metadata.metrics.default": "none",
    "write.parquet.compression-codec": "zstd",
    **{f"write.metadata.metrics.column.{name}": "truncate(64)" for name in (*KEYS[1:], "serial", "at")},
}


class TablesError(ExpectedError):
    """The tables cannot be opened, read or written. The message has the reason, and the remedy."""


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The address of a REST catalog, or an empty text for the project's own database; and the tables' namespace."""

    catalog_url: str = ""
    namespace: str = DEFAULT_NAMESPACE


def require_iceberg() -> None:
    """Raise TablesError, with the command that installs it, unless pyiceberg is installed."""
    try:
        import pyarrow  # noqa: F401
        import pyiceberg.catalog.sql
        import pyiceberg.io.pyarrow  # noqa: F401
    except ImportError as error:
        raise TablesError(f"{error}: Iceberg tables need `{install_command('tables')}`") from error


def tables_path(namespace: str) -> str:
    """Return the storage path of all tables of the namespace."""
    return f"tables/{namespace}"


@dataclass(frozen=True, slots=True)
class OpenTables:
    """An open Iceberg catalog, and the place of its tables in the storage."""

    iceberg: "IcebergCatalog"
    storage: Storage
    namespace: str

    def find(self, name: str) -> "Table | None":
        """Return the table `name` as it is now, or None."""
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self.iceberg.load_table((self.namespace, name))
        except NoSuchTableError:
            return None

    def create(self, name: str, buckets: int) -> "Table":
        """Create the empty table `name`, with its projects in this number of buckets. Events have no buckets."""
        from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
        from pyiceberg.transforms import BucketTransform

        schema = _schema(TABLES[name])
        spec = UNPARTITIONED_PARTITION_SPEC
        if name != EVENTS:
            source = schema.find_field("normalized").field_id
            spec = PartitionSpec(PartitionField(source, 1000, BucketTransform(buckets), "bucket"))
        self.iceberg.create_namespace_if_not_exists(self.namespace)
        return self.iceberg.create_table(
            (self.namespace, name),
            schema,
            location=f"{_root(self.storage)}/{self.path(name)}",
            partition_spec=spec,
            properties=_PROPERTIES,
        )

    def get(self, name: str) -> "Table":
        """Return the table `name`. Raises TablesError if it is missing."""
        table = self.find(name)
        if table is None:
            raise TablesError(f"there is no table {self.namespace}.{name}: run `pypi-assets dump tables`")
        return table

    def add_columns(self, table: "Table", name: str) -> "Table":
        """Add the columns that the table lacks, because an earlier version of the code created it."""
        missing = [column for column in TABLES[name] if column not in table.schema().column_names]
        if missing:
            with table.update_schema() as change:
                for column in missing:
                    field = _schema({column: TABLES[name][column]}).fields[0]
                    change.add_column(column, field.field_type, field.doc)
        return table

    def drop(self, name: str) -> None:
        """Remove the table from the catalog. Its files are kept until the clean-up."""
        if self.find(name) is not None:
            self.iceberg.drop_table((self.namespace, name))

    def path(self, name: str) -> str:
        """Return the storage path of the table."""
        return f"{tables_path(self.namespace)}/{name}"

    def stored_path(self, table: "Table", location: str) -> str:
        """Return the storage path of a file of the table, from its full location."""
        name = table.name()[-1]
        return f"{self.path(name)}/{location.removeprefix(table.location().rstrip('/') + '/')}"


@contextmanager
def opened_tables(catalog: Catalog, storage: Storage, options: TableOptions) -> Iterator[OpenTables]:
    """Yield the tables of the Iceberg catalog. Failures of pyiceberg, its catalog and its files become TablesError.

    Raises TablesError if pyiceberg is not installed, or cannot use the storage.
    """
    scheme = storage.url.partition("://")[0]
    if scheme not in _SCHEMES:
        kinds = ", ".join(f"{name}://" for name in _SCHEMES)
        raise TablesError(f"Iceberg tables need a storage at {kinds}, and PYPI_ASSETS_STORAGE_URL is {storage.url}")
    require_iceberg()
    from pyiceberg.exceptions import CommitFailedException

    try:
        iceberg = _open(catalog, storage, options)
        try:
            yield OpenTables(iceberg, storage, options.namespace)
        finally:
            iceberg.close()
    except CommitFailedException:
        raise
    except _failures() as error:
        place = options.catalog_url or "the catalog's database"
        text = str(error).partition("\n")[0]
        raise TablesError(
            f"Iceberg tables of {options.namespace} in {place}, with files below {storage.url}: {text}; check"
            " PYPI_ASSETS_TABLES_CATALOG_URL, and the storage"
        ) from error


def _failures() -> tuple[type[Exception], ...]:
    """Return the errors of files, of databases and of servers, and all errors of pyiceberg."""
    from pyiceberg import exceptions

    found = vars(exceptions).values()
    of_iceberg = (one for one in found if isinstance(one, type) and issubclass(one, Exception))
    return OSError, SQLAlchemyError, ValueError, *of_iceberg


def _open(catalog: Catalog, storage: Storage, options: TableOptions) -> "IcebergCatalog":
    from pyiceberg.catalog import load_catalog

    files = {"warehouse": f"{_root(storage)}/{tables_path(options.namespace)}", **_file_properties(storage)}
    if options.catalog_url:
        return load_catalog(CATALOG_NAME, type="rest", uri=options.catalog_url, **files)
    return load_catalog(CATALOG_NAME, type="sql", uri=_database_url(catalog.engine.url), **files)


def _database_url(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        url = url.update_query_dict({"timeout": str(_SQLITE_TIMEOUT_S)})
    return url.render_as_string(hide_password=False)


def _file_properties(storage: Storage) -> Mapping[str, str]:
    """Return the properties of pyiceberg's access to files that follow from the storage's environment variables."""
    if not storage.url.startswith("s3://"):
        return {}
    found = {name: [os.environ[one] for one in ones if one in os.environ] for name, ones in _S3_VARIABLES.items()}
    return {name: values[0] for name, values in found.items() if values}


def _root(storage: Storage) -> str:
    """Return the location of the storage's root. pyiceberg does not decode the `%20` of a folder's URL."""
    return storage.url.rstrip("/") if storage.root is None else f"file://{storage.root.as_posix()}"


def _schema(columns: Mapping[str, ParquetColumn]) -> "Schema":
    """Return the Iceberg schema. Of the columns of dumps only keys are required, since others can be added later."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import (
        BooleanType,
        ListType,
        LongType,
        NestedField,
        StringType,
        TimestamptzType,
    )

    types = {STRING: StringType(), INTEGER: LongType(), BOOLEAN: BooleanType(), TIMESTAMP: TimestamptzType()}
    ids = count(1)
    fields = []
    for name, column in columns.items():
        field_id = next(ids)
        type_ = (
            ListType(next(ids), StringType(), element_required=True) if column.type == STRINGS else types[column.type]
        )
        required = not column.nullable and (name in KEYS or name not in PARQUET_COLUMNS)
        fields.append(NestedField(field_id, name, type_, required=required, doc=column.meaning))
    return Schema(*fields)
