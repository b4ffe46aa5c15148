"""Keys of partitions: shards in order, in three digits, and the tags of a run of all of them."""

import pytest

from pypi_assets.catalog.observed.projects import PROJECT_SHARDS
from pypi_assets.defs.partitions import (
    DUMP_SHARDS,
    RANGE_END_TAG,
    RANGE_START_TAG,
    all_of,
    dump_shards,
    leveldb_versions,
    parse_shards,
    project_shards,
    serial_ranges,
)


def test_keys_of_shards_sort_as_numbers() -> None:
    for partitions, count in ((project_shards, PROJECT_SHARDS), (dump_shards, DUMP_SHARDS)):
        keys = list(partitions.get_partition_keys())
        assert (len(keys), set(keys[0]), keys) == (count, {"0"}, sorted(keys))
        assert list(parse_shards(partitions, reversed(keys)).items()) == list(enumerate(keys))
    assert list(all_of(project_shards).values()) == ["000", "999"]
    assert all_of(dump_shards) == {RANGE_START_TAG: "00", RANGE_END_TAG: "ff"}


def test_shards_are_parsed_in_order_each_with_its_key() -> None:
    found = parse_shards(project_shards, ["010", "002", "000"])
    assert list(found.items()) == [(0, "000"), (2, "002"), (10, "010")]
    assert parse_shards(dump_shards, ["ec", "0a"]) == {10: "0a", 236: "ec"}
    with pytest.raises(KeyError):
        parse_shards(dump_shards, ["nonsense"])


def test_names_of_partition_sets_stay_since_dagster_stores_them() -> None:
    assert (serial_ranges.name, leveldb_versions.name) == ("serial_ranges", "leveldb_versions")
