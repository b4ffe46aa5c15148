"""The policy of all work in Dagster: partitions, retries, pools, tags, and the sizes of pods.

Every module of this package may import this module, which imports none of them.
"""

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import dagster as dg

from pypi_assets.catalog.observed.projects import PROJECT_SHARDS, SHARDS_IN_A_PART, project_part_key
from pypi_assets.catalog.publications.dump_columns import DEFAULT_SHARDS
from pypi_assets.dumps.dump_manifest import shard_key

RETRIES = dg.RetryPolicy(max_retries=2, delay=10, backoff=dg.Backoff.EXPONENTIAL)

INDEX_POOL = "index"
"""The pool of steps that send requests to the index."""
DATABASE_POOL = "database"
"""The pool of steps that read much of the catalog."""

RANGES_IN_ONE_RUN = 20
"""The most serial ranges in a run of a backfill. Each run starts a process."""
PARTS_IN_ONE_RUN = 10
"""The most of the 100 parts of a full crawl in a run of a backfill, if several machines share the crawl."""

ONE_AT_A_TIME_TAG = "pypi-assets/one-at-a-time"
"""A tag of runs. `dagster.yaml` limits the runs with an equal value to one."""
ENDS_IN_TIME = {"dagster/max_runtime": str(12 * 3600)}  # after that, a run counts as failed if its machine died
FROM_SCRATCH_TAG = "pypi-assets/anew"
"""The tag of a run that must not continue an older full dump. A job's config does not reach runs of all shards."""
REPORTED_TAG = "pypi-assets/told"
"""The tag of a failed run for which a notice was sent."""

NOTICE_OF = "pypi-assets/notice-of"
"""The metadata of a check that may fail for several things. A new notice is sent whenever this text changes."""
ON_FAILURE = "pypi-assets/on-failure"
"""The metadata of a job whose failure needs a person: what to do."""


@contextmanager
def beta_parameters() -> Iterator[None]:
    """Allow beta and preview parameters of Dagster within the block, for definitions that a function makes.

    Dagster is pinned. Definitions at the top of a module need no block, since the package ignores these warnings on
    import.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=dg.BetaWarning)
        warnings.simplefilter("ignore", category=dg.PreviewWarning)
        yield


def leveldb_asset(dataset: str) -> str:
    """Return the name of the asset whose partitions are the versions of a dataset, and of the pool of its builds."""
    return f"{dataset}_leveldb"


DUMP_PARTITIONS = DEFAULT_SHARDS
RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"
PARTITION_TAG = "dagster/partition"

project_parts = dg.StaticPartitionsDefinition(
    [project_part_key(shard) for shard in range(0, PROJECT_SHARDS, SHARDS_IN_A_PART)]
)
dump_shards = dg.StaticPartitionsDefinition([shard_key(shard) for shard in range(DUMP_PARTITIONS)])
serial_ranges = dg.DynamicPartitionsDefinition(name="serial_ranges")
leveldb_versions = dg.DynamicPartitionsDefinition(name="leveldb_versions")
scope_names = dg.DynamicPartitionsDefinition(name="scopes")


def all_of(partitions: dg.StaticPartitionsDefinition) -> dict[str, str]:
    """Return the tags of a run of all partitions at once."""
    keys = partitions.get_partition_keys()
    return {RANGE_START_TAG: keys[0], RANGE_END_TAG: keys[-1]}


def shards_of_parts(keys: Iterable[str]) -> list[int]:
    """Return the shards of these parts of the projects in order, ten per part. Raises KeyError for an unknown key."""
    firsts = [part * SHARDS_IN_A_PART for part in parse_shards(project_parts, keys)]
    return [shard for first in firsts for shard in range(first, first + SHARDS_IN_A_PART)]


def parse_shards(partitions: dg.StaticPartitionsDefinition, keys: Iterable[str]) -> dict[int, str]:
    """Return the shards of these partition keys in order, each with its key. Raises KeyError for an unknown key."""
    shards = {key: shard for shard, key in enumerate(partitions.get_partition_keys())}
    return {shards[key]: key for key in sorted(keys)}


_GIB = 1024**3
_CONFIG = "dagster-k8s/config"


def is_on_kubernetes(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process runs in a pod, where Kubernetes sets this variable."""
    return "KUBERNETES_SERVICE_HOST" in environment


def _pod(cpus: int, memory: int, memory_limit: int, disk: int | None = None) -> dict[str, str]:
    """Return the tag of a pod: its number of processors, its requested and maximum memory, and its disk, in bytes."""
    if not is_on_kubernetes():
        return {}
    disks = {} if disk is None else {"ephemeral-storage": str(disk)}
    resources = {
        "requests": {"cpu": str(cpus), "memory": str(memory), **disks},
        "limits": {"memory": str(memory_limit), **disks},
    }
    return {_CONFIG: json.dumps({"container_config": {"resources": resources}})}


LABEL = "pypi-assets/tag"
"""The label of pods of a scope with a tag, and of nodes reserved for them."""


def with_tag(tag: str, *, is_match_only: bool) -> dict[str, str]:
    """Return the tag of a crawl's pod with this label. With `is_match_only`, only nodes with the same label run it."""
    if not CRAWLING:
        return {}
    config = json.loads(CRAWLING[_CONFIG])
    config["pod_template_spec_metadata"] = {"labels": {LABEL: tag}}
    if is_match_only:
        config["pod_spec_config"] = {"node_selector": {LABEL: tag}}
    return {_CONFIG: json.dumps(config)}


CRAWLING = _pod(1, 2 * _GIB, 4 * _GIB)  # one reader per connection, of about 100 MB each
DUMPING = _pod(2, _GIB // 2, _GIB)
BUILDING = _pod(2, 2 * _GIB, 3 * _GIB, 40 * _GIB)  # a new version needs disk space for itself and its base version
EXPORTING = _pod(1, _GIB // 2, _GIB)
EXPORTING_TABLES = _pod(2, _GIB, 2 * _GIB)  # a process for each core, of about 320 MB each
