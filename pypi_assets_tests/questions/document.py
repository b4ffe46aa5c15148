"""The table of docs/ask.md, generated from the declared questions. Run as a module to write the table."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pypi_assets.questions.question import Question, all_questions
from pypi_assets_tests.generated_part import with_generated

PAGE = Path(__file__).parent.parent.parent / "docs" / "ask.md"


def table() -> str:
    """Return a row for each question, with its parameters below."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "| question | command | route | results |"
    yield "|---|---|---|---|"
    for one in all_questions():
        fields = ", ".join(f"`{name}`" for name in one.result.__annotations__)
        method = "POST" if one.has_body else "GET"
        route = "" if one.path is None else f"`{method} {one.path.replace(':path', '')}`"
        yield f"| {one.summary}. | `{one.command} {one.example}` | {route} | {fields} |"
    for question in all_questions():
        yield ""
        yield f"`{question.name}` takes:"
        yield ""
        yield from (_parameter(question, name) for name in (parameter.name for parameter in question.takes))


def _parameter(question: Question[Any], name: str) -> str:
    [parameter] = [parameter for parameter in question.takes if parameter.name == name]
    limits = parameter.accepts
    sizes = f", {limits.min_length or 'up'} to {limits.max_length} characters" if limits.max_length is not None else ""
    if question.has_body:
        return f"- `{name}` in the body: {limits.text}"
    option = "" if name in question.in_argument else f"`--{name}`, "
    shown = f"`{name}`" if name == question.takes[0].name else f"{option}`?{name}=`"
    return f"- {shown}: {limits.text}{sizes}"


def rendered(page: str) -> str:
    """Return the page with the current table."""
    return with_generated(page, "questions", table())


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text()))
