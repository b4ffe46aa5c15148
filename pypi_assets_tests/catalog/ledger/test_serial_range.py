"""Rule 1: a serial range is named by its key, and by nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.catalog.ledger.serial_range import RangeError, SerialRange


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_a_key_names_its_range_and_nothing_else(start: int, end: int):
    if start <= end:
        assert SerialRange.parse(SerialRange(start, end).key) == SerialRange(start, end)
    else:
        with pytest.raises(RangeError):
            SerialRange(start, end)


@given(st.text(max_size=12) | st.from_regex(r"[0-9]{1,4}[-,. ]{1,3}[0-9]{0,4}\n?"))
def test_what_is_no_key_is_refused(key: str):
    try:
        serials = SerialRange.parse(key)
    except RangeError:
        return
    assert serials.key == key


def test_what_dagster_lets_through_is_refused_here(subtests: pytest.Subtests):
    for key in ["", "5", "9-5", "05-9", "5-9\n", " 5-9", "5-9...12-14", "-5-9", "\u0665-\u0669"]:
        with subtests.test(key=key), pytest.raises(RangeError):
            SerialRange.parse(key)


def test_start_is_not_in_the_range_and_end_is():
    serials = SerialRange(5, 9)
    assert [serial for serial in range(12) if serial in serials] == [6, 7, 8, 9]
