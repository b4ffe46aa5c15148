"""The first fault of a stream is detected and named: the file, the record and, if known, the byte."""

from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import (
    Head,
    SegmentManifest,
    head_path,
    manifest_path,
    read_head,
    read_lines,
    read_manifest,
    segment_path,
    write_head,
)
from pypi_assets.journal.verification import JournalFault, verify_stream
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.examples import examples
from pypi_assets_tests.journal.written import simple_record, write_streams
from pypi_assets_tests.naming import mentions


def written(storage: Storage) -> Journal:
    records = [simple_record(serial, "unknown", f"project-{serial}") for serial in range(1, 31) for _ in range(2)]
    return write_streams(storage, {JournalStream.INDEX: records}, 30, cuts=(10, 20))


def manifest(storage: Storage, number: int = 2) -> SegmentManifest:
    return read_manifest(storage, "index", 1, number)


def lines_of(storage: Storage, segment: SegmentManifest) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(storage.get(segment_path(segment)))


def rewritten(storage: Storage, change: Callable[[bytes], bytes]) -> JournalFault:
    """Return the fault that verification finds after the records of the second segment were changed."""
    written(storage)
    segment = manifest(storage)
    content = change(lines_of(storage, segment))
    storage.put(segment_path(segment), zstandard.ZstdCompressor(write_checksum=True).compress(content))
    state = verify_stream(storage, JournalStream.INDEX)
    assert not state.is_sound
    assert state.fault is not None
    assert state.fault.file == segment_path(segment)
    assert state.segments == 1
    return state.fault


def test_valid_stream_has_no_fault(storage: Storage) -> None:
    written(storage)
    state = verify_stream(storage, JournalStream.INDEX)
    assert (state.fault, state.segments, state.records) == (None, 3, 60)


@pytest.mark.parametrize(
    ("old", "new", "values"),
    [
        (b'"ordinal":1', b'"ordinal":2', [2, 1]),
        (b'"serial":14', b'"serial":13', [0, 2]),
        (b'{"serial":14', b'{"serial":12', [12, 13]),
        (b'{"serial":14', b'{"serial":21', [21, "10-20"]),
        (b'"stream":"index"', b'"stream":"observed"', ["observed"]),
        (b'"of_serial":14', b'"of_serial":99', [99]),
        (b'{"serial":14', b'["serial":14', []),
        (b'{"serial":14', b'{"serial":' + b"1" * 5_000, []),
    ],
)
def test_misplaced_record_is_named(storage: Storage, old: bytes, new: bytes, values: list[object]) -> None:
    def change(content: bytes) -> bytes:
        place = content.index(old, content.index(b'{"serial":14') if b"14" not in old else 0)
        changed.append(content.rindex(b"\n", 0, place + 1) + 1 if b"\n" in content[:place] else 0)
        return content[:place] + new + content[place + len(old) :]

    changed: list[int] = []
    fault = rewritten(storage, change)
    assert mentions(fault.problem, *values)
    assert fault.record in {7, 8}
    assert fault.offset == changed[0]


def test_changed_character_is_detected_by_the_hash(storage: Storage) -> None:
    fault = rewritten(storage, lambda content: content.replace(b"project-14", b"project-24", 1))
    assert "sha256" in fault.problem
    assert (fault.record, fault.offset) == (None, None)


def test_byte_that_breaks_the_json_is_named(storage: Storage) -> None:
    fault = rewritten(storage, lambda content: content.replace(b'"project":"project-14"', b'"project":=project-14"', 1))
    assert fault.record == 7
    assert fault.offset is not None


def test_missing_or_extra_records_are_named(storage: Storage) -> None:
    fault = rewritten(storage, lambda content: content[: content.rindex(b'{"serial"')])
    assert "sha256" in fault.problem


@settings(max_examples=examples(30))
@given(number=st.integers(1, 3), place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_flipped_bit_of_a_segment_is_detected_in_its_file(number: int, place: int, bit: int) -> None:
    storage = open_storage("memory:///")
    written(storage)
    segment = manifest(storage, number)
    path, before = segment_path(segment), list(read_lines(storage, segment))
    content = bytearray(storage.get(path))
    content[place % len(content)] ^= 1 << bit
    storage.put(path, bytes(content))
    state = verify_stream(storage, JournalStream.INDEX)
    if state.is_sound:
        assert list(read_lines(storage, segment)) == before  # some bits of zstd's blocks have no effect
    else:
        assert state.fault is not None
        assert (state.fault.file, state.segments) == (path, number - 1)


@settings(max_examples=examples(30))
@given(number=st.integers(1, 3), place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_flipped_bit_of_a_manifest_is_detected(number: int, place: int, bit: int) -> None:
    storage = open_storage("memory:///")
    written(storage)
    path = manifest_path("index", 1, number)
    content = bytearray(storage.get(path))
    content[place % len(content)] ^= 1 << bit
    storage.put(path, bytes(content))
    state = verify_stream(storage, JournalStream.INDEX)
    assert state.fault is not None
    following = manifest_path("index", 1, number + 1)
    segment = "index/0001/"
    assert state.fault.file in {path, following, head_path("index")} or segment in state.fault.file
    assert state.segments >= number - 1


def test_manifest_of_another_chain_is_detected(storage: Storage) -> None:
    written(storage)
    other = open_storage("memory:///")
    records = [simple_record(serial, "unknown", "other") for serial in range(1, 31)]
    write_streams(other, {JournalStream.INDEX: records}, 30, cuts=(10, 20))
    for path in (manifest_path("index", 1, 2), segment_path(manifest(other))):
        storage.put(path, other.get(path))
    state = verify_stream(storage, JournalStream.INDEX)
    assert state.fault is not None
    assert state.fault.file == manifest_path("index", 1, 2)


def test_head_that_does_not_match_its_chain_is_detected(storage: Storage) -> None:
    written(storage)
    head = read_head(storage, "index")
    assert head is not None
    for changed in (Head("index", 1, 0, 29, 3, head.digest), Head("index", 1, 0, 20, 2, head.digest)):
        write_head(storage, changed)
        state = verify_stream(storage, JournalStream.INDEX)
        assert state.fault is not None
        assert state.fault.file == head_path("index")
    write_head(storage, Head("index", 1, 5, 30, 3, head.digest))
    state = verify_stream(storage, JournalStream.INDEX)
    assert state.fault is not None
    assert state.fault.file == manifest_path("index", 1, 1)
    storage.delete(head_path("index"))
    state = verify_stream(storage, JournalStream.INDEX)
    assert state.head is None
    assert not state.is_sound


def test_missing_files_are_named(storage: Storage) -> None:
    written(storage)
    segment = manifest(storage)
    storage.delete(segment_path(segment))
    state = verify_stream(storage, JournalStream.INDEX)
    assert state.fault is not None
    assert state.fault.file == segment_path(segment)
    storage.delete(manifest_path("index", 1, 2))
    state = verify_stream(storage, JournalStream.INDEX)
    assert state.fault is not None
    assert state.fault.file == manifest_path("index", 1, 2)
