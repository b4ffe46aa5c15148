"""`status` shows how far each stage lags, and whether all is well."""

import json
import re
import subprocess
from platform import node

import pytest
from starlette.responses import Response

from pypi_assets_tests.cli.commands import PROCESS, Commands, commands_in
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_recent_lag_is_shown(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    well = commands.done("status").stdout
    assert (commands.json("status")["lag"], commands.json("status")["to_do"]) == (0, [])
    index.wheel("demo", "2.0")
    shown = commands.done("status").stdout
    assert (commands.json("status")["lag"], commands.json("status")["to_do"]) == (2, [])
    commands.done("crawl", "incremental")
    assert (commands.json("status")["lag"], commands.json("status")["to_do"]) == (0, [])
    crawled = commands.done("status").stdout
    states = [line for text in (well, shown, crawled) for line in text.splitlines() if line.startswith("state ")]
    assert [commands_in(state) for state in states] == [[], ["follow --once"], ["follow --once"]]
    commands.done("follow", "--once")
    assert states[0] in commands.done("status").stdout.splitlines()
    assert re.findall(r"\b2\b", shown)


@pytest.mark.nightly
def test_running_crawl_is_shown_with_its_progress(commands: Commands, index: ServedIndex) -> None:
    for number in range(3):
        index.wheel(f"demo{number}", "1.0")
    with (
        index.holding("/demo1/") as held,
        subprocess.Popen([*PROCESS, "crawl", "full"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
    ):
        try:
            held.wait()
            shown = commands.done("status").stdout
            [running] = commands.json("status")["running"]
        finally:
            held.release()
            process.communicate(timeout=120)
    assert (running["name"], running["processes"], running["projects"]) == (
        f"full crawl at serial {index.serial}",
        1,
        3,
    )
    assert running["since"] is not None
    assert running["hosts"] == [node()]
    assert unnamed(shown, index.serial, running["since"], "1", node()) == []
    assert unnamed(shown, "3") == []
    assert commands.json("status")["running"] == []
    assert commands.json("status")["to_do"] != []  # nothing is dumped yet


def test_stopped_crawl_is_not_running(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    index.faults = lambda request: Response(status_code=503) if request.url.path.endswith("/simple/") else None
    commands.refused("crawl", "full")
    status = commands.json("status")
    assert (status["running"], status["open_crawl"]) == ([], None)


def test_empty_home_is_described(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.done("admin", "migrate")
    shown = commands.done("status").stdout
    assert unnamed(shown, index.url, index.serial) == []
    assert unnamed(shown, "modules", "crawl full") == []
    assert "visits" not in shown


def test_script_can_wait_until_nothing_is_to_do(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    result = commands.run("status", "--check", "--json")
    assert (result.exit_code, json.loads(result.stdout)["to_do"] != []) == (1, True)
    commands.build_versions()
    assert commands.json("status", "--check")["to_do"] == []
