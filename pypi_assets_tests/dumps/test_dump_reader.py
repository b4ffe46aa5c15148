"""Reading committed dumps: each file is held against its manifest."""

import gzip

import pytest

from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_manifest import read_manifest
from pypi_assets.dumps.dump_paths import file_path, manifest_path
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.storage.store import Storage, StoredObject, open_storage
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog


def test_a_file_that_goes_after_its_size_was_requested_is_missing(
    small: SmallCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage("memory:///")
    manifest = full_dump(small.catalog, storage, 1)
    head = Storage.head

    def gone_then(self: Storage, path: str) -> StoredObject:
        stored = head(self, path)
        self.delete(path)
        return stored

    monkeypatch.setattr(Storage, "head", gone_then)
    with pytest.raises(DumpDamagedError, match=naming(manifest.files[0].name)):
        list(iter_dump(storage, manifest.directory))


def test_what_changed_after_the_manifest_is_noticed(small: SmallCatalog, storage: Storage) -> None:
    manifest = full_dump(small.catalog, storage, 1)
    path = file_path(manifest.directory, manifest.files[0].name)
    text = gzip.decompress(storage.get(path)).replace(b"demo.a", b"demo.b")
    storage.put(path, gzip.compress(text))
    with pytest.raises(DumpDamagedError):
        list(iter_dump(storage, manifest.directory))
    storage.delete(path)
    with pytest.raises(DumpDamagedError):
        list(iter_dump(storage, manifest.directory))
    storage.put(manifest_path(manifest.directory), b'{"format": 99}')
    with pytest.raises(DumpDamagedError):
        read_manifest(storage, manifest.directory)
    storage.delete(manifest_path(manifest.directory))
    with pytest.raises(DumpDamagedError, match=naming("0-100")):
        read_manifest(storage, manifest.directory)
