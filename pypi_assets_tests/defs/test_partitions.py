"""Keys of partitions: shards in order, in three digits, and the tags of a run of all of them."""

import pytest

from pypi_assets.catalog.observed.projects import PROJECT_SHARDS, SHARDS_IN_A_PART, project_part_key
from pypi_assets.defs.partitions import (
    DUMP_SHARDS,
    RANGE_END_TAG,
    RANGE_START_TAG,
    all_of,
    dump_shards,
    leveldb_versions,
    parse_shards,
    project_parts,
    serial_ranges,
    shards_of_parts,
)


def test_keys_of_shards_sort_as_numbers() -> None:
    for partitions, count in ((project_parts, PROJECT_SHARDS // SHARDS_IN_A_PART), (dump_shards, DUMP_SHARDS)):
        keys = list(partitions.get_partition_keys())
        assert (len(keys), set(keys[0]), keys) == (count, {"0"}, sorted(keys))
        assert list(parse_shards(partitions, reversed(keys)).items()) == list(enumerate(keys))
    assert list(all_of(project_parts).values()) == ["00", "99"]
    assert all_of(dump_shards) == {RANGE_START_TAG: "00", RANGE_END_TAG: "ff"}


def test_shards_are_parsed_in_order_each_with_its_key() -> None:
    assert list(parse_shards(dump_shards, ["10", "02", "00"]).items()) == [(0, "00"), (2, "02"), (16, "10")]
    assert parse_shards(dump_shards, ["ec", "0a"]) == {10: "0a", 236: "ec"}
    with pytest.raises(KeyError):
        parse_shards(dump_shards, ["nonsense"])


def test_the_parts_of_the_projects_have_each_shard_once() -> None:
    keys = project_parts.get_partition_keys()
    assert shards_of_parts(reversed(keys)) == list(range(PROJECT_SHARDS))
    for key in keys:
        assert {project_part_key(shard) for shard in shards_of_parts([key])} == {key}
    with pytest.raises(KeyError):
        shards_of_parts(["007"])


def test_names_of_partition_sets_stay_since_dagster_stores_them() -> None:
    assert (serial_ranges.name, leveldb_versions.name) == ("serial_ranges", "leveldb_versions")
