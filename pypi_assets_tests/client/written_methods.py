"""Generate `client/methods.py` from the registry of questions. Run as a module to write the file."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any, get_args, get_origin, get_type_hints

import pypi_assets
from pypi_assets.questions.question import Parameter, Question, all_questions

FILE = Path(pypi_assets.__file__).parent / "client" / "methods.py"
_WIDTH = 120
_HEAD = '''"""The methods of a client, one for each question.

`python -m pypi_assets_tests.client.written_methods` writes this file.
"""
# ruff: noqa: A002 - parameters have the names that commands and routes have

from typing import TYPE_CHECKING, Any, Literal

from pypi_assets.client.results import ResultIterator

if TYPE_CHECKING:
'''
_CLASS = '''

class Questions:
    """A method for each question. Its parameters, limits and results equal the command and the route of the question.

    Each raises ParameterError for a value beyond its limits, and OtherSnapshotError if the source cannot answer.
    """

    def _ask(
        self, name: str, values: dict[str, Any], page_size: int | None = None, cursor: str | None = None
    ) -> ResultIterator[Any]:
        raise NotImplementedError
'''


def written() -> str:
    """Return the text of the module."""
    questions = list(all_questions())
    kinds = sorted({(kind.__module__, kind.__name__) for question in questions for kind in result_kinds(question)})
    modules: dict[str, list[str]] = {}
    for module, name in kinds:
        modules.setdefault(module, []).append(name)
    imports = "".join(f"    from {module} import {', '.join(names)}\n" for module, names in modules.items())
    text = _HEAD + imports + _CLASS + "".join("\n" + "\n".join(_method(question)) + "\n" for question in questions)
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(FILE), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def result_kinds(question: Question[Any]) -> list[type[Any]]:
    """Return the types of the results, in the order of the function's annotation."""
    answers = get_args(get_type_hints(question.answer)["return"])
    return list(dict.fromkeys(kind for answer in answers for kind in get_args(answer)))


def _method(question: Question[Any]) -> Iterator[str]:
    required = [parameter for parameter in question.takes if parameter.is_required]
    others = [parameter for parameter in question.takes if not parameter.is_required]
    kinds = " | ".join(kind.__name__ for kind in result_kinds(question))
    paged = ("page_size: int | None = None", "cursor: str | None = None") if question.sort_key else ()
    options = [*(f"{one.name}: {_type(one)} = {one.default!r}" for one in others), *paged]
    arguments = ["self", *(f"{one.name}: {_type(one)}" for one in required), *(["*", *options] if options else [])]
    name, returned = question.name.replace("-", "_"), f'"ResultIterator[{kinds}]"'
    yield f"    def {name}({', '.join(arguments)}) -> {returned}:"
    yield f'        """{question.summary}.'
    yield ""
    if question.description:
        yield from _wrapped(question.description)
        yield ""
    for take in question.takes:
        yield from _wrapped(f"`{take.name}`: {take.accepts.text}{_limits(take)}.")
    if paged:
        yield from _wrapped("`page_size`: the number of results in a request. `cursor`: the position to continue at.")
    yield '        """'
    values = "{" + ", ".join(f'"{parameter.name}": {parameter.name}' for parameter in question.takes) + "}"
    pages = ", page_size, cursor" if paged else ""
    yield f'        return self._ask("{question.name}", {values}{pages})'


def _wrapped(text: str) -> list[str]:
    return wrap(text, _WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)


def _type(parameter: Parameter) -> str:
    kind = parameter.type
    if get_origin(kind) is tuple:
        return f"list[str] | {kind}"
    text = kind.__name__ if isinstance(kind, type) else str(kind).removeprefix("typing.")
    if "." in text.replace("...", ""):
        raise TypeError(f"{parameter.name} is a {text}, which the module would have to import")
    return text


def _limits(parameter: Parameter) -> str:
    limits = parameter.accepts
    if limits.max_length is not None:
        return f", {'each ' if limits.most is not None else ''}up to {limits.max_length} characters"
    if limits.ge is not None:
        return f", from {limits.ge}" + ("" if limits.le is None else f" to {limits.le}")
    return "" if limits.le is None else f", up to {limits.le}"


if __name__ == "__main__":
    FILE.write_text(written())
