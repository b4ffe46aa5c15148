"""The policy of all work in Dagster: partitions, retries, pools, tags, and the sizes of pods.

Every module of this package may import this one, which imports none of them.
"""

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import dagster as dg

from pypi_assets.catalog.observed.projects import PROJECT_SHARDS, SHARDS_IN_A_PART, project_part_key
from pypi_assets.catalog.publications.dump_facts import MOST_SHARDS
from pypi_assets.dumps.dump_manifest import shard_key

RETRIES = dg.RetryPolicy(max_retries=2, delay=10, backoff=dg.Backoff.EXPONENTIAL)

INDEX_POOL = "index"
"""Of steps that talk to the index."""
DATABASE_POOL = "database"
"""Of steps that read much of the catalog."""

RANGES_IN_ONE_RUN = 20
"""Of serial ranges, in a backfill: a process is started for each run."""
PARTS_IN_ONE_RUN = 10
"""Of the 100 parts of a full crawl, if several machines share it."""

ONE_AT_A_TIME_TAG = "pypi-assets/one-at-a-time"
"""`dagster.yaml` limits the runs of equal value to one."""
ENDS_IN_TIME = {"dagster/max_runtime": str(12 * 3600)}  # after that, a run whose machine died counts as failed
FROM_SCRATCH_TAG = "pypi-assets/anew"
"""Of a run that must not join an older full dump. A job's config does not reach runs of all shards."""
REPORTED_TAG = "pypi-assets/told"
"""Of a failed run for which a notice was sent."""

NOTICE_OF = "pypi-assets/notice-of"
"""The metadata of a check whose failures can be about several things: of each other text, another notice is sent."""
ON_FAILURE = "pypi-assets/on-failure"
"""The metadata of a job whose failure needs a person: what to do."""


@contextmanager
def beta_parameters() -> Iterator[None]:
    """Allow parameters of Dagster that are in beta or preview within the block, for definitions made by a function.

    Dagster is pinned. Definitions at the top of a module need no block: the package ignores the warnings on import.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=dg.BetaWarning)
        warnings.simplefilter("ignore", category=dg.PreviewWarning)
        yield


def leveldb_asset(dataset: str) -> str:
    """Return the asset whose partitions are the versions of a dataset. It is the pool of its builds, too."""
    return f"{dataset}_leveldb"


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
    """Return the tags of a run of all partitions at once."""
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


_GIB = 1024**3
_CONFIG = "dagster-k8s/config"


def is_on_kubernetes(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process runs in a pod: Kubernetes sets this variable in each."""
    return "KUBERNETES_SERVICE_HOST" in environment


def _pod(cpus: int, memory: int, memory_limit: int, disk: int | None = None) -> dict[str, str]:
    """Return the tag of a pod: its processors, its reserved and its largest memory, and its disk, in bytes."""
    if not is_on_kubernetes():
        return {}
    disks = {} if disk is None else {"ephemeral-storage": str(disk)}
    resources = {
        "requests": {"cpu": str(cpus), "memory": str(memory), **disks},
        "limits": {"memory": str(memory_limit), **disks},
    }
    return {_CONFIG: json.dumps({"container_config": {"resources": resources}})}


LABEL = "pypi-assets/tag"
"""Of the pods of a scope with a tag, and of the nodes that take them alone."""


def with_tag(tag: str, *, is_match_only: bool) -> dict[str, str]:
    """Return the tag of the pod of a crawl with this label. `is_match_only`: only nodes with the same label run it."""
    if not CRAWLING:
        return {}
    config = json.loads(CRAWLING[_CONFIG])
    config["pod_template_spec_metadata"] = {"labels": {LABEL: tag}}
    if is_match_only:
        config["pod_spec_config"] = {"node_selector": {LABEL: tag}}
    return {_CONFIG: json.dumps(config)}


CRAWLING = _pod(1, 2 * _GIB, 4 * _GIB)  # a reader for each connection, of some 100 MB
DUMPING = _pod(2, _GIB // 2, _GIB)
BUILDING = _pod(2, 2 * _GIB, 3 * _GIB, 40 * _GIB)  # a version lies on disk twice while it is made of the one before
EXPORTING = _pod(1, _GIB // 2, _GIB)
