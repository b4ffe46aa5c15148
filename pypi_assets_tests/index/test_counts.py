"""Which numbers of an index count as serials and sizes."""

import pytest

from pypi_assets.index.counts import is_count


@pytest.mark.parametrize("value", [0, 1, 2**63 - 1])
def test_a_whole_number_that_a_column_can_hold_is_a_count(value: int) -> None:
    assert is_count(value)


@pytest.mark.parametrize("value", [-1, 2**63, True, False, 1.0, "1", b"1", None, [1]])
def test_nothing_else_is_a_count(value: object) -> None:
    assert not is_count(value)
