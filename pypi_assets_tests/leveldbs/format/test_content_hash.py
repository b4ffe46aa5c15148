"""The content hash is of a set: the order of records does not matter, and removing undoes adding."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.leveldbs.format.records import ContentHash, hash_sum


def test_the_content_hash_is_of_a_set() -> None:
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
def test_records_count_alike_one_by_one_and_many_at_once(records: list[tuple[bytes, bytes]], cut: int) -> None:
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


def test_a_record_that_is_removed_before_it_is_added_leaves_nothing() -> None:
    content_hash = ContentHash()
    content_hash.remove(b"a", b"1")
    assert len(content_hash.hex) == 64
    assert content_hash.hex != ContentHash().hex
    content_hash.add(b"a", b"1")
    assert content_hash.hex == ContentHash().hex == "0" * 64


def test_hashes_stay_as_they_were_published() -> None:
    """Versions are compared with hashes that were stored when they were built."""
    content_hash = ContentHash()
    content_hash.add(b"m\0demo\0demo", b"demo")
    sized = b"\0\0\0\0\0\0\0\x0bm\0demo\0demo" + b"\0\0\0\0\0\0\0\x04demo"
    assert content_hash.hex == hashlib.sha256(sized).hexdigest()
