"""Where versions and their input lists lie: never in each other's way, and in the order of their numbers."""

import pytest

from pypi_assets.leveldbs.versions.leveldb_paths import (
    input_list_path,
    input_lists_path,
    leveldb_path,
    leveldbs_path,
    version_name,
)


@pytest.mark.parametrize(
    ("version", "name"), [(1, "00001"), (42, "00042"), (99_999, "99999"), (100_000, "100000"), (1_234_567, "1234567")]
)
def test_a_version_is_named_by_at_least_five_digits(version: int, name: str) -> None:
    assert version_name(version) == name
    assert int(name) == version


def test_paths_are_those_of_the_docs() -> None:
    assert input_lists_path("modules") == "modules/input_lists"
    assert input_list_path("modules", 42) == "modules/input_lists/00042"
    assert leveldbs_path("modules") == "modules/leveldbs"
    assert leveldb_path("modules", "00042.2") == "modules/leveldbs/00042.2"


def test_names_sort_as_their_versions_do() -> None:
    versions = [1, 9, 10, 99, 100, 4_321, 99_999]
    assert sorted(map(version_name, versions)) == [version_name(version) for version in versions]
