"""Keys keep their parts apart: what is looked up by a part is found by its prefix, and nothing else is."""

from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.leveldbs.format.records import SEPARATOR, as_part, key, prefix

parts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


def test_parts_are_utf_8_with_a_zero_byte_between_them() -> None:
    assert key("m") == b"m"
    assert key("m", "é", "demo") == b"m\0\xc3\xa9\0demo"
    assert prefix("m", "demo") == b"m\0demo\0"
    assert key("d", "demo", "", "x") == b"d\0demo\0\0x"


def test_a_zero_byte_in_a_part_is_replaced() -> None:
    assert as_part("a\0b\0") == "a\ufffdb\ufffd"
    assert key("m", "a\0b", "demo") == "m\0a\ufffdb\0demo".encode()
    assert key("m", as_part("a\0b")) == key("m", "a\0b")


@given(st.lists(parts, min_size=1, max_size=4))
def test_a_key_has_as_many_parts_as_were_given(given_parts: list[str]) -> None:
    assert key(*given_parts).split(SEPARATOR) == [as_part(part).encode() for part in given_parts]


@given(st.lists(parts, min_size=2, max_size=2), st.lists(parts, min_size=3, max_size=3))
def test_only_keys_with_the_same_first_parts_begin_with_a_prefix(wanted: list[str], other: list[str]) -> None:
    has_same_parts = list(map(as_part, other[:2])) == list(map(as_part, wanted))
    assert key(*other).startswith(prefix(*wanted)) == has_same_parts
    assert key(*wanted, "x").startswith(prefix(*wanted))
    assert not key(*wanted).startswith(prefix(*wanted))


@given(st.lists(st.lists(parts, min_size=2, max_size=2), max_size=8))
def test_keys_sort_by_their_parts_one_after_the_other(pairs: list[list[str]]) -> None:
    by_parts = sorted(pairs, key=lambda pair: [as_part(part).encode() for part in pair])
    assert sorted(key(*pair) for pair in pairs) == [key(*pair) for pair in by_parts]
