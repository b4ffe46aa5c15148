"""Parameters: what is wrong with one is a problem that names it, and what it accepts."""

from typing import Annotated

import pytest
from msgspec import Meta

from pypi_assets.service.parameters import Parameters, convert_parameters, query_fields
from pypi_assets.service.problems import Problem, ProblemError


class Example(Parameters, frozen=True):
    """Of an operation `/v1/example/{name}`."""

    name: Annotated[str, Meta(max_length=5, description="a short name")]
    limit: Annotated[int, Meta(ge=1, le=10, description="1 to 10")] = 3
    prefix: bool = False


def problem(query: str, name: str = "demo") -> Problem:
    with pytest.raises(ProblemError) as raised:
        convert_parameters(Example, {"name": name}, query_fields(query))
    return raised.value.problem


def test_values_come_from_the_path_and_from_the_query():
    found = convert_parameters(Example, {"name": "demo"}, query_fields("limit=7&prefix=1"))
    assert found == Example(name="demo", limit=7, prefix=True)
    assert convert_parameters(Example, {"name": "demo"}, query_fields("")) == Example(name="demo")


@pytest.mark.parametrize(
    ("query", "parameter", "accepts"),
    [
        ("limit=0", "limit", "1 to 10"),
        ("limit=x", "limit", "1 to 10"),
        ("limit=1.5", "limit", "1 to 10"),
        ("limit=", "limit", "1 to 10"),
        ("prefix=maybe", "prefix", None),
        ("limit=1&limit=2", "limit", "one value"),
        ("name=other", "name", "one value"),
        ("unknown=1", "unknown", "one of: name, limit, prefix"),
    ],
)
def test_what_is_wrong_is_named(query: str, parameter: str, accepts: str | None):
    found = problem(query)
    assert (found.status, found.parameter, found.accepts) == (400, parameter, accepts)


def test_a_name_that_is_too_long_is_not_repeated():
    found = problem("", name="x" * 10_000)
    assert (found.parameter, found.accepts) == ("name", "a short name")
    assert len(found.detail) < 200


@pytest.mark.parametrize("query", ["%ff", "a=%ff", "a=b%00", "&".join(f"a{number}=1" for number in range(50))])
def test_what_is_no_query_string_is_refused(query: str):
    assert problem(query).type == "/docs#bad-request"


def test_what_is_missing_is_named():
    with pytest.raises(ProblemError) as raised:
        convert_parameters(Example, {}, [])
    found = raised.value.problem
    assert (found.status, found.parameter, found.accepts) == (400, "name", "a short name")
    assert found.detail
