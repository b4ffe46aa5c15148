"""The file `parquet/latest.json`, which names the files of the newest export for programs that read no manifest."""

import orjson

from pypi_assets.parquet.export_manifest import PARQUET, Export, file_path, manifest_path
from pypi_assets.storage.store import ObjectNotFoundError, Storage

LATEST = f"{PARQUET}/latest.json"


def encode_latest(export: Export) -> bytes:
    """Return the JSON that names the files of `export`. All paths are relative to the storage."""
    rows, *changes = export.layers
    fields = {
        "serial": export.serial,
        "directory": export.directory,
        "manifest": manifest_path(export.directory),
        "rows": export.rows,
        "bytes": export.size,
        "buckets": export.buckets,
        "files": [file_path(file.name) for file in rows.files],
        "changes": [file_path(file.name) for layer in changes for file in layer.files],
    }
    return orjson.dumps(fields, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def write_latest(storage: Storage, export: Export) -> None:
    """Let `parquet/latest.json` name `export`. Readers see either the former content or the new one."""
    content = encode_latest(export)
    try:
        if storage.get(LATEST) == content:
            return
    except ObjectNotFoundError:
        pass
    storage.put(LATEST, content)
