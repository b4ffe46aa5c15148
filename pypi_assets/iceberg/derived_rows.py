"""Compute the rows of `requirements`, `modules` and `commands` from rows of `files`, as Arrow tables.

The rows of a project follow from its rows of `files` alone. Texts repeat, so each text is parsed once for a table.
Nothing is read or written.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pypi_assets.distributions.requirement_names import CONDITIONS, parse_requirement
from pypi_assets.distributions.requirements import is_requirement
from pypi_assets.iceberg.arrow_schemas import SCHEMAS
from pypi_assets.iceberg.table_columns import KEYS

SOURCE_COLUMNS = (*KEYS, "requires_dist", "modules", "console_scripts", "gui_scripts")
"""The columns of `files` from which the rows are computed."""
_Parsed = tuple[str | None, str | None, str | None, str | None, Sequence[str] | None]


def derived_rows(name: str, files: pa.Table) -> pa.Table:
    """Return the rows of the table `name` for all rows of `files`, in their order."""
    return _DERIVATIONS[name](files)


def _requirements(files: pa.Table) -> pa.Table:
    rows = _exploded(files, "requires_dist", "requirement")
    written = _once(rows["requirement"])
    parsed = [_parse(text) for text in written.dictionary.to_pylist()]
    schema = SCHEMAS["requirements"]
    for number, name in enumerate(("required", "condition", "specifier", "marker", "extras")):
        values = pa.array([one[number] for one in parsed], schema.field(name).type)
        rows = rows.append_column(name, values.take(written.indices))
    return rows.select(schema.names).cast(schema)


@lru_cache(maxsize=65_536)
def _parse(text: str) -> _Parsed:
    """Return the required project, the condition, the specifier, the marker and the extras of a requirement."""
    named = parse_requirement(text)
    project, condition = (None, None) if named is None else (named[0], CONDITIONS[named[1]])
    parsed = _valid(text)
    if parsed is None:
        return project, condition, None, None, None
    marker = None if parsed.marker is None else str(parsed.marker)
    specifier = None if parsed.url else str(parsed.specifier)
    return project, condition, specifier, marker, sorted({canonicalize_name(extra) for extra in parsed.extras})


def _valid(text: str) -> Requirement | None:
    if not is_requirement(text):
        return None
    try:
        return Requirement(text)
    except (ValueError, RecursionError):
        return None


def _modules(files: pa.Table) -> pa.Table:
    return _by_project(_exploded(files, "modules", "module"), "modules", ["module"])


def _commands(files: pa.Table) -> pa.Table:
    kinds = []
    for column, kind in (("console_scripts", "console"), ("gui_scripts", "gui")):
        rows = _exploded(files, column, "line")
        lines = _once(rows["line"])
        names = pa.array([line.partition("=")[0].strip() for line in lines.dictionary.to_pylist()], pa.string())
        rows = rows.append_column("command", names.take(lines.indices))
        rows = rows.append_column("kind", pa.repeat(kind, rows.num_rows))
        kinds.append(rows.filter(pc.not_equal(rows["command"], "")))
    return _by_project(pa.concat_tables(kinds), "commands", ["command", "kind"])


def _by_project(rows: pa.Table, name: str, columns: Sequence[str]) -> pa.Table:
    """Return a row for each project and different values of `columns`, with the versions and the number of files."""
    schema = SCHEMAS[name]
    keys = ["normalized", *columns]
    grouped = rows.group_by(keys, use_threads=False).aggregate(
        [("project", "first"), ("version", "distinct"), ("filename", "count_distinct")]
    )
    grouped = grouped.rename_columns(
        {"project_first": "project", "version_distinct": "versions", "filename_count_distinct": "files"}
    )
    return grouped.select(schema.names).cast(schema)


def _exploded(files: pa.Table, column: str, name: str) -> pa.Table:
    """Return a row for each text in the lists of `column`, with the key of its file. Null has no texts."""
    lists = files[column].combine_chunks()
    rows = files.select(list(KEYS)).take(pc.list_parent_indices(lists))
    return rows.append_column(name, pc.list_flatten(lists))


def _once(texts: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return the texts by number, with each text once in the dictionary."""
    encoded = texts.combine_chunks().dictionary_encode()
    return encoded if isinstance(encoded, pa.DictionaryArray) else encoded.combine_chunks()


_DERIVATIONS: Mapping[str, Callable[[pa.Table], Any]] = {
    "requirements": _requirements,
    "modules": _modules,
    "commands": _commands,
}
