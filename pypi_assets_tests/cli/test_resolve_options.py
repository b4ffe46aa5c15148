"""The options of commands that resolve, and the question that they make."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from pypi_assets.cli.resolve_options import Given, question_options
from pypi_assets.resolve.questions import Question, Semantics, Unknown
from pypi_assets_tests.named import unnamed

MOMENT = datetime(2026, 3, 3, tzinfo=UTC)


def run(*arguments: str) -> tuple[Result, list[Given]]:
    found: list[Given] = []

    @click.command()
    @question_options
    def command(given: Given) -> None:
        found.append(given)

    return CliRunner().invoke(command, list(arguments)), found


def question(*arguments: str) -> Question:
    result, [given] = run(*arguments)
    assert result.exit_code == 0, result.output
    return given.question(given.target(), MOMENT)


def test_the_options_are_the_question(tmp_path: Path):
    (tmp_path / "in.txt").write_text("six\n-c limits.txt\n")
    (tmp_path / "limits.txt").write_text("six<2\n")
    files = ("-r", str(tmp_path / "in.txt"))
    options = ("--pre", "--only-binary", "--unknown", "assume-none", "--semantics", "uv", "--cooldown", "36h")
    found = question("app", *files, *options, "--python", "3.12", "--platform", "macos-arm64")
    assert [one.text for one in found.requirements] == ["app", "six"]
    assert [one.text for one in found.constraints] == ["six<2"]
    assert (found.prereleases.of("six"), found.only_binary) == (True, True)
    assert (found.unknown, found.semantics) == (Unknown.ASSUME_NONE, Semantics.UV)
    assert found.uploaded_before == MOMENT - timedelta(hours=36)
    assert found.environment.variables["sys_platform"] == "darwin"


def test_without_options_it_is_as_pip_does_it():
    found = question("app")
    assert (found.semantics, found.unknown) == (Semantics.PIP, Unknown.FAIL)
    assert found.uploaded_before is None
    assert found.prereleases.of("six") is None


@pytest.mark.parametrize(("text", "hours"), [("7d", 168), ("2w", 336), ("0h", 0)])
def test_a_time_span_is_in_hours_days_or_weeks(text: str, hours: int):
    _, [given] = run("app", "--cooldown", text)
    assert given.cooldown == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["7", "d", "-1d", "99999d", "7 days"])
def test_other_time_spans_are_refused(text: str):
    result, _ = run("app", "--cooldown", text)
    assert result.exit_code == 2
    assert unnamed(result.output, "7d", "36h", "2w") == []


def test_several_environments_are_for_universal_alone():
    _, [given] = run("app", "--python", "3.12", "--python", "3.13", "--platform", "linux")
    with pytest.raises(click.UsageError, match="--universal"):
        given.target()
    assert [one.python for one in given.universal_targets()] == ["3.12", "3.13"]
    _, [given] = run("app", "--platform", "linux-x86_64", "--platform", "linux")
    with pytest.raises(click.BadParameter, match="linux"):
        given.universal_targets()
