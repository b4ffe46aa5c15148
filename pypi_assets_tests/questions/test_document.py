"""The page of questions matches their declarations."""

from pypi_assets.questions.question import all_questions
from pypi_assets_tests.questions.document import PAGE, rendered, table


def test_page_has_the_current_table() -> None:
    page = PAGE.read_text()
    assert rendered(page) == page, "run python -m pypi_assets_tests.questions.document"


def test_table_has_each_question_with_its_parameters() -> None:
    for question in all_questions():
        assert f"`{question.command} {question.example}`" in table()
        assert all(parameter.accepts.text in table() for parameter in question.takes)
