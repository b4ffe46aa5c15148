"""Rewrite dumps as an earlier release would have written them, without the columns added later."""

import json
from dataclasses import replace
from functools import partial

from sqlalchemy import select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_columns import COLUMNS
from pypi_assets.catalog.tables import dump_files, dumps
from pypi_assets.dumps.dump_format import Row, write_rows
from pypi_assets.dumps.dump_manifest import file_path, read_manifest, write_manifest
from pypi_assets.dumps.dump_reader import iter_rows
from pypi_assets.dumps.dump_writer import put_file
from pypi_assets.storage.store import Storage

FEWER_COLUMNS = tuple(name for name in COLUMNS if name not in {"summary", "console_scripts", "gui_scripts", "notes"})
"""The columns that all datasets need, except `commands` and `simple`."""


def cut_dumps(catalog: Catalog, storage: Storage, *directories: str) -> None:
    """Remove the later columns from committed dumps: from their files, manifests and catalog rows."""
    for directory in directories:
        manifest = read_manifest(storage, directory)
        files = []
        for file in manifest.files:
            rows = [cut(row) for row in iter_rows(storage, directory, file)]
            path = file_path(directory, file.name)
            files.append(put_file(storage, path, file.shard, partial(write_rows, rows=rows, columns=FEWER_COLUMNS)))
        write_manifest(storage, replace(manifest, files=tuple(files), columns=FEWER_COLUMNS))
        with catalog.write() as connection:
            dump_id = connection.scalar(select(dumps.c.id).where(dumps.c.directory == directory))
            connection.execute(update(dumps).where(dumps.c.id == dump_id).values(columns=json.dumps(FEWER_COLUMNS)))
            for one in files:
                of_file = (dump_files.c.dump_id == dump_id) & (dump_files.c.name == one.name)
                connection.execute(update(dump_files).where(of_file).values(size=one.size, sha256=one.sha256))


def cut(row: Row) -> Row:
    return {name: value for name, value in row.items() if name in FEWER_COLUMNS}
