"""An index's answers as values. Only a listed project has a derived value, its normalized name."""

import pytest

from pypi_assets.index.errors import RefusedError
from pypi_assets.index.models import (
    LONGEST_NAME,
    LONGEST_TEXT,
    BrokenEntry,
    ListedProject,
    broken_entry,
    is_count,
    require_few,
)
from pypi_assets_tests.naming import naming


@pytest.mark.parametrize("value", [0, 1, 2**63 - 1])
def test_integers_that_fit_a_column_are_counts(value: int) -> None:
    assert is_count(value)


@pytest.mark.parametrize("value", [-1, 2**63, True, False, 1.0, "1", b"1", None, [1]])
def test_other_values_are_not_counts(value: object) -> None:
    assert not is_count(value)


def test_stored_text_of_an_entry_is_bounded() -> None:
    assert broken_entry("odd", {"a": b"x"}, name=7) == BrokenEntry("odd", """{"a": "b'x'"}""")
    kept = broken_entry("odd", ["x" * 10**6], name="n" * 10**6, serial=5, after=4)
    assert (len(kept.text), kept.name, kept.serial, kept.after) == (LONGEST_TEXT, "n" * LONGEST_NAME, 5, 4)


@pytest.mark.parametrize(("good", "most"), [(0, 10), (99, 10), (100, 11), (50_000, 510)])
def test_ten_plus_one_percent_are_few(good: int, most: int) -> None:
    require_few(most, good, "it", "https://index.example.org/")
    with pytest.raises(RefusedError, match=naming(most + 1, good + most + 1)):
        require_few(most + 1, good, "it", "https://index.example.org/")


@pytest.mark.parametrize("name", ["Foo.Bar", "foo_bar", "FOO--bar", "foo-._bar"])
def test_listed_project_has_display_and_normalized_names(name: str) -> None:
    """PEP 503: lower case, and each run of `-`, `_` and `.` becomes one `-`."""
    project = ListedProject(name, None)
    assert (project.name, project.normalized) == (name, "foo-bar")
