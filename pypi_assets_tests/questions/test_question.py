"""Questions are declared once. Their limits and descriptions apply to commands and routes."""

import re
from dataclasses import MISSING
from typing import Any, get_origin

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.cli import cli
from pypi_assets.locks.environments import named_environment
from pypi_assets.questions.names import PLATFORM, PYTHON
from pypi_assets.questions.question import Parameter, ParameterError, Question, all_questions
from pypi_assets.service.questions import operation
from pypi_assets_tests.service.published import Client

QUESTIONS = {one.name: one for one in all_questions()}
ABOUT_NAMES = [one for one in QUESTIONS.values() if not one.has_body]


def beyond(parameter: Parameter) -> list[Any]:
    """Return values that are just outside the limits of a parameter."""
    limits = parameter.accepts
    values: list[Any] = []
    if get_origin(parameter.type) is tuple:
        return [["x" * ((limits.max_length or 0) + 1)], [""], ["x"] * ((limits.most or 0) + 1)]
    if parameter.type is str:
        values += [] if limits.min_length is None else ["x" * (limits.min_length - 1)]
        values += [] if limits.max_length is None else ["x" * (limits.max_length + 1)]
    if parameter.type is int:
        values += [] if limits.ge is None else [limits.ge - 1]
        values += [] if limits.le is None else [limits.le + 1]
    return values


def sample(question: Question[Any]) -> Any:
    """Return parameters of a question with their default values."""
    return question.parameters(**{parameter.name: "" for parameter in question.takes if parameter.is_required})


def path_of(question: Question[Any], subject: str) -> str:
    """Return the path of a question about a subject, with all required parameters."""
    path = re.sub(r"{.*?}", subject, question.path or "", count=1)
    needed = [
        parameter.name
        for parameter in question.takes[1:]
        if parameter.is_required and f"{{{parameter.name}}}" not in path
    ]
    return re.sub(r"{.*?}", "1", path) + "".join(f"?{name}=1" for name in needed)


def test_questions_are_complete(subtests: pytest.Subtests) -> None:
    for question in QUESTIONS.values():
        with subtests.test(question=question.name):
            first, *others = question.takes
            in_path = re.findall(r"{(\w+)", question.path or "")
            assert in_path[:1] == ([] if question.path is None or question.has_body else [first.name])
            assert set(in_path[1:]) <= question.in_argument
            assert first.is_required
            assert {one.name for one in others if one.is_required} <= question.in_argument
            assert bool(question.in_argument) == (question.split is not None)
            columns = question.columns(sample(question))
            assert bool(columns) != question.has_body
            assert question.name_column is None or question.name_column in columns
            assert question.rows is not None or set(columns) <= set(question.result.__annotations__)
            assert question.parameters.__doc__
            assert question.summary


def test_values_beyond_the_limits_are_rejected_equally_by_all_interfaces(
    client: Client, subtests: pytest.Subtests
) -> None:
    tried = 0
    for question in ABOUT_NAMES:
        first, *_ = question.takes
        for value in beyond(first):
            tried += 1
            with subtests.test(question=question.name, value=value):
                needed = {parameter.name: "1" for parameter in question.takes[1:] if parameter.is_required}
                with pytest.raises(ParameterError) as caught:
                    question.given(**{first.name: value}, **needed)
                assert (caught.value.name, caught.value.value) == (first.name, value)
                text = f"{value}==1" if needed and value else str(value)
                result = CliRunner().invoke(cli, [*question.command.split(), text])
                assert result.exit_code == 2
                assert first.accepts.text in result.output.replace("\n", " ")
                if question.path is None:
                    continue
                path = path_of(question, str(value))
                answer = client.get(path)
                assert answer.status_code in {400, 404}, path  # the route does not match an empty name
                if value:
                    assert answer.json()["parameter"] == first.name
    assert tried >= len(ABOUT_NAMES)


def test_body_values_beyond_the_limits_are_rejected_equally(client: Client, subtests: pytest.Subtests) -> None:
    tried = 0
    for question in QUESTIONS.values():
        if not question.has_body:
            continue
        needed = {parameter.name: ("demo==1.0",) for parameter in question.takes if parameter.is_required}
        assert question.given(**needed) == question.given(**{name: list(value) for name, value in needed.items()})
        for parameter in question.takes:
            for value in (*beyond(parameter), 1.5, ["demo", 1], [["demo"]]):
                tried += 1
                with subtests.test(question=question.name, parameter=parameter.name, value=str(value)[:50]):
                    with pytest.raises(ParameterError) as caught:
                        question.given(**{**needed, parameter.name: value})
                    assert caught.value.name == parameter.name
                    answer = client.post(question.path or "", {**needed, parameter.name: value})
                    assert answer.status_code in {400, 413}
                    assert answer.json()["parameter"] == ("body" if answer.status_code == 413 else parameter.name)
    assert tried > 40


def test_flag_is_an_option_and_a_query_parameter(subtests: pytest.Subtests) -> None:
    for question in QUESTIONS.values():
        flags = {
            parameter.name.replace("_", "-")
            for parameter in question.takes
            if parameter.type is bool and not question.has_body
        }
        with subtests.test(question=question.name):
            help_text = CliRunner().invoke(cli, [*question.command.split(), "--help"]).output
            assert flags <= set(re.findall(r"--([a-z-]+)", help_text))
            if question.path is not None and not question.has_body:
                assert flags <= set(operation(question.name).parameters.__struct_fields__)


def test_undeclared_parameter_is_rejected() -> None:
    question: Question[object] = QUESTIONS["module"]
    assert [parameter.default for parameter in question.takes] == [MISSING, False, False]
    with pytest.raises(TypeError):
        question.given(module="yaml", colour="red")


@given(st.from_regex(str(PYTHON.pattern), fullmatch=True), st.from_regex(str(PLATFORM.pattern), fullmatch=True))
def test_each_accepted_platform_is_an_environment(python: str, platform: str) -> None:
    assert named_environment(python.strip(), platform.strip()).platforms


def test_common_wheel_tags_are_accepted_platforms() -> None:
    for tag in ("manylinux2014_x86_64", "manylinux1_i686", "linux_armv7l", "macosx_26_0_arm64", "macosx_11_0_x86_64"):
        assert re.fullmatch(str(PLATFORM.pattern), tag), tag
    for tag in ("amiga", "macosx_9_0_x86_64", "manylinux3_x86_64", "linux_"):
        assert not re.fullmatch(str(PLATFORM.pattern), tag), tag
