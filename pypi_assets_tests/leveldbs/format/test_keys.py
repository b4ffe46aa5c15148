"""Keys, samples, content hash and metadata of a LevelDB."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, UnknownFormatError
from pypi_assets.leveldbs.format.open_leveldb import SampleRecord, open_leveldb, sample_records
from pypi_assets.leveldbs.format.records import (
    META_PREFIX,
    SEPARATOR,
    ContentHash,
    Meta,
    as_part,
    hash_sum,
    key,
    prefix,
    read_meta,
    write_meta,
)
from pypi_assets_tests.naming import naming

parts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


def test_key_parts_are_utf_8_separated_by_a_zero_byte() -> None:
    assert key("m") == b"m"
    assert key("m", "é", "demo") == b"m\0\xc3\xa9\0demo"
    assert prefix("m", "demo") == b"m\0demo\0"
    assert key("d", "demo", "", "x") == b"d\0demo\0\0x"


def test_zero_byte_in_a_part_is_replaced() -> None:
    assert as_part("a\0b\0") == "a\ufffdb\ufffd"
    assert key("m", "a\0b", "demo") == "m\0a\ufffdb\0demo".encode()
    assert key("m", as_part("a\0b")) == key("m", "a\0b")


@given(st.lists(parts, min_size=1, max_size=4))
def test_key_has_as_many_parts_as_given(given_parts: list[str]) -> None:
    assert key(*given_parts).split(SEPARATOR) == [as_part(part).encode() for part in given_parts]


@given(st.lists(parts, min_size=2, max_size=2), st.lists(parts, min_size=3, max_size=3))
def test_prefix_matches_only_keys_with_the_same_first_parts(wanted: list[str], other: list[str]) -> None:
    has_same_parts = list(map(as_part, other[:2])) == list(map(as_part, wanted))
    assert key(*other).startswith(prefix(*wanted)) == has_same_parts
    assert key(*wanted, "x").startswith(prefix(*wanted))
    assert not key(*wanted).startswith(prefix(*wanted))


@given(st.lists(st.lists(parts, min_size=2, max_size=2), max_size=8))
def test_keys_sort_part_by_part(pairs: list[list[str]]) -> None:
    by_parts = sorted(pairs, key=lambda pair: [as_part(part).encode() for part in pair])
    assert sorted(key(*pair) for pair in pairs) == [key(*pair) for pair in by_parts]


def test_samples_alternate_between_kinds_of_keys(tmp_path: Path) -> None:
    with open_leveldb(tmp_path / "db", "sampled", create=True) as db:
        for number in range(9):
            db.put(key("m", f"module{number}", "demo"), b"x" * 1_000)
        db.put(key("p", "demo"), b"[1]")
        db.put(b"\0meta", b"{}")
        assert [record.key for record in sample_records(db, "mpq")] == [
            ("m", "module0", "demo"),
            ("p", "demo"),
            ("m", "module1", "demo"),
            ("m", "module2", "demo"),
            ("m", "module3", "demo"),
        ]
        assert sample_records(db, "p") == [SampleRecord(("p", "demo"), "[1]", 3)]
        [long] = sample_records(db, "m", 1)
        assert (len(long.value), long.size) == (400, 1_000)
        assert sample_records(db, "z") == []


def test_undecodable_key_is_displayed(tmp_path: Path) -> None:
    with open_leveldb(tmp_path / "db", "sampled", create=True) as db:
        db.put(b"m\0\xff", "é".encode() * 300)
        [record] = sample_records(db, "m")
        assert record.key == ("m", "\ufffd")
        assert record.value.startswith("éé")


META = Meta("modules", 1, 5, {"m": 2, "f": 1}, ContentHash().hex)


def test_unknown_format_is_rejected(tmp_path: Path) -> None:
    meta = Meta("modules", 1, 5, {"m": 2}, ContentHash().hex)
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        with pytest.raises(LeveldbDamagedError, match=naming("x")):
            read_meta(db, "x", dataset="modules", known_format=1)
        write_meta(db, meta)
        assert read_meta(db, "x", dataset="modules", known_format=1) == meta
        write_meta(db, replace(meta, format=2))
        with pytest.raises(UnknownFormatError, match=naming("x", "modules", 2, 1)):
            read_meta(db, "x", dataset="modules", known_format=1)


def test_meta_round_trips_and_replaces_earlier_meta(tmp_path: Path) -> None:
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        db.put(b"m\0demo", b"not about the LevelDB itself")
        for meta in (META, replace(META, serial=7, counts={}, content_hash="ab" * 32)):
            write_meta(db, meta)
            assert read_meta(db, "x", dataset="modules", known_format=1) == meta
        fields = [record_key for record_key, _ in db.iterator(prefix=META_PREFIX)]
        assert fields == [b"\0content_hash", b"\0counts", b"\0dataset", b"\0format", b"\0serial"]
        assert db.get(b"m\0demo") == b"not about the LevelDB itself"


def test_equal_facts_are_stored_as_equal_bytes(tmp_path: Path) -> None:
    stored = []
    for number, counts in enumerate(({"m": 2, "f": 1}, {"f": 1, "m": 2})):
        with open_leveldb(tmp_path / f"{number}", "x", create=True) as db:
            write_meta(db, replace(META, counts=counts))
            stored.append(dict(db.iterator()))
    assert stored[0] == stored[1]


def test_other_dataset_is_rejected(tmp_path: Path) -> None:
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        write_meta(db, META)
        with pytest.raises(UnknownFormatError, match=naming("x", "modules", 1, "depgraph")):
            read_meta(db, "x", dataset="depgraph", known_format=1)


@pytest.mark.parametrize("field", [b"dataset", b"format", b"serial", b"counts", b"content_hash"])
@pytest.mark.parametrize("value", [None, b"", b"{"])
def test_missing_or_invalid_meta_field_is_corruption(tmp_path: Path, field: bytes, value: bytes | None) -> None:
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        write_meta(db, META)
        db.delete(META_PREFIX + field)
        if value is not None:
            db.put(META_PREFIX + field, value)
        with pytest.raises(LeveldbDamagedError, match=naming("x")):
            read_meta(db, "x", dataset="modules", known_format=1)


def test_content_hash_ignores_order() -> None:
    one, other = ContentHash(), ContentHash()
    for record in ((b"a", b"1"), (b"b", b"2"), (b"ab", b"")):
        one.add(*record)
    for record in ((b"ab", b""), (b"gone", b"x"), (b"b", b"2"), (b"a", b"1")):
        other.add(*record)
    assert one.hex != other.hex
    other.remove(b"gone", b"x")
    assert one.hex == other.hex == ContentHash(one.hex).hex
    shifted = ContentHash()
    shifted.add(b"a", b"b2")
    moved = ContentHash()
    moved.add(b"ab", b"2")
    assert shifted.hex != moved.hex


RECORDS = {b"a": b"1", b"b": b"", b"ab": b"2" * 1_000}


@given(st.permutations(list(RECORDS.items())), st.integers(0, len(RECORDS)))
def test_hash_is_the_same_for_single_and_batched_records(records: list[tuple[bytes, bytes]], cut: int) -> None:
    by_one, at_once = ContentHash(), ContentHash()
    for record in records:
        by_one.add(*record)
    at_once.add_sum(hash_sum(records[:cut]))
    at_once.add_sum(hash_sum(records[cut:]))
    assert by_one.hex == at_once.hex
    for record in records[cut:]:
        at_once.remove(*record)
    expected = ContentHash()
    expected.add_sum(hash_sum(records[:cut]))
    assert at_once.hex == expected.hex


def test_removing_a_record_before_adding_it_cancels_out() -> None:
    content_hash = ContentHash()
    content_hash.remove(b"a", b"1")
    assert len(content_hash.hex) == 64
    assert content_hash.hex != ContentHash().hex
    content_hash.add(b"a", b"1")
    assert content_hash.hex == ContentHash().hex == "0" * 64


def test_hash_function_never_changes() -> None:
    """Versions are compared with hashes that were stored when they were built."""
    content_hash = ContentHash()
    content_hash.add(b"m\0demo\0demo", b"demo")
    sized = b"\0\0\0\0\0\0\0\x0bm\0demo\0demo" + b"\0\0\0\0\0\0\0\x04demo"
    assert content_hash.hex == hashlib.sha256(sized).hexdigest()
