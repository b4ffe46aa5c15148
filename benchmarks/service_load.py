"""How many requests a second does the service answer, compared with the smallest route of Starlette, and how soon?

    python -m benchmarks.service_load [--rows 20000] [--seconds 10] [--repeats 3]

Server and load generator (wrk, 64 connections) have a core each, and the two servers are measured in turn, several
times. The bare route answers a body of the same size. `repeated` requests one module again and again, which the service
remembers; `different` requests other ones, or other counts of results, each time. At half of the load the answers' 99th
percentile is measured, at first undisturbed, then while versions are published: no request may fail.
"""

import argparse
import os
import sys
import tempfile
import threading
from pathlib import Path
from statistics import median

import requests

from benchmarks.service_home import Home, home_of, in_order, process, row_of, served, some_projects, wait_for, wrk

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
    options = parser.parse_args()
    rows = in_order([*some_projects(options.rows), row_of("measured")])
    modules = [str(name) for row in rows for name in (row["modules"] or ())[:1]]  # type: ignore[index]
    with home_of(rows) as home, served(home.folder, core=SERVER_CORE, service_refresh_s=1) as (url, _):
        size = len(requests.get(url + _PATH, timeout=10).content)
        bare, repeated = compare(url, size, options.seconds, options.repeats)
        different = different_modules(url, modules, options.seconds)
        print("| route | requests/s | of the bare route |\n|---|---|---|")
        for name, rate in (("bare", bare), ("repeated", repeated), ("different", different)):
            print(f"| {name} | {rate:,.0f} | {rate / bare:.2f} |")
        half = repeated / 2
        calm = wrk(url + _PATH, options.seconds, rate=half, core=CLIENT_CORE)
        print(f"\nhalf load: {calm['rps']:,.0f} requests/s, p99 {calm['p99_ms']:.1f} ms, {calm['failed']:.0f} failed")
        changing = while_versions_change(home, url, options.seconds, half)
        print(
            f"with {changing['versions']:.0f} new versions: {changing['rps']:,.0f} requests/s, p99"
            f" {changing['p99_ms']:.1f} ms, {changing['failed']:.0f} failed"
        )


def compare(url: str, size: int, seconds: int, repeats: int) -> tuple[float, float]:
    """The requests a second of the bare route and of ours, in the median of several turns."""
    rates: dict[str, list[float]] = {"bare": [], "ours": []}
    with process([sys.executable, "-c", _BARE, "8649", str(size)], {}, SERVER_CORE):
        bare_url = "http://127.0.0.1:8649/"
        wait_for(f"{bare_url}readyz")
        for _ in range(repeats):
            for name, one in (("bare", bare_url), ("ours", url)):
                rates[name].append(wrk(one + _PATH, seconds, core=CLIENT_CORE)["rps"])
    return median(rates["bare"]), median(rates["ours"])


def different_modules(url: str, modules: list[str], seconds: int) -> float:
    """The requests a second where each is of another module, and so none is remembered."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "different.lua"
        names = ", ".join(f'"{module}"' for module in dict.fromkeys(modules))
        script.write_text(
            f"local names, number = {{{names}}}, 0\n"
            "request = function()\n  number = number + 1\n  local limit = 1 + math.floor(number / #names)\n"
            '  return wrk.format("GET", "/v1/modules/" .. names[number % #names + 1] .. "?limit=" .. limit)\nend\n'
        )
        found = wrk(url, seconds, core=CLIENT_CORE, script=script)
    if found["failed"]:
        raise SystemExit(f"{found['failed']:.0f} requests failed")
    return found["rps"]


def while_versions_change(home: Home, url: str, seconds: int, rate: float) -> dict[str, float]:
    """The same as undisturbed, while versions are published one after the other."""
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
