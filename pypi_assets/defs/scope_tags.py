"""The tags that route the runs of a scope: its turn in Dagster's queue, the queue of Celery, the label of its pod.

The sensor gives them to the runs that it requests, and the job to the runs of its backfills.
"""

from contextlib import closing
from dataclasses import dataclass

import dagster as dg

from pypi_assets.assembly import existing_catalog_from
from pypi_assets.catalog.database import NoCatalogError
from pypi_assets.catalog.work.scopes import Scope, find_scope
from pypi_assets.defs.naming import Naming
from pypi_assets.defs.partitions import scope_names
from pypi_assets.defs.pods import with_tag
from pypi_assets.setting_variables import read_all_indexes, selected_index
from pypi_assets.settings import load_settings
from pypi_assets.workspace import name_in_dagster

CELERY_QUEUE_TAG = "dagster-celery/queue"
PRIORITY_TAG = "dagster/priority"


def tags_of(scope: Scope) -> dict[str, str]:
    """The tags of a scope's runs."""
    tags = {PRIORITY_TAG: str(-scope.nice)} if scope.nice else {}
    if scope.tag is None:
        return tags
    return tags | {CELERY_QUEUE_TAG: scope.tag} | with_tag(scope.tag, is_match_only=scope.match_only)


@dataclass(frozen=True)
class TagsOfPartition:
    """Gives the tags of a run of a scope, by its name, as they are when the run is requested.

    `index` is the name of the scope's index in Dagster; empty for the default index.
    """

    index: str = ""

    def __call__(self, name: str) -> dict[str, str]:
        indexes = read_all_indexes() if self.index else None
        names = indexes.names if indexes else []
        with selected_index(next((one for one in names if name_in_dagster(one) == self.index), None)):
            settings = load_settings()
        try:
            with closing(existing_catalog_from(settings)) as catalog, catalog.read() as connection:
                scope = find_scope(connection, name)
        except NoCatalogError:
            return {}
        return {} if scope is None else tags_of(scope)


def partitioned_by_scope(naming: Naming) -> dg.PartitionedConfig:
    """Return the configuration of a job whose partitions are scopes: each run has the tags of its scope."""
    return dg.PartitionedConfig(
        partitions_def=naming.partitions(scope_names),
        run_config_for_partition_key_fn=lambda _: {},
        tags_for_partition_key_fn=TagsOfPartition(naming.index),
    )
