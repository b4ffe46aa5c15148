"""Logs of our own processes are text or lines of JSON with fields, whichever library logs."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pypi_assets.logs import JsonLines
from pypi_assets_tests.cli.commands import PROCESS
from pypi_assets_tests.hostile_index import HOSTILE, live_in_line
from pypi_assets_tests.served_index import ServedIndex, followed_index

CODE = """
import logging, sys, threading, warnings
from pypi_assets.logs import set_up_logs
dagster = logging.getLogger("dagster")
if {is_guest}:
    dagster.addHandler(logging.StreamHandler(sys.stdout))
    dagster.setLevel("INFO")
set_up_logs(is_guest={is_guest})
set_up_logs(is_guest={is_guest})
text = sys.stdin.read()
own, library = logging.getLogger("pypi_assets.somewhere"), logging.getLogger("library")
own.debug("own debug")
own.info("own info %s", text, extra={{"serial": 7, "project": text}})
library.info("library info")
library.warning("library warning %s", text)
try:
    raise ValueError(text)
except ValueError:
    own.exception("failed")
dagster.info("of dagster")
warnings.warn(text)
print("printed", text, file=sys.stderr)
sys.stderr.write("Error: one\\nof two lines\\n")
sys.stderr.write("2026-11-27 10:00:00 +0000 - dagster - ERROR - full_dump - STEP_FAILURE - {{}}\\nand why\\n")
threads = [threading.Thread(target=lambda: 1 / 0)]
threads[0].start()
threads[0].join()
raise KeyError(text)
"""
OF_ALL = {"time", "level", "logger", "message"}


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ServedIndex]:
    with followed_index(tmp_path, monkeypatch) as served:
        yield served


def run(log_format: str, level: str = "", *, is_guest: bool = False) -> "subprocess.CompletedProcess[str]":
    variables = {"PYPI_ASSETS_LOG_FORMAT": log_format, "PYPI_ASSETS_LOG_LEVEL": level}
    return subprocess.run(
        [sys.executable, "-X", "utf8", "-c", CODE.format(is_guest=is_guest)],
        input=HOSTILE,
        env=os.environ | variables,
        encoding="utf-8",
        capture_output=True,
        check=False,
    )


def lines(text: str) -> list[dict[str, Any]]:
    """Return the lines of a log. Check that each is JSON, and without characters that a terminal would interpret."""
    assert text.isascii()
    found = [json.loads(line) for line in text.splitlines()]
    for line in found:
        assert line.keys() >= OF_ALL
        assert datetime.fromisoformat(line["time"]).utcoffset() == timedelta()
    return found


def test_json_lines_have_the_fields_of_all_writers():
    done = run("json", "debug")
    assert (done.returncode, done.stdout) == (1, "")
    assert live_in_line(done.stderr) == []
    found = lines(done.stderr)
    by_logger = {
        name: [line for line in found if line["logger"] == name] for name in (line["logger"] for line in found)
    }
    own = by_logger["pypi_assets.somewhere"]
    assert [line["level"] for line in own] == ["DEBUG", "INFO", "ERROR"]
    assert (own[1]["serial"], own[1]["project"]) == (7, HOSTILE)
    assert own[1].keys() == OF_ALL | {"serial", "project"}
    assert "ValueError" in own[2]["exception"]
    assert [line["level"] for line in by_logger["library"]] == ["WARNING"]
    assert [line["level"] for line in by_logger["py.warnings"]] == ["WARNING"]
    messages = by_logger["pypi_assets"]
    assert [line["level"] for line in messages] == ["INFO", "ERROR", "CRITICAL", "CRITICAL"]
    assert messages[1]["message"] == "Error: one\nof two lines"
    assert "ZeroDivisionError" in messages[2]["exception"]
    assert "KeyError" in messages[3]["exception"]


def test_json_lines_of_a_guest_include_lines_of_its_host():
    done = run("json", is_guest=True)
    [of_dagster] = lines(done.stdout)
    assert (of_dagster["logger"], of_dagster["message"]) == ("dagster", "of dagster")
    found = lines(done.stderr)
    [of_run] = [line for line in found if line["logger"] == "dagster"]
    assert (of_run["level"], of_run["message"]) == ("ERROR", "full_dump - STEP_FAILURE - {}\nand why")
    assert [line["level"] for line in found if line["logger"] == "stderr"] == ["INFO", "ERROR"]


def test_log_level_hides_only_our_own_lines(subtests: pytest.Subtests):
    for level, shown in (
        ("", ["INFO", "ERROR"]),
        ("WARNING", ["ERROR"]),
        ("error", ["ERROR"]),
        ("no", ["INFO", "ERROR"]),
    ):
        with subtests.test(level=level):
            found = lines(run("json", level).stderr)
            assert [line["level"] for line in found if line["logger"] == "pypi_assets.somewhere"] == shown
            assert [line["level"] for line in found if line["logger"] == "library"] == ["WARNING"]


def test_text_lines_have_time_level_and_logger_and_are_inert():
    done = run("text")
    logged = [line for line in done.stderr.splitlines() if re.match(r"\d{4}-\d\d-\d\dT", line)]
    assert len(logged) == 3
    assert live_in_line("\n".join(logged)) == []
    first = logged[0]
    assert "own info" in first
    at, level, logger = first.split()[:3]
    assert datetime.fromisoformat(at).utcoffset() == timedelta()
    assert (level, logger) == ("INFO", "pypi_assets.somewhere:")
    assert "own debug" not in done.stderr
    assert "of dagster" not in done.stderr


def test_guest_that_logs_text_keeps_the_handlers_of_its_host():
    done = run("", is_guest=True)
    assert done.stdout == "of dagster\n"
    assert "own info" not in done.stderr


def test_json_lines_of_progress_have_numbers(index: ServedIndex):
    index.wheel("demo", "1.0")
    done = subprocess.run(
        [*PROCESS, "crawl", "full"],
        env=os.environ | {"PYPI_ASSETS_LOG_FORMAT": "json"},
        capture_output=True,
        text=True,
        check=True,
    )
    stages = {line["stage"]: line for line in lines(done.stderr) if "stage" in line}
    assert len(stages) >= 2
    assert {(line["done"], line["total"], line["level"]) for line in stages.values()} == {(1, 1, "INFO")}


def test_endless_line_is_logged_in_parts():
    stream = io.StringIO()
    printed = JsonLines(stream, "bar")
    for _ in range(20_000):
        printed.write("\r50 %")
    found = lines(stream.getvalue())
    assert len(found) == 1
    assert {line["logger"] for line in found} == {"bar"}


def test_command_errors_are_json_lines(tmp_path, subtests: pytest.Subtests):
    variables = {"PYPI_ASSETS_LOG_FORMAT": "json", "PYPI_ASSETS_HOME": str(tmp_path)}
    for arguments, code in (
        (["lookup", "module", "yaml"], 1),
        (["lookup", "module"], 2),
        (["serve", "--port", "70000"], 2),
    ):
        with subtests.test(arguments=arguments):
            done = subprocess.run(
                [*PROCESS, *arguments], env=os.environ | variables, capture_output=True, text=True, check=False
            )
            assert (done.returncode, done.stdout) == (code, "")
            assert "ERROR" in {line["level"] for line in lines(done.stderr)}
