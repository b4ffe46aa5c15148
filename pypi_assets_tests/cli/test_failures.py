"""`pypi-assets failures`: list failures by kind, and retry them."""

import os
import signal
import subprocess

import pytest
from starlette.requests import Request
from starlette.responses import Response

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.forked import COMMAND_LINE, ForkedProgram
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_failures_are_listed_and_retried(commands: Commands, index: ServedIndex) -> None:
    commands.done("admin", "migrate")
    assert commands.done("failures", "list").stderr
    index.wheel("demo", "1.0")
    index.wheel("hidden", "1.0")
    index.raw("broken-1.0-py3-none-any.whl", b"no zip")

    def faults(request: Request) -> Response | None:
        return Response(status_code=503) if "demo-1.0" in request.url.path or "/hidden/" in request.url.path else None

    index.faults = faults
    crawled = commands.done("crawl", "full")
    assert unnamed(crawled.stderr, "2") == []
    assert unnamed(crawled.stderr, "1") == []
    status = commands.json("status")
    assert (status["failed"], status["gave_up"], status["failed_visits"]) == (2, 1, 1)
    assert status["to_do"][0] == "2 reads and visits are exhausted: see `pypi-assets failures list`"
    assert unnamed(commands.done("status").stdout, "1") == []
    assert unnamed(commands.done("status").stdout, "1") == []
    listed = commands.json("failures", "list")
    assert listed["failures"] is None
    assert [(group["kind"], group["count"], group["outcomes"]) for group in listed["groups"]] == [
        ("corrupt archive", 1, {"error": 1}),
        ("transient", 1, {"gave up": 1}),
        ("visit", 1, {"gave up": 1}),
    ]
    assert [group["examples"][0]["project"] for group in listed["groups"]] == ["broken", "demo", "hidden"]
    assert commands.done("failures", "list").stdout.startswith(
        "corrupt archive\t1\t1\t0\t0\tbroken-1.0-py3-none-any.whl"
    )
    [demo] = commands.json("failures", "list", "--kind", "transient")["failures"]
    assert (demo["filename"], demo["attempts_remaining"], demo["next_due"]) == ("demo-1.0-py3-none-any.whl", 0, None)
    assert demo["attempts"] >= 1
    assert "503" in demo["text"]
    [hidden] = commands.json("failures", "list", "--project", "Hidden", "--kind", "visit")["failures"]
    assert (hidden["project"], hidden["filename"]) == ("hidden", "")
    assert "hidden\t" in commands.done("failures", "list", "--project", "hidden").stdout
    assert commands.done("failures", "list", "--kind", "gone").stderr
    nothing = commands.done("failures", "retry", "--kind", "gone")
    assert unnamed(nothing.stderr, "failures list") == []
    assert commands.json("failures", "retry", "--project", "Broken")["reads"]["errors"] == 1
    index.faults = None
    again = commands.json("failures", "retry")
    assert (again["retried_reads"], again["retried_visits"], again["visits_given_up"]) == (2, 1, 0)
    assert (again["reads"]["data"], again["reads"]["errors"]) == (2, 1)
    assert [group["kind"] for group in commands.json("failures", "list")["groups"]] == ["corrupt archive"]
    assert len(commands.json("lookup", "files", "hidden")) == 1


def test_all_attempts_of_a_file_and_a_page_are_shown(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel, broken = index.wheel("demo", "1.0"), index.raw("demo-2.0-py3-none-any.whl", b"no zip")
    index.faults = lambda request: Response(status_code=503) if "demo-1.0" in request.url.path else None
    commands.done("crawl", "full")
    index.faults = None
    commands.done("failures", "retry", "--kind", "transient")
    index.faults = lambda request: Response(status_code=503) if request.url.path.endswith("/demo/") else None
    index.wheel("demo", "3.0")
    commands.done("crawl", "incremental")
    index.faults = None
    commands.done("failures", "retry")

    [item] = commands.json("failures", "show", wheel)
    assert (item["kind"], item["project"], item["filename"], item["outcome"]) == ("read", "demo", wheel, "data")
    assert [one["outcome"] for one in item["attempts"]] == ["gave up", "data"]
    failed, succeeded = item["attempts"]
    assert (failed["kind"], "503" in failed["text"], succeeded["kind"]) == ("transient", True, None)
    assert failed["worker"] != succeeded["worker"]
    assert (succeeded["bytes_fetched"] > 0, succeeded["seconds"] > 0) == (True, True)
    assert failed["started_at"] <= succeeded["started_at"] <= item["succeeded_at"]
    [same] = commands.json("failures", "show", item["sha256"])
    assert same == item
    released = commands.json("failures", "show", "demo==2.0")
    assert [(one["filename"], one["outcome"], one["succeeded_at"]) for one in released] == [(broken, "error", None)]
    assert released[0]["attempts"][0]["kind"] == "corrupt archive"

    [page] = commands.json("failures", "show", "Demo")
    outcomes = [one["outcome"] for one in page["attempts"]]
    assert (page["kind"], outcomes[0], outcomes[-1], page["outcome"]) == ("visit", "full", "full", "full")
    assert "failed" in outcomes
    workers = [one["worker"] is not None for one in page["attempts"]]
    assert workers == [False, *[True] * (len(outcomes) - 1)]

    shown = commands.done("failures", "show", wheel)
    rows = [line.split("\t") for line in shown.stdout.splitlines()]
    assert [(row[1], row[2], row[5]) for row in rows] == [(wheel, "1", "gave up"), (wheel, "1", "data")]
    assert unnamed(shown.stderr, wheel, "1") == []
    unknown = commands.done("failures", "show", "unknown-1.0.tar.gz")
    assert (unknown.stdout, unnamed(unknown.stderr, "unknown-1.0.tar.gz")) == ("", [])
    assert commands.json("failures", "show", "unknown") == []


@pytest.mark.nightly
def test_visit_of_killed_retry_is_done_by_the_next_retry(commands: Commands, index: ServedIndex) -> None:
    index.wheel("hidden", "1.0")
    index.faults = lambda request: Response(status_code=503) if "/hidden/" in request.url.path else None
    commands.done("crawl", "full")

    def kill(request: Request) -> Response | None:
        if "/hidden/" in request.url.path:
            os.kill(process.pid, signal.SIGKILL)
        return None

    index.faults = kill
    process = ForkedProgram(
        COMMAND_LINE, "failures", "retry", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, strict=True
    )
    assert process.wait(timeout=120) == -signal.SIGKILL
    index.faults = None
    assert commands.json("failures", "retry")["retried_visits"] == 1
    assert commands.json("status")["read"] == 1
