"""The jobs that define the size of their pods, and where they do."""

import json
import os
import subprocess
import sys

import pytest

from pypi_assets.defs.pods import is_on_kubernetes

_SIZED = """
import json
from pypi_assets.definitions import defs
print(json.dumps(sorted(job.name for job in defs.jobs or [] if "dagster-k8s/config" in (job.tags or {}))))
"""
LARGE = {
    *("full_crawl", "incremental_crawl", "follow_scopes", "retry_failures", "audit"),
    *("full_dump", "redump", "update_leveldbs", "export_parquet", "verify_leveldbs", "reprocess_distributions"),
    "solve_days",
}


@pytest.mark.nightly
@pytest.mark.parametrize(("variables", "sized"), [({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, LARGE), ({}, set())])
def test_large_jobs_define_the_size_of_their_pods_on_kubernetes_alone(
    variables: dict[str, str], sized: set[str]
) -> None:
    elsewhere = {name: value for name, value in os.environ.items() if not name.startswith("KUBERNETES_")}
    command = [sys.executable, "-c", _SIZED]
    found = subprocess.run(
        command,
        env=elsewhere | variables | {"PYPI_ASSETS_SOLVABILITY_SINCE": "2026-03-01"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(json.loads(found.stdout)) == sized


def test_a_pod_is_known_by_the_variable_that_kubernetes_sets() -> None:
    assert is_on_kubernetes({"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    assert not is_on_kubernetes({})
