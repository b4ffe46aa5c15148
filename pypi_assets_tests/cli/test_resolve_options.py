"""The options of commands that resolve, and the solver for other questions."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import click
import pytest
from click.testing import CliRunner, Result
from packaging.version import Version

from pypi_assets.cli.resolve_options import Given, Solver, question_options, solver_options
from pypi_assets.lookup.exposure import Undecided
from pypi_assets.lookup.release_impact import Solvable, Verdict
from pypi_assets.questions.breaks import BreaksParameters
from pypi_assets.questions.snapshot import Snapshot
from pypi_assets.resolve.questions import ResolutionQuestion, Semantics, Unknown
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.resolve.made_index import MadeIndex

MOMENT = datetime(2026, 3, 3, tzinfo=UTC)


def run(*arguments: str) -> tuple[Result, list[Given]]:
    found: list[Given] = []

    @click.command()
    @question_options
    def command(given: Given) -> None:
        found.append(given)

    return CliRunner().invoke(command, list(arguments)), found


def question(*arguments: str) -> ResolutionQuestion:
    result, [given] = run(*arguments)
    assert result.exit_code == 0, result.output
    return given.question(given.target(), MOMENT)


def test_options_become_the_question(tmp_path: Path):
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


def test_defaults_resolve_as_pip_does():
    found = question("app")
    assert (found.semantics, found.unknown) == (Semantics.PIP, Unknown.FAIL)
    assert found.uploaded_before is None
    assert found.prereleases.of("six") is None


@pytest.mark.parametrize(("text", "hours"), [("7d", 168), ("2w", 336), ("0h", 0)])
def test_cooldown_is_in_hours_days_or_weeks(text: str, hours: int):
    _, [given] = run("app", "--cooldown", text)
    assert given.cooldown == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["7", "d", "-1d", "99999d", "7 days"])
def test_invalid_cooldown_is_rejected(text: str):
    result, _ = run("app", "--cooldown", text)
    assert result.exit_code == 2
    assert unnamed(result.output, "7d", "36h", "2w") == []


def test_several_environments_require_universal():
    _, [given] = run("app", "--python", "3.12", "--python", "3.13", "--platform", "linux")
    with pytest.raises(click.UsageError, match="--universal"):
        given.target()
    assert [one.python for one in given.universal_targets()] == ["3.12", "3.13"]
    _, [given] = run("app", "--platform", "linux-x86_64", "--platform", "linux")
    with pytest.raises(click.BadParameter, match="linux"):
        given.universal_targets()


WHERE = ("--python", "3.12", "--platform", "linux-x86_64")
INDEX = MadeIndex(
    {"base": {"1": [], "2": []}, "app": {"1": ["base<2"]}, "fine": {"1": ["base"]}, "source": {"1": None}}
)


def solver(*arguments: str) -> Solver | None:
    found: list[Solver | None] = []

    @click.command()
    @solver_options
    def command(solver: Solver | None) -> None:
        found.append(solver)

    result = CliRunner().invoke(command, list(arguments))
    assert result.exit_code == 0, result.output
    return found[0]


def verdicts(solver: Solver) -> Solvable:
    """Return the verdicts on the projects of `INDEX` with base 2."""
    snapshot = cast("Snapshot", SimpleNamespace(release_index=lambda: INDEX))
    return solver(snapshot, BreaksParameters("base", "2"), Version("2"))


def given_solver(*arguments: str) -> Solver:
    found = solver("--solve", *WHERE, *arguments)
    assert found is not None
    return found


def test_solver_is_none_without_solve():
    assert solver() is None


def test_solver_has_the_question_and_limits_of_its_options():
    found = given_solver("--semantics", "uv", "--pre", "--only-binary", "--unknown", "assume-none")
    question = found.question
    assert (question.semantics, question.prereleases.of("six"), question.only_binary) == ("uv", True, True)
    assert found.question.unknown == "assume-none"
    assert unnamed(str(found.target), "3.12", "linux-x86_64") == []
    assert (found.project_seconds, found.allowance.seconds) == (10.0, None)
    found = given_solver("--project-seconds", "2", "--total-seconds", "30")
    assert (found.project_seconds, found.allowance.seconds) == (2.0, 30.0)


def test_solver_counts_and_prints_outcomes(capsys: pytest.CaptureFixture[str]):
    found = given_solver()
    verdict = verdicts(found)
    assert verdict("fine", "1") is None
    assert isinstance(verdict("app", "1"), Verdict)
    found.print_summary()
    assert unnamed(capsys.readouterr().err, "2", "1") == []
    found = given_solver("--total-seconds", "1e-9")
    solution = found.solution(INDEX)
    assert solution("app") == {"app": "1", "base": "1"}
    assert isinstance(solution("fine"), Undecided)
    assert found.kinds == {"solvable": 1, "undecided": 1}
    found.print_summary()
    assert unnamed(capsys.readouterr().err, "1") == []


def test_repeated_search_is_counted_once():
    found = given_solver()
    for _ in range(2):
        solution = found.solution(INDEX)
        assert [isinstance(solution(name), Undecided) for name in ("app", "source")] == [False, True]
        assert found.kinds == {"solvable": 1, "undecided": 1}
    for _ in range(2):
        verdict = verdicts(found)
        assert verdict("fine", "1") is None
        assert found.kinds == {"solvable": 1}
