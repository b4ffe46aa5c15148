"""The Arrow schemas of the tables. Files in memory and files of Parquet exports have the same types."""

from collections.abc import Mapping

import pyarrow as pa

from pypi_assets.iceberg.table_columns import TABLES
from pypi_assets.parquet.export_manifest import PARQUET_COLUMNS, ParquetColumn
from pypi_assets.parquet.parquet_writer import SCHEMA

_TYPES = {column.type: SCHEMA.field(name).type for name, column in PARQUET_COLUMNS.items()}


def _schema(columns: Mapping[str, ParquetColumn]) -> pa.Schema:
    return pa.schema([pa.field(name, _TYPES[column.type], column.nullable) for name, column in columns.items()])


SCHEMAS = {name: _schema(columns) for name, columns in TABLES.items()}
"""The schema of each table, by the table's name."""
