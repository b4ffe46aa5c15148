"""The newest release is the one that an installer would choose; `lookup/test_newest.py` compares with `packaging`."""

import pytest

from pypi_assets.leveldbs.format.newest_release import newest_release, newest_version


@pytest.mark.parametrize(
    ("versions", "yanked", "newest"),
    [
        (["1.0", "2.0", "3.0rc1"], [], "2.0"),
        (["1.0", "2.0", "3.0rc1"], ["2.0"], "1.0"),
        (["1.0", "2.0rc1", "2.0.dev1"], ["1.0"], "2.0rc1"),
        (["1.0", "2.0rc1"], ["1.0", "2.0rc1"], "2.0rc1"),
        (["1.9", "1.10"], ["1.9", "1.10"], "1.10"),
        (["1.0", "1.0.post1"], [], "1.0.post1"),
        (["no version", "0.1"], [], "0.1"),
    ],
)
def test_stable_versions_and_those_that_are_not_yanked_come_first(
    versions: list[str], yanked: list[str], newest: str
) -> None:
    assert newest_version(versions, yanked) == newest


def test_a_release_is_yanked_where_all_of_its_files_are() -> None:
    assert newest_release([("1.0", False), ("2.0", True)]) == "1"
    assert newest_release([("1.0", False), ("2.0", True), ("2", False)]) == "2"
    assert newest_release([("1.0", True), ("2.0", True)]) == "2"
