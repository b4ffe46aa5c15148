"""Long lists: who gets lines and who gets pages."""

import json

import pytest

from pypi_assets.service.answers import NDJSON
from pypi_assets.service.lines import PagedParameters, lines_of, wants_lines
from pypi_assets.service.problems import ProblemError


def test_lines_begin_with_few():
    chunks = list(lines_of({"number": number} for number in range(3_000)))
    assert [chunk.count(b"\n") for chunk in chunks] == [100, 2_000, 900]
    assert [json.loads(line)["number"] for chunk in chunks for line in chunk.splitlines()] == list(range(3_000))


@pytest.mark.parametrize(
    ("form", "accept", "expected"),
    [
        (None, "", False),
        (None, "*/*", False),
        (None, NDJSON, True),
        (None, f"{NDJSON};q=0.5, application/json", False),
        (None, f"{NDJSON}, application/json;q=0.5", True),
        ("json", NDJSON, False),
        ("ndjson", "application/json", True),
    ],
)
def test_the_parameter_decides_and_else_the_header(form, accept: str, expected: bool):
    assert wants_lines(PagedParameters(format=form), {"accept": accept}) == expected


def test_a_page_is_not_requested_of_lines():
    for given in (PagedParameters(format="ndjson", limit=1), PagedParameters(format="ndjson", cursor="x")):
        with pytest.raises(ProblemError, match="format=json"):
            wants_lines(given, {})
    assert not wants_lines(PagedParameters(limit=1, cursor="x"), {})
