"""What a partition of each asset is, and how its key is written."""

from collections.abc import Iterable

import dagster as dg

from pypi_assets.catalog.observed.projects import PROJECT_SHARDS, SHARDS_IN_A_PART, project_part_key
from pypi_assets.catalog.publications.dump_facts import MOST_SHARDS
from pypi_assets.dumps.dump_paths import shard_key

DUMP_SHARDS = MOST_SHARDS
RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"
PARTITION_TAG = "dagster/partition"

project_parts = dg.StaticPartitionsDefinition(
    [project_part_key(shard) for shard in range(0, PROJECT_SHARDS, SHARDS_IN_A_PART)]
)
dump_shards = dg.StaticPartitionsDefinition([shard_key(shard) for shard in range(DUMP_SHARDS)])
serial_ranges = dg.DynamicPartitionsDefinition(name="serial_ranges")
leveldb_versions = dg.DynamicPartitionsDefinition(name="leveldb_versions")
scope_names = dg.DynamicPartitionsDefinition(name="scopes")


def all_of(partitions: dg.StaticPartitionsDefinition) -> dict[str, str]:
    """The tags of a run of all partitions at once."""
    keys = partitions.get_partition_keys()
    return {RANGE_START_TAG: keys[0], RANGE_END_TAG: keys[-1]}


def shards_of_parts(keys: Iterable[str]) -> list[int]:
    """Return the shards of these parts of the projects, in order, ten of each. Raises KeyError."""
    firsts = [part * SHARDS_IN_A_PART for part in parse_shards(project_parts, keys)]
    return [shard for first in firsts for shard in range(first, first + SHARDS_IN_A_PART)]


def parse_shards(partitions: dg.StaticPartitionsDefinition, keys: Iterable[str]) -> dict[int, str]:
    """Return the shards that these partition keys name, each with its key, in order. Raises KeyError."""
    shards = {key: shard for shard, key in enumerate(partitions.get_partition_keys())}
    return {shards[key]: key for key in sorted(keys)}
