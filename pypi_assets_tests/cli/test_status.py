"""The command shows how far each stage lags, and whether all is well."""

import subprocess
import threading
from platform import node

from starlette.requests import Request
from starlette.responses import Response

from pypi_assets_tests.cli.commands import PROCESS, Commands
from pypi_assets_tests.served_index import ServedIndex


def test_a_young_lag_is_shown_all_the_same(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    assert "lags the index by 0 serials" in commands.done("status").stdout
    assert "every project was visited; the oldest visit was at " in commands.done("status").stdout
    assert "state           all is well\n" in commands.done("status").stdout
    index.wheel("demo", "2.0")
    shown = commands.done("status").stdout
    assert "lags the index by 2 serials" in shown
    assert "state           nothing to do yet (the lag is young)\n" in shown
    assert "all is well" not in shown
    assert ", lag the index by 2 serials" in shown


def test_a_running_crawl_is_shown_with_how_far_it_is(commands: Commands, index: ServedIndex) -> None:
    for number in range(3):
        index.wheel(f"demo{number}", "1.0")
    reached, released = threading.Event(), threading.Event()

    def hold(request: Request) -> Response | None:
        if request.url.path.endswith("/demo1/"):
            reached.set()
            released.wait(timeout=120)
        return None

    index.faults = hold
    with subprocess.Popen([*PROCESS, "crawl", "full"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert reached.wait(timeout=120)
            shown = commands.done("status").stdout
            [running] = commands.json("status")["running"]
        finally:
            released.set()
            process.communicate(timeout=120)
    assert (running["name"], running["processes"], running["projects"]) == (
        f"full crawl at serial {index.serial}",
        1,
        3,
    )
    assert running["since"] is not None
    assert running["hosts"] == [node()]
    assert (
        f"running         full crawl at serial {index.serial} since {running['since']} by 1 process on {node()}: "
        in shown
    )
    assert "of 3 projects visited" in shown
    assert "to do" not in shown
    assert "working on it" in shown
    assert commands.json("status")["running"] == []
    assert "all is well" not in commands.done("status").stdout  # nothing is dumped yet


def test_a_stopped_crawl_is_not_running(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    index.faults = lambda request: Response(status_code=503) if request.url.path.endswith("/simple/") else None
    commands.refused("crawl", "full")
    status = commands.json("status")
    assert (status["running"], status["open_crawl"]) == ([], None)


def test_an_empty_home_is_described_in_plain_words(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.done("migrate")
    shown = commands.done("status").stdout
    assert f"index           {index.url}, last serial {index.serial}\n" in shown
    assert "catalog         no full crawl is complete yet, so there are no answers yet\n" in shown
    assert "dumps           none yet\n" in shown
    assert "modules         no version yet\n" in shown
    assert shown.endswith("to do           nothing has been crawled: run `pypi-assets crawl full`\n")
    assert "visits" not in shown
