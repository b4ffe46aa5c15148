"""The commands `follow` and `serve`: requirements, output, and their end on signals."""

import json
import os
import signal
import socket
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pypi_assets.cli.follow import stop_by_signals
from pypi_assets_tests.cli.commands import PROCESS, Commands, commands_in
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex
from pypi_assets_tests.served_pages import served_pages


def test_follow_requires_a_catalog(commands: Commands):
    commands.refused("follow")


@pytest.mark.parametrize("value", ["0.1", "4000", "soon"])
def test_invalid_interval_is_a_usage_error(commands: Commands, monkeypatch: pytest.MonkeyPatch, value: str):
    monkeypatch.setenv("PYPI_ASSETS_FOLLOW_INTERVAL_S", value)
    assert "PYPI_ASSETS_FOLLOW_INTERVAL_S" in commands.refused("follow", exit_code=2)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_first_signal_requests_a_stop_and_handlers_are_restored(number: signal.Signals):
    before = signal.getsignal(number)
    with stop_by_signals() as stopping:
        assert not stopping.is_set()
        os.kill(os.getpid(), number)
        assert stopping.wait(60)
    assert signal.getsignal(number) is before


def test_second_signal_ends_the_process_immediately():
    program = (
        "import os, signal\n"
        "from pypi_assets.cli.follow import stop_by_signals\n"
        "with stop_by_signals():\n"
        "    [os.kill(os.getpid(), signal.SIGTERM) for _ in range(2)]\n"
        "    signal.pause()\n"
    )
    done = subprocess.run([PROCESS[0], "-c", program], timeout=60, check=False)
    assert done.returncode == 128 + signal.SIGTERM


def test_follow_starts_from_an_empty_home_and_continues(commands: Commands, index: ServedIndex):
    index.wheel("demo", "1.0")
    with subprocess.Popen([*PROCESS, "follow", "--begin"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        steps = (json.loads(line) for line in process.stdout)
        try:
            assert next(steps)["step"] == "full crawl"
            for version in ("2.0", "3.0"):  # the second poll is the follower's
                index.wheel("demo", version)
                assert next(one for one in steps if one["step"] == "crawl")["projects"] == 1
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()
    commands.refused("follow", "--begin", "--once", exit_code=2)


def test_port_in_use_is_named(commands: Commands):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = commands.refused("serve", "--port", port)
    assert unnamed(message, f"127.0.0.1:{port}") == []


def test_serve_accepts_port_and_workers(commands: Commands):
    assert "--port" in commands.refused("serve", "--port", "70000", exit_code=2)
    assert "--workers" in commands.refused("serve", "--workers", "0", exit_code=2)


def test_selected_project_without_a_page_is_named(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYPI_ASSETS_PROJECTS", "demo dmeo")
    index.wheel("demo", "1.0")
    first, *_ = map(json.loads, commands.done("follow", "--once").stdout.splitlines())
    assert (first["step"], first["missing_projects"]) == ("full crawl", ["dmeo"])


def test_follow_once_prints_polls_of_an_index_without_serials(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def last_step(*options: str) -> dict[str, object]:
        step: dict[str, object] = json.loads(commands.done("follow", "--once", *options).stdout.splitlines()[-1])
        return step

    with served_pages(tmp_path / "pages") as pages:
        for project in ("alpha", "beta"):
            pages.wheel(project, "1.0")
        monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", pages.url)
        first, again = last_step(), last_step()
        assert (first["step"], again["step"]) == ("poll", "poll")
        assert (again["polled"], again["projects"], again["unconfirmed"]) == (0, 2, 0)
        assert datetime.fromisoformat(str(again["next_due_at"])) > datetime.now(UTC)
        assert "follow --once --now" in commands_in(commands.done("status").stdout)
        pages.wheel("beta", "2.0")
        assert last_step("--now")["polled"] == 2
    assert {row["version"] for row in commands.json("lookup", "project", "beta")} == {"2.0", "1.0"}
