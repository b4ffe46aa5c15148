"""The format of dump files, manifests and paths; corruption is reported."""

import gzip
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_columns import COLUMNS, COLUMNS_VERSION, DumpFile, DumpFormat, DumpKind
from pypi_assets.dumps.dump_format import DumpDamagedError, Row, RowError, read_rows, write_rows
from pypi_assets.dumps.dump_manifest import DumpManifest, manifest_path, read_manifest, shard_of
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.depgraph.depgraph_records import FEW_FILES, FORMAT, OWN_FIELDS, SHARED_FIELDS
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.examples import examples
from pypi_assets_tests.fewer_columns import FEWER_COLUMNS
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog

_FIRST = {"project": "Demo", "normalized": "demo", "version": "1.0", "filename": "demo-1.0.tar.gz"}


def row(**columns: object) -> Row:
    empty: Row = dict.fromkeys(COLUMNS)
    return empty | _FIRST | {"tombstone": False} | columns


def tombstone(filename: str) -> Row:
    return _FIRST | {"filename": filename, "tombstone": True}


def write(
    path: Path,
    rows: Iterable[Row],
    progress: Callable[[int], None] | None = None,
    form: DumpFormat = DumpFormat.GZIP,
) -> int:
    with path.open("wb") as target:
        return write_rows(target, rows, progress, form=form)


def read(content: bytes, form: DumpFormat = DumpFormat.GZIP) -> list[Row]:
    return list(read_rows(io.BytesIO(content), f"some/file{form.ending}"))


def decompressed(content: bytes, form: DumpFormat) -> bytes:
    return (
        gzip.decompress(content)
        if form is DumpFormat.GZIP
        else zstandard.ZstdDecompressor().decompressobj().decompress(content)
    )


@pytest.fixture(params=list(DumpFormat))
def form(request: pytest.FixtureRequest) -> DumpFormat:
    return DumpFormat(request.param)


def test_dump_file_is_one_json_array_with_a_row_per_line(tmp_path: Path, form: DumpFormat) -> None:
    rows = [row(modules=["demo", "démo"], filename="a"), tombstone("b")]
    counts: list[int] = []
    assert write(tmp_path / "x", rows, counts.append, form) == 2
    assert counts == [2]
    text = decompressed((tmp_path / "x").read_bytes(), form).decode()
    assert json.loads(text) == rows
    lines = text.splitlines()
    assert (lines[0], lines[-1]) == ("[", "]")
    assert [json.loads(line.rstrip(",")) for line in lines[1:-1]] == rows
    assert list(json.loads(lines[1].rstrip(","))) == list(COLUMNS)
    assert read((tmp_path / "x").read_bytes(), form) == rows


def test_no_rows_are_an_empty_array(tmp_path: Path, form: DumpFormat) -> None:
    assert write(tmp_path / "x", [], form=form) == 0
    assert json.loads(decompressed((tmp_path / "x").read_bytes(), form)) == []
    assert read((tmp_path / "x").read_bytes(), form) == []


def test_equal_rows_give_equal_bytes(tmp_path: Path, form: DumpFormat) -> None:
    rows = [row(filename=f"{number:05}", modules=["m"] * number) for number in range(200)]
    write(tmp_path / "x", iter(rows), form=form)
    write(tmp_path / "y", iter(rows), form=form)
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


def test_characters_invalid_in_utf_8_are_replaced(tmp_path: Path) -> None:
    write(tmp_path / "x", [row(modules=["fine", "half\ud800"], requires_dist=[])])
    (read_back,) = read((tmp_path / "x").read_bytes())
    assert read_back["modules"] == ["fine", "half?"]


@pytest.mark.parametrize(
    "wrong",
    [
        [row(extra=1)],
        [_FIRST | {"tombstone": False}],
        [row() | {"tombstone": True}],
        [row(filename="b"), row(filename="a")],
        [row(filename="a"), row(filename="a")],
        [row(normalized="b"), row(normalized="a")],
    ],
)
def test_wrong_columns_and_order_are_rejected(tmp_path: Path, wrong: list[Row]) -> None:
    with pytest.raises(RowError):
        write(tmp_path / "x", wrong)


def test_other_files_are_rejected(tmp_path: Path) -> None:
    for text in ("", "{}\n", "[]", "[\n", "[\n{}\n", "[\n1\n]\n", '[\n{"a": \n]\n', "[\n]\n]\n"):
        with pytest.raises(DumpDamagedError, match=r"some/file\.json\.gz"):
            read(gzip.compress(text.encode()))
        with pytest.raises(DumpDamagedError, match=r"some/file\.json\.zst"):
            read(zstandard.ZstdCompressor().compress(text.encode()), DumpFormat.ZSTD)
    for form in DumpFormat:
        with pytest.raises(DumpDamagedError, match=naming(f"some/file{form.ending}", 0)):
            read(b"not compressed at all", form)


def test_zstd_file_that_needs_much_memory_is_rejected() -> None:
    text = b"[\n]\n"
    for window_log, is_read in ((21, True), (23, True), (24, False), (27, False)):
        parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=window_log)
        compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
        content = compressor.compress(text) + compressor.flush()  # without its size, which would reduce the window
        if is_read:
            assert read(content, DumpFormat.ZSTD) == []
        else:
            with pytest.raises(DumpDamagedError):
                read(content, DumpFormat.ZSTD)


def test_zstd_file_continued_by_other_bytes_is_rejected(tmp_path: Path) -> None:
    write(tmp_path / "x", [row()], form=DumpFormat.ZSTD)
    content = (tmp_path / "x").read_bytes()
    for more in (b"more", content):
        with pytest.raises(DumpDamagedError):
            read(content + more, DumpFormat.ZSTD)


@settings(max_examples=examples(60), deadline=None)
@given(form=st.sampled_from(DumpFormat), at=st.integers(0, 10_000), flip=st.integers(1, 255), cut=st.booleans())
def test_any_corruption_is_reported(
    tmp_path_factory: pytest.TempPathFactory, form: DumpFormat, at: int, flip: int, cut: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged"
    rows = [row(filename=f"{number:05}", sha256=f"{number * 7919:064x}") for number in range(50)]
    write(path, rows, form=form)
    content = bytearray(path.read_bytes())
    at %= len(content)
    if cut:
        del content[min(at, len(content) - 5) if form is DumpFormat.ZSTD else at :]  # a cut checksum has no effect
    elif at in {3, 4, 5, 6, 7, 8, 9}:  # gzip's flags, time and system, zstd's window: some values have no effect
        return
    else:
        content[at] ^= flip
    with pytest.raises(DumpDamagedError):
        read(bytes(content), form)


MANIFEST = b"""{
  "format": 1,
  "kind": "incremental",
  "range": "1200-1350",
  "directory": "1200-1350.2",
  "sequence": 17,
  "shards": 1,
  "inputs": [],
  "columns_version": 1,
  "columns": {
    "project": {
      "type": "string",
      "meaning": "the project's name as displayed"
    },
    "normalized": {
      "type": "string",
      "meaning": "the project's normalized name"
    }
  },
  "rows": 211,
  "bytes": 40211,
  "files": [
    {
      "shard": 0,
      "name": "python_distribution_data0000.json.gz",
      "rows": 211,
      "bytes": 40211,
      "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    }
  ]
}
"""
"""With two of the columns."""
FILE = DumpFile(
    0,
    "python_distribution_data0000.json.gz",
    211,
    40211,
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
)


@pytest.fixture
def storage() -> Storage:
    return open_storage("memory:///")


def manifest(columns: tuple[str, ...]) -> DumpManifest:
    return DumpManifest(
        DumpKind.INCREMENTAL, SerialRange(1200, 1350), "1200-1350.2", 17, 1, inputs=(), files=(FILE,), columns=columns
    )


def test_manifest_has_the_expected_bytes(storage: Storage) -> None:
    storage.put(manifest_path("1200-1350.2"), MANIFEST)
    assert read_manifest(storage, "1200-1350.2") == manifest(("project", "normalized"))
    assert read_manifest(storage, "1200-1350.2").encode() == MANIFEST


def test_manifest_counts_followed_projects_of_scopes(storage: Storage) -> None:
    of_all = manifest(("project", "normalized"))
    assert b"followed_projects" not in of_all.encode()
    of_some = replace(of_all, followed_projects=0)
    storage.put(manifest_path("1200-1350.2"), of_some.encode())
    assert read_manifest(storage, "1200-1350.2") == of_some


def test_manifest_lists_the_columns_of_its_dump(storage: Storage) -> None:
    for columns in (FEWER_COLUMNS, tuple(COLUMNS)):
        storage.put(manifest_path("1200-1350.2"), manifest(columns).encode())
        assert list(json.loads(storage.get(manifest_path("1200-1350.2")))["columns"]) == list(columns)
        assert read_manifest(storage, "1200-1350.2") == manifest(columns)


def test_added_columns_do_not_affect_older_readers() -> None:
    """A reader of the first version checks only these two fields."""
    fields = json.loads(manifest(tuple(COLUMNS)).encode())
    assert (fields["format"], fields["columns_version"]) == (1, 1)


@pytest.mark.parametrize("field", ["format", "columns_version"])
def test_newer_format_is_rejected(storage: Storage, field: str) -> None:
    fields = json.loads(manifest(tuple(COLUMNS)).encode())
    storage.put(manifest_path("1200-1350.2"), json.dumps(fields | {field: 2}).encode())
    with pytest.raises(DumpDamagedError, match=naming("1200-1350.2")):
        read_manifest(storage, "1200-1350.2")


def test_manifest_describes_the_dump(small: SmallCatalog, storage: Storage) -> None:
    manifest = full_dump(small.catalog, storage, shards=1)
    fields = json.loads(storage.get(manifest_path("0-100")))
    assert (fields["format"], fields["columns_version"], list(fields["columns"])) == (1, 1, list(COLUMNS))
    assert (fields["kind"], fields["range"], fields["rows"]) == ("full", "0-100", 15)
    assert fields["files"][0]["name"] == "python_distribution_data0000.json.gz"
    assert read_manifest(storage, "0-100") == manifest


@pytest.mark.parametrize(("shards", "shard"), [(256, 0x2A), (16, 0x2), (1, 0)])
def test_shard_of_uses_the_first_hex_digits(shards: int, shard: int) -> None:
    assert hashlib.sha256(b"demo").hexdigest().startswith("2a")
    assert shard_of("demo", shards) == shard


DOCUMENT = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")


def test_every_column_is_documented_in_order() -> None:
    section = DOCUMENT.split(f"### The columns, version {COLUMNS_VERSION}\n")[1].split("\n### ")[0]
    described = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.MULTILINE)
    assert described == [(name, column.type) for name, column in COLUMNS.items()]


def test_distribution_fields_are_documented() -> None:
    section = DOCUMENT.split(f"### `depgraph`, format {FORMAT}\n")[1].split("\n## ")[0]
    named = re.findall(r"`(\w+)`", section)
    for fields in (OWN_FIELDS, SHARED_FIELDS):
        start = named.index(fields[0], named.index("build") if fields is SHARED_FIELDS else 0)
        assert tuple(named[start : start + len(fields)]) == fields
    assert f"up to {FEW_FILES} files" in section
