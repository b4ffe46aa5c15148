"""Cursors of requests: each is of one list, and a damaged one is a problem."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.questions.paging import Cursor, digest_of, list_digest
from pypi_assets.questions.question import find_question
from pypi_assets.service.answering import read_cursor
from pypi_assets.service.problems import ProblemError

DEPENDENTS = find_question("dependents")
ASKED = DEPENDENTS.given(project="Demo.Pkg", version="1.0")
DIGEST = digest_of(DEPENDENTS, ASKED)


@given(st.text(), st.lists(st.text(), min_size=2, max_size=2), st.none() | st.integers(0, 2**40))
def test_a_cursor_is_read_as_it_was_sent(named: str, after: list[str], count: int | None) -> None:
    cursor = Cursor(named, DIGEST, after, count)
    assert cursor.text().replace("-", "").replace("_", "").isalnum()
    assert read_cursor(cursor.text(), DEPENDENTS, ASKED) == cursor


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_any_other_text_is_a_problem(text: str) -> None:
    with pytest.raises(ProblemError) as raised:
        read_cursor(text, DEPENDENTS, ASKED)
    assert (raised.value.problem.status, raised.value.problem.parameter) == (404, "cursor")


def test_parts_of_a_digest_are_apart() -> None:
    assert list_digest("a", "bc") != list_digest("ab", "c")
    assert list_digest("a", None) == list_digest("a", None)


def test_spellings_of_one_value_have_one_list() -> None:
    assert digest_of(DEPENDENTS, DEPENDENTS.given(project="demo-pkg", version="1.0")) == DIGEST
    assert digest_of(DEPENDENTS, DEPENDENTS.given(project="demo-pkg", version="2.0")) != DIGEST


def test_what_is_no_cursor_of_the_list_is_a_problem(subtests: pytest.Subtests) -> None:
    wrong = {
        "none": 404,
        "": 404,
        "größe": 404,
        Cursor("7-abc", list_digest("other"), ["a", "b"]).text(): 409,
        Cursor("7-abc", DIGEST, []).text(): 404,
        Cursor("7-abc", DIGEST, ["demo"]).text(): 404,
        Cursor("7-abc", DIGEST, ["demo", "b", "c"]).text(): 404,
        Cursor("7-abc", DIGEST, ["demo", "b"], -5).text(): 404,
    }
    for text, status in wrong.items():
        with subtests.test(text=text):
            with pytest.raises(ProblemError) as raised:
                read_cursor(text, DEPENDENTS, ASKED)
            assert (raised.value.problem.status, raised.value.problem.parameter) == (status, "cursor")
