"""The Iceberg tables and their columns, for code that runs without pyiceberg. docs/formats.md has them as tables."""

from collections.abc import Mapping

from pypi_assets.parquet.export_manifest import (
    INTEGER,
    PARQUET_COLUMNS,
    STRING,
    STRINGS,
    TIMESTAMP,
    ParquetColumn,
)

FILES = "files"
EVENTS = "events"
KEYS = ("project", "normalized", "version", "filename")
_KEYS = {name: PARQUET_COLUMNS[name] for name in KEYS}
_OF_PROJECT = {name: PARQUET_COLUMNS[name] for name in ("project", "normalized")}
DERIVED: Mapping[str, Mapping[str, ParquetColumn]] = {
    "requirements": _KEYS
    | {
        "requirement": ParquetColumn(STRING, False, "the requirement as the file has it"),
        "required": ParquetColumn(STRING, True, "the normalized name of the required project; null: not readable"),
        "condition": ParquetColumn(STRING, True, "when it applies: always, marker or extra"),
        "specifier": ParquetColumn(STRING, True, "the accepted versions, PEP 440; null: not valid, or a URL"),
        "marker": ParquetColumn(STRING, True, "the environment marker, PEP 508; null: none"),
        "extras": ParquetColumn(STRINGS, True, "the extras of the required project; null: not valid"),
    },
    "modules": _OF_PROJECT
    | {
        "module": ParquetColumn(STRING, False, "a dotted import name that files of the project provide"),
        "versions": ParquetColumn(STRINGS, False, "the releases with such files, in the order of their texts"),
        "files": ParquetColumn(INTEGER, False, "the number of these files"),
    },
    "commands": _OF_PROJECT
    | {
        "command": ParquetColumn(STRING, False, "the name of a command that files of the project install"),
        "kind": ParquetColumn(STRING, False, "console or gui"),
        "versions": ParquetColumn(STRINGS, False, "the releases with such files, in the order of their texts"),
        "files": ParquetColumn(INTEGER, False, "the number of these files"),
    },
}
"""The tables whose rows follow from the rows of `files` of the same project. They have the buckets of `files`."""
TABLES: Mapping[str, Mapping[str, ParquetColumn]] = {
    FILES: PARQUET_COLUMNS,
    **DERIVED,
    EVENTS: {
        "serial": ParquetColumn(INTEGER, False, "the event's serial, unique"),
        "project": ParquetColumn(STRING, False, "the project's name in the event"),
        "normalized": ParquetColumn(STRING, False, "the project's normalized name"),
        "version": ParquetColumn(STRING, True, "the release, if the event names one"),
        "at": ParquetColumn(TIMESTAMP, False, "the time of the event"),
        "action": ParquetColumn(STRING, False, "the event's text, as the index sent it"),
    },
}
"""The columns of all tables."""
