"""Reading committed dumps: each file is checked against its manifest."""

import gzip
import hashlib

import orjson
import pytest
import zstandard

from pypi_assets.catalog.publications.dump_columns import DumpFile
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_manifest import file_path, manifest_path, read_manifest
from pypi_assets.dumps.dump_reader import READ_BYTES, first_rows, iter_dump
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.storage.store import Storage, StoredObject, open_storage
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog


def test_file_deleted_after_its_size_check_is_missing(small: SmallCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_change_after_the_manifest_is_detected(small: SmallCatalog, storage: Storage) -> None:
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


DIRECTORY = "0-10"


def stored(storage: Storage, content: bytes, rows: int) -> DumpFile:
    storage.put(file_path(DIRECTORY, "0.json.gz"), content)
    return DumpFile(0, "0.json.gz", rows, len(content), hashlib.sha256(content).hexdigest())


def dumped(count: int, fillings: dict[int, str] | None = None) -> bytes:
    """Return a dump file of `count` rows. `fillings` makes some rows long."""
    rows = [{"filename": str(number), "summary": (fillings or {}).get(number, "")} for number in range(count)]
    text = b",\n".join(orjson.dumps(row) for row in rows)
    return gzip.compress(b"[\n" + (text + b"\n" if rows else b"") + b"]\n")


@pytest.mark.parametrize("count", [0, 3, 10, 12])
def test_at_most_ten_rows_are_returned(storage: Storage, count: int) -> None:
    file = stored(storage, dumped(count), count)
    found = first_rows(storage, DIRECTORY, file)
    assert [row["filename"] for row in found] == [str(number) for number in range(min(count, 10))]


def test_only_the_beginning_of_a_large_file_is_read(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    random = b"".join(hashlib.sha256(str(number).encode()).digest() for number in range(20_000)).hex()
    file = stored(storage, dumped(13, {3: random}), 13)
    assert file.size > 4 * READ_BYTES
    requested: list[int] = []
    get_range = Storage.get_range

    def counted(self: Storage, path: str, offset: int, size: int) -> bytes:
        requested.append(size)
        return get_range(self, path, offset, size)

    monkeypatch.setattr(Storage, "get_range", counted)
    assert [row["filename"] for row in first_rows(storage, DIRECTORY, file)] == ["0", "1", "2"]
    assert requested == [READ_BYTES]


def test_endlessly_inflating_file_is_cut(storage: Storage) -> None:
    file = stored(storage, dumped(3, {2: "a" * 20_000_000}), 3)
    assert len(first_rows(storage, DIRECTORY, file)) == 2


def test_first_rows_of_a_zstd_file_are_read_from_its_beginning(storage: Storage) -> None:
    random = b"".join(hashlib.sha256(str(number).encode()).digest() for number in range(20_000)).hex()
    text = gzip.decompress(dumped(13, {3: random}))
    content = zstandard.ZstdCompressor().compress(text)
    storage.put(file_path(DIRECTORY, "0.json.zst"), content)
    file = DumpFile(0, "0.json.zst", 13, len(content), "")
    assert file.size > 4 * READ_BYTES
    assert [row["filename"] for row in first_rows(storage, DIRECTORY, file)] == ["0", "1", "2"]


def test_missing_or_corrupt_file_is_reported(storage: Storage) -> None:
    with pytest.raises(DumpDamagedError):
        first_rows(storage, DIRECTORY, DumpFile(0, "1.json.gz", 1, 10, ""))
    with pytest.raises(DumpDamagedError):
        first_rows(storage, DIRECTORY, stored(storage, b"no gzip at all", 1))
