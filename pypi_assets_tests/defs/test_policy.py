"""What needs the index or much of the database is in the pool that the policy names."""

from pypi_assets.definitions import defs
from pypi_assets.leveldbs.datasets.registry import DATASETS


def test_what_queries_the_index_or_reads_much_of_the_catalog_is_in_a_pool() -> None:
    nodes = [node for job in defs.get_repository_def().get_all_jobs() for node in job.nodes]
    pools = {pool for node in nodes for pool in node.definition.pools}
    crawled = {"project_listing", "crawled_projects", "crawled_distribution_data", "retry_given_up", "audit_catalog"}
    changed = {"changelog", "changed_distributions", "changed_distribution_data"}
    of_scopes = {"scope_projects", "scope_distribution_data"}
    assert {pool: {node.name for node in nodes if pool in node.definition.pools} for pool in pools} == {
        "index": crawled | changed | of_scopes,
        "database": {"write_full_dump", "incremental_dump", "late_dump", "change_journal"},
        **{f"{dataset}_leveldb": {f"{dataset}_leveldb"} for dataset in DATASETS},
    }
