import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.service.cursors import Cursor, question, read_cursor
from pypi_assets.service.problems import ProblemError


@given(st.text(), st.lists(st.text(), max_size=3), st.integers(0, 2**40))
def test_a_cursor_comes_back_as_it_was_sent(named: str, after: list[str], count: int):
    cursor = Cursor(named, question("list", named), after, count)
    assert cursor.text().replace("-", "").replace("_", "").isalnum()
    assert read_cursor(cursor.text(), question("list", named)) == cursor


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_anything_else_is_a_problem(text: str):
    with pytest.raises(ProblemError) as raised:
        read_cursor(text, "wanted")
    assert (raised.value.problem.status, raised.value.problem.parameter) == (404, "cursor")


def test_questions_differ():
    assert question("a", "bc") != question("ab", "c")
    assert question("a", None) == question("a", None)
