"""The form of answers: what they are from; who gets lines and who gets pages."""

import json

import pytest

from pypi_assets.service.problems import ProblemError
from pypi_assets.service.responses import NDJSON, to_json
from pypi_assets.service.results import PagedParameters, Results, lines_of, published_answer, wants_lines
from pypi_assets_tests.service.published import Published


def test_an_answer_names_the_set_and_the_serial_that_it_is_from(published: Published):
    with published.service() as service:
        datasets = service.datasets()
        content = Results[str](serial=datasets.serial, set=datasets.id, results=["found"])
        answer = published_answer(datasets, content)
        assert (answer.serial, answer.modified) == (datasets.serial, datasets.published.published_at)
        assert answer.set_id == datasets.id
        assert b"hints" not in to_json(content)


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
