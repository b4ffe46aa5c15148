"""What an index answers, as values: only a listed project derives something, its normalized name."""

import pytest

from pypi_assets.index.models import ListedProject


@pytest.mark.parametrize("name", ["Foo.Bar", "foo_bar", "FOO--bar", "foo-._bar"])
def test_a_listed_project_has_its_normalized_name_and_keeps_the_displayed_one(name: str) -> None:
    """PEP 503: lower case, and each run of `-`, `_` and `.` is one `-`."""
    project = ListedProject(name, None)
    assert (project.name, project.normalized) == (name, "foo-bar")
