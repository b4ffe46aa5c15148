"""The columns of a Parquet export: those of the dumps, but for `tombstone`, in types of their own."""

from dataclasses import dataclass

from pypi_assets.catalog.publications.dump_facts import COLUMNS

STRING = "string"
INTEGER = "int64"
BOOLEAN = "bool"
TIMESTAMP = "timestamp[us, tz=UTC]"
STRINGS = "list<string>"

_TYPES = {"string": STRING, "integer": INTEGER, "boolean": BOOLEAN, "array of strings": STRINGS}
_TIMESTAMPS = frozenset({"uploaded_at", "first_seen_at"})
_NEVER_TRUE = frozenset({"tombstone"})


@dataclass(frozen=True, slots=True)
class ParquetColumn:
    """One column: its Arrow type, whether it can be null, and what it means."""

    type: str
    nullable: bool
    meaning: str


def _parquet_column(name: str) -> ParquetColumn:
    json_type, _, null = COLUMNS[name].type.partition(" or ")
    type_ = TIMESTAMP if name in _TIMESTAMPS else _TYPES[json_type]
    return ParquetColumn(type_, null == "null", COLUMNS[name].meaning)


PARQUET_COLUMNS = {name: _parquet_column(name) for name in COLUMNS if name not in _NEVER_TRUE}
