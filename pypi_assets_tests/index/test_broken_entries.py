"""Entries that break the protocol: what is kept of one, and how many are too many."""

import pytest

from pypi_assets.index.broken_entries import LONGEST_TEXT, broken_entry, require_few
from pypi_assets.index.errors import RefusedError
from pypi_assets.index.models import LONGEST_NAME, BrokenEntry
from pypi_assets_tests.naming import naming


def test_what_is_kept_of_an_entry_is_bounded() -> None:
    assert broken_entry("odd", {"a": b"x"}, name=7) == BrokenEntry("odd", """{"a": "b'x'"}""")
    kept = broken_entry("odd", ["x" * 10**6], name="n" * 10**6, serial=5, after=4)
    assert (len(kept.text), kept.name, kept.serial, kept.after) == (LONGEST_TEXT, "n" * LONGEST_NAME, 5, 4)


@pytest.mark.parametrize(("good", "most"), [(0, 10), (99, 10), (100, 11), (50_000, 510)])
def test_one_in_a_hundred_and_ten_more_are_few(good: int, most: int) -> None:
    require_few(most, good, "it", "https://index.example.org/")
    with pytest.raises(RefusedError, match=naming(most + 1, good + most + 1)):
        require_few(most + 1, good, "it", "https://index.example.org/")
