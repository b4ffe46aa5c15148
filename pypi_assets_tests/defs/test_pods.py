"""The jobs that define the size of their pods."""

from pypi_assets.definitions import build_defs
from pypi_assets.settings import load_settings


def test_large_jobs_define_the_size_of_their_pods():
    defs = build_defs(load_settings())
    sized = {job.name for job in defs.jobs or [] if "dagster-k8s/config" in (job.tags or {})}
    assert sized == {
        *("full_crawl", "incremental_crawl", "retry_failures", "audit"),
        *("full_dump", "redump", "update_leveldbs", "export_parquet", "verify_leveldbs", "reprocess_distributions"),
    }
