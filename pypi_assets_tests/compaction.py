"""Joins committed range dumps into a compaction, for tests."""

import hashlib
import io

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.dumps import DumpFile, DumpKind, restore_dump
from pypi_assets.catalog.ranges import SerialRange
from pypi_assets.dumps.layout import file_path
from pypi_assets.dumps.manifest import Manifest, read_manifest, write_manifest
from pypi_assets.dumps.reader import iter_dump
from pypi_assets.dumps.rows import write_rows
from pypi_assets.storage.store import Storage
from pypi_assets_tests.dump_rows import in_order


def compact(catalog: Catalog, storage: Storage, *directories: str) -> Manifest:
    """Commits one dump with the newest row of each file in the dumps of `directories`, which follow each other."""
    inputs = [read_manifest(storage, directory) for directory in directories]
    newest = {(row["normalized"], row["filename"]): row for name in directories for row in iter_dump(storage, name)}
    serials = SerialRange(inputs[0].serials.start, inputs[-1].serials.end)
    buffer = io.BytesIO()
    count = write_rows(buffer, in_order(list(newest.values())))
    content = buffer.getvalue()
    name = "python_distribution_data0000.json.gz"
    file = DumpFile(0, name, count, len(content), hashlib.sha256(content).hexdigest())
    storage.put(file_path(serials.key, file.name), content)
    sequence = min(manifest.sequence for manifest in inputs)
    manifest = Manifest(DumpKind.COMPACTED, serials, serials.key, sequence, 1, directories, (file,))
    write_manifest(storage, manifest)
    restore_dump(
        catalog,
        kind=manifest.kind,
        serials=serials,
        directory=serials.key,
        sequence=sequence,
        shards=1,
        inputs=directories,
        files=manifest.files,
    )
    return manifest
