"""Segments, manifests and heads are read as they were written, and corruption is detected and named."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.journal_format import JournalStream, new_record, numbered
from pypi_assets.journal.segment_files import (
    Head,
    JournalDamagedError,
    LastTakedown,
    OpenSegment,
    Pruned,
    SegmentManifest,
    chained,
    decode_manifest,
    head_path,
    manifest_path,
    read_head,
    read_lines,
    read_manifest,
    segment_path,
    write_head,
    write_manifest,
    write_segment,
)
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import naming

RECORDS = [new_record(serial, serial, "unknown", serial) | {"project": "é\ud800"} for serial in (1, 1, 5, 9)]


def written(storage: Storage, previous: str | None = None) -> SegmentManifest:
    records = numbered(JournalStream.INDEX, [dict(record) for record in RECORDS])
    file = write_segment(storage, JournalStream.INDEX, 1, SerialRange(0, 10), records)
    manifest = SegmentManifest.of(file, 1, previous)
    write_manifest(storage, manifest)
    return manifest


def test_segment_round_trips(storage: Storage) -> None:
    manifest = written(storage)
    lines = list(read_lines(storage, manifest))
    assert len(lines) == manifest.records == len(RECORDS)
    assert sum(len(line) + 1 for line in lines) == manifest.content_bytes
    assert read_manifest(storage, "index", 1, 1) == manifest
    assert chained(manifest).manifest_sha256 == manifest.digest
    assert written(storage) == manifest  # equal records give an equal file


def test_lines_are_complete_at_any_block_boundary(storage: Storage) -> None:
    sizes = (1, 700_000, 3, 262_144, 5)
    records = [new_record(1, 1, "unknown", 1) | {"project": "x" * size} for size in sizes]
    file = write_segment(storage, JournalStream.INDEX, 1, SerialRange(0, 10), numbered(JournalStream.INDEX, records))
    lines = list(read_lines(storage, SegmentManifest.of(file, 1, None)))
    assert [len(orjson.loads(line)["project"]) for line in lines] == list(sizes)


def test_file_depends_only_on_its_records(storage: Storage) -> None:
    other = open_storage("memory:///")
    one, two = written(storage), written(other)
    assert storage.get(segment_path(one)) == other.get(segment_path(two))
    assert storage.get(manifest_path("index", 1, 1)) == other.get(manifest_path("index", 1, 1))


@settings(max_examples=examples(40))
@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_flipped_bit_is_detected_before_the_last_record(place: int, bit: int) -> None:
    storage = open_storage("memory:///")
    manifest = written(storage)
    content = bytearray(storage.get(segment_path(manifest)))
    content[place % len(content)] ^= 1 << bit
    storage.put(segment_path(manifest), bytes(content))
    read = 0
    try:
        for _ in read_lines(storage, manifest):
            read += 1
    except JournalDamagedError:
        assert read < manifest.records
    else:  # some bits of the frame's header have no effect
        assert place % len(content) < 18


@pytest.mark.parametrize("change", [lambda content: content[:-1], lambda content: content + b"x"])
def test_changed_manifest_is_rejected(storage: Storage, change: Callable[[bytes], bytes]) -> None:
    written(storage)
    path = manifest_path("index", 1, 1)
    storage.put(path, change(storage.get(path)))
    with pytest.raises(JournalDamagedError, match=naming("00000001.json")):
        read_manifest(storage, "index", 1, 1)


@pytest.mark.parametrize("name", [b"../../../secret", b".hidden", b"a b", b"a\x7fb", b"a\xc3\xa9", b"a" * 201, b""])
def test_manifest_with_an_invalid_filename_is_rejected(storage: Storage, name: bytes) -> None:
    manifest = written(storage)
    path = manifest_path("index", 1, 1)
    storage.put(path, storage.get(path).replace(manifest.name.encode(), name))
    with pytest.raises(JournalDamagedError, match=naming("00000001.json")):
        read_manifest(storage, "index", 1, 1)


def test_missing_or_extra_records_are_named(storage: Storage) -> None:
    manifest = written(storage)
    content = zstandard.ZstdDecompressor().decompressobj().decompress(storage.get(segment_path(manifest)))
    for changed in (content[: content.rindex(b"{")], content + b"{}\n" * 9):
        storage.put(segment_path(manifest), zstandard.ZstdCompressor().compress(changed))
        with pytest.raises(JournalDamagedError, match=naming(manifest.name)):
            list(read_lines(storage, manifest))
    storage.delete(segment_path(manifest))
    with pytest.raises(JournalDamagedError, match=naming(manifest.name)):
        list(read_lines(storage, manifest))
    with pytest.raises(JournalDamagedError, match=naming("00000002.json")):
        read_manifest(storage, "index", 1, 2)


def test_head_round_trips(storage: Storage) -> None:
    assert read_head(storage, "index") is None
    opened = OpenSegment(SerialRange(10, 12), "open-10-12.jsonl.zst", 2, 90, "0" * 64)
    for head in (Head("index", 1, 0, 10, 1, "a" * 64), Head("index", 1, 0, 10, 1, "a" * 64, opened)):
        write_head(storage, head)
        assert read_head(storage, "index") == head
    assert head.through == 12
    storage.put(head_path("index"), b"{}")
    with pytest.raises(JournalDamagedError, match=naming("head.json")):
        read_head(storage, "index")


NO_NUMBERS = (b"1e30", b"-1", b"1.5", b"true", b"[]", b'"1"', b"null", b"9" * 19)
NO_TEXTS = (b"[]", b'["x"]', b"{}", b"5", b"[" * 300 + b"]" * 300)


def with_each_wrong_field(
    fields: dict[str, Any], numbers: Iterable[str], texts: Iterable[str], part: str | None = None
) -> Iterator[bytes]:
    """Yield the file with invalid values for each field in turn, or for each field of a part."""
    for name, values in [*((name, NO_NUMBERS) for name in numbers), *((name, NO_TEXTS) for name in texts)]:
        changed = {name: "PLACE"} if part is None else {part: fields[part] | {name: "PLACE"}}
        whole = orjson.dumps(fields | changed, option=orjson.OPT_APPEND_NEWLINE)
        yield from (whole.replace(b'"PLACE"', value) for value in values)


def test_field_of_another_type_is_rejected(storage: Storage) -> None:
    manifest = orjson.loads(written(storage).encode())
    numbers = ("generation", "number", "start", "end", "records", "bytes")
    for content in with_each_wrong_field(manifest, numbers, ("stream", "name", "sha256", "previous")):
        with pytest.raises(JournalDamagedError):
            decode_manifest(content, "here")
    opened = OpenSegment(SerialRange(10, 12), "open-10-12.jsonl.zst", 2, 90, "0" * 64)
    head = Head("index", 1, 0, 10, 1, "a" * 64, opened, LastTakedown(1, "b" * 64), Pruned(1, 10))
    fields = orjson.loads(head.encode())
    for content in (
        *with_each_wrong_field(fields, ("generation", "start", "end", "number"), ("stream", "digest")),
        *with_each_wrong_field(fields, ("start", "end", "records", "bytes"), ("name", "sha256"), "open"),
        *with_each_wrong_field(fields, ("number",), ("digest",), "takedowns"),
        *with_each_wrong_field(fields, ("number", "end"), (), "pruned"),
        *(orjson.dumps(fields | {part: wrong}) for part in ("open", "takedowns", "pruned") for wrong in ("", 0, [1])),
    ):
        storage.put(head_path("index"), content)
        with pytest.raises(JournalDamagedError, match=naming("head.json")):
            read_head(storage, "index")
