"""The options of commands that resolve projects one by one."""

import click
import pytest
from click.testing import CliRunner
from packaging.version import Version

from pypi_assets.cli.solver_options import Solver, solver_options
from pypi_assets.lookup.exposure import Undecided
from pypi_assets.lookup.impact import Verdict
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.resolve.made_index import MadeIndex

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


def given_solver(*arguments: str) -> Solver:
    found = solver("--solve", *WHERE, *arguments)
    assert found is not None
    return found


def test_without_solve_there_is_no_solver():
    assert solver() is None


def test_the_options_are_the_question_and_its_limits():
    found = given_solver("--semantics", "uv", "--pre", "--only-binary", "--unknown", "assume-none")
    question = found.question
    assert (question.semantics, question.prereleases.of("six"), question.only_binary) == ("uv", True, True)
    assert found.question.unknown == "assume-none"
    assert unnamed(str(found.target), "3.12", "linux-x86_64") == []
    assert (found.project_seconds, found.allowance.seconds) == (10.0, None)
    found = given_solver("--project-seconds", "2", "--total-seconds", "30")
    assert (found.project_seconds, found.allowance.seconds) == (2.0, 30.0)


def test_what_came_of_resolutions_is_counted_and_printed(capsys: pytest.CaptureFixture[str]):
    found = given_solver()
    verdict = found.solvable(INDEX, "base", Version("2"))
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


def test_a_query_that_is_run_again_is_counted_once():
    found = given_solver()
    solution = found.solution(INDEX)
    query = found.counting(lambda _: (one for one in [solution("app"), solution("source")]))
    for _ in range(2):
        list(query(None))  # type: ignore[arg-type]
    assert found.kinds == {"solvable": 1, "undecided": 1}
