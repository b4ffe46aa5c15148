"""Rule 1: each serial range has exactly one key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.catalog.ledger.serial_range import RangeError, SerialRange


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_key_round_trips_to_its_range(start: int, end: int):
    if start <= end:
        assert SerialRange.parse(SerialRange(start, end).key) == SerialRange(start, end)
    else:
        with pytest.raises(RangeError):
            SerialRange(start, end)


@given(st.text(max_size=12) | st.from_regex(r"[0-9]{1,4}[-,. ]{1,3}[0-9]{0,4}\n?"))
def test_parse_rejects_noncanonical_keys(key: str):
    try:
        serials = SerialRange.parse(key)
    except RangeError:
        return
    assert serials.key == key


def test_parse_rejects_keys_that_dagster_accepts(subtests: pytest.Subtests):
    for key in ["", "5", "9-5", "05-9", "5-9\n", " 5-9", "5-9...12-14", "-5-9", "\u0665-\u0669"]:
        with subtests.test(key=key), pytest.raises(RangeError):
            SerialRange.parse(key)


def test_range_excludes_start_and_includes_end():
    serials = SerialRange(5, 9)
    assert [serial for serial in range(12) if serial in serials] == [6, 7, 8, 9]
