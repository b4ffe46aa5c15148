"""Measure the requests a second of the service, compared with the smallest route of Starlette, and the response times.

    python -m benchmarks.service_load [--rows 20000] [--seconds 10] [--repeats 3] [--workers 1]

Server and load generator (wrk, 64 connections) have a core each, and the two servers are measured alternately, several
times. Several workers share all cores with the load generator. The bare route answers with a body of the same size.
`repeated` requests one module repeatedly, which the service caches; `different` requests another module each time.
Processor time depends less on other work on the machine than requests a second do. The 99th percentile of the response
times is measured at half of the load, first undisturbed, then while versions are published: no request may fail.
"""

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import requests

from benchmarks.service_home import (
    Home,
    children,
    home_of,
    in_order,
    process,
    processor_s,
    row_of,
    served,
    some_projects,
    wait_for,
    wrk,
)

_BARE = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
body = b"x" * int(sys.argv[2])
async def answer(request): return Response(body, media_type="application/json")
app = Starlette(routes=[Route("/readyz", answer), Route("/v1/modules/{module}", answer)])
uvicorn.run(app, port=int(sys.argv[1]), access_log=False, log_level="warning")
"""
_PATH = "v1/modules/measured"
SERVER_CORE, CLIENT_CORE = (0, 1) if (os.cpu_count() or 1) > 1 else (None, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    core = SERVER_CORE if options.workers == 1 else None
    rows = in_order([*some_projects(options.rows), row_of("measured")])
    modules = list(dict.fromkeys(str(name) for row in rows for name in _modules_of(row)))
    workers = "--workers", str(options.workers)
    with home_of(rows) as home, served(home.folder, *workers, core=core, service_refresh_s=1) as (url, server):
        size = len(requests.get(url + _PATH, timeout=10).content)
        found = compare(url, server, size, modules, options.seconds, options.repeats)
        print("| route | requests/s | of the bare route | processor µs a request | of the bare route |")
        print("|---|---|---|---|---|")
        bare_rate, bare_cost = found["bare"]
        for name, (rate, cost) in found.items():
            print(f"| {name} | {rate:,.0f} | {rate / bare_rate:.2f} | {cost:.0f} | {bare_cost / cost:.2f} |")
        repeated = found["repeated"][0]
        half = repeated / 2
        calm = wrk(url + _PATH, options.seconds, rate=half, core=CLIENT_CORE)
        print(f"\nhalf load: {calm['rps']:,.0f} requests/s, p99 {calm['p99_ms']:.1f} ms, {calm['failed']:.0f} failed")
        changing = while_versions_change(home, url, options.seconds, half)
        print(
            f"with {changing['versions']:.0f} new versions: {changing['rps']:,.0f} requests/s, p99"
            f" {changing['p99_ms']:.1f} ms, {changing['failed']:.0f} failed"
        )


def _modules_of(row: Mapping[str, object]) -> list[object]:
    modules = row["modules"]
    return list(modules) if isinstance(modules, list | tuple) else []


def compare(
    url: str, server: int, size: int, modules: list[str], seconds: int, repeats: int
) -> dict[str, tuple[float, float]]:
    """Return the requests a second of the bare route and of ours, and the processor's microseconds of each request.

    These are medians of several turns. `server` is the process id of our server.
    """
    with (
        process([sys.executable, "-c", _BARE, "8649", str(size)], {}, SERVER_CORE) as bare,
        tempfile.NamedTemporaryFile("w", suffix=".lua") as script,
    ):
        wait_for("http://127.0.0.1:8649/readyz")
        loads: dict[str, tuple[str, int, Path | None]] = {
            "bare": ("http://127.0.0.1:8649/" + _PATH, bare.pid, None),
            "repeated": (url + _PATH, server, None),
            "different": (url, server, Path(script.name)),
        }
        measured: dict[str, list[tuple[float, float]]] = {name: [] for name in loads}
        for turn in range(repeats):
            script.seek(0)
            script.truncate()
            first = turn * len(modules) // repeats  # so that no response is cached from the previous turn
            script.write(_requests_of(modules[first:] + modules[:first]))
            script.flush()
            for name, (address, pid, one) in loads.items():
                before = _all_processor_s(pid)
                found = wrk(address, seconds, core=CLIENT_CORE, script=one)
                if found["failed"]:
                    raise SystemExit(f"{found['failed']:.0f} requests failed")
                measured[name].append((found["rps"], 1e6 * (_all_processor_s(pid) - before) / found["requests"]))
    return {
        name: (median(rate for rate, _ in turns), median(cost for _, cost in turns)) for name, turns in measured.items()
    }


def _all_processor_s(pid: int) -> float:
    """Return the processor time of a server with its workers, in seconds."""
    return sum(map(processor_s, (pid, *children(pid))))


def _requests_of(modules: list[str]) -> str:
    """Return a script for wrk that requests one module after the other."""
    names = ", ".join(f'"{module}"' for module in modules)
    return (
        f"local names, number = {{{names}}}, 0\n"
        "request = function()\n  number = number + 1\n"
        '  return wrk.format("GET", "/v1/modules/" .. names[number % #names + 1])\nend\n'
    )


def while_versions_change(home: Home, url: str, seconds: int, rate: float) -> dict[str, float]:
    """Measure as in the undisturbed case, while versions are published one after the other."""
    found: dict[str, float] = {}
    load = threading.Thread(target=lambda: found.update(wrk(url + _PATH, seconds, rate=rate, core=CLIENT_CORE)))
    load.start()
    versions = 0
    while load.is_alive():
        home.publish([row_of(f"new-{home.serial}", home.serial + 1)])
        versions += 1
        load.join(1)
    return found | {"versions": versions}


if __name__ == "__main__":
    main()
