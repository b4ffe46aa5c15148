"""Decodes the rows of dumps for one or more datasets: only their columns, and each shared list only once."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, TypedDict, cast

import msgspec
import orjson

from pypi_assets.catalog.publications.dump_columns import COLUMNS, TOMBSTONE_COLUMNS, DumpFile
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.dump_reader import iter_rows
from pypi_assets.dumps.later_rows import LaterRows
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.storage.store import Storage

_KEPT_LISTS = 64


def decoded_rows(
    columns: Iterable[str], storage: Storage, directory: str, file: DumpFile, later: LaterRows | None = None
) -> Iterator[Row]:
    """Yield the rows of one dump file with these columns, in order. `later` replaces rows of a full dump's file.

    Raises the errors of `iter_rows`.
    """
    rows = iter_rows(storage, directory, file, RowDecoder(columns).decode)
    return rows if later is None else later.applied_to(file.shard, rows, RowDecoder(columns).decode)


def columns_of(datasets: Iterable[Dataset]) -> tuple[str, ...]:
    """Return the columns that one of the datasets reads, each once."""
    return tuple(dict.fromkeys(column for dataset in datasets for column in dataset.columns))


class RowDecoder:
    """Decodes lines of dump files, in order. Rows of a project with equal lists get the same list object."""

    def __init__(self, columns: Iterable[str]) -> None:
        self._lists, self._decoder = _decoder_of(tuple(columns))
        self._project: object = None
        self._last: dict[str, msgspec.Raw] = {}
        self._decoded: dict[str, list[str] | None] = {}
        self._kept: dict[bytes, list[str] | None] = {}
        self._strings: dict[str, str] = {}

    def decode(self, line: bytes) -> Row:
        """Return the row in a line. Raises msgspec.DecodeError if the line is not a row."""
        row: Row = self._decoder.decode(line)
        if row["normalized"] != self._project:
            self._project = row["normalized"]
            self._kept.clear()
            self._strings.clear()
        for column in self._lists:
            if column not in row:  # a tombstone
                continue
            raw = cast("msgspec.Raw", row[column])
            if raw != self._last.get(column):
                self._last[column] = raw.copy()  # a copy, since the raw value would keep the whole line in memory
                self._decoded[column] = self._list(bytes(raw))
            row[column] = self._decoded[column]
        return row

    def _list(self, content: bytes) -> list[str] | None:
        if content not in self._kept:
            if len(self._kept) >= _KEPT_LISTS:
                self._kept.clear()
            names = orjson.loads(content)
            self._kept[content] = names and [self._strings.setdefault(name, name) for name in names]
        return self._kept[content]


@lru_cache(maxsize=64)
def _decoder_of(columns: tuple[str, ...]) -> tuple[tuple[str, ...], msgspec.json.Decoder[Any]]:
    """Return the list columns, and a decoder for rows. Creating it takes longer than reading a small file.

    Columns that no dataset uses are skipped, which takes a quarter of the time of decoding them.
    """
    wanted = dict.fromkeys((*TOMBSTONE_COLUMNS, *columns))
    lists = tuple(name for name in wanted if COLUMNS[name].type.startswith("array"))
    fields = {name: msgspec.Raw if name in lists else Any for name in wanted}
    return lists, msgspec.json.Decoder(TypedDict("DumpedRow", fields, total=False))  # type: ignore[operator]
