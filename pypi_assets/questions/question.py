"""Declares questions: parameters, results and presentation, once for all faces.

A question is a function of a snapshot and of parameters:

    @question("module", path="/v1/modules/{module}", result=ModuleResult, example="yaml", ...)
    def module(snapshot: Snapshot, given: ModuleParameters, after: After = None) -> Found[ModuleResult]:
        '''List the projects that provide a module, and in which versions.'''

The command `pypi-assets lookup module`, the route with its form below `/at/`, pages and lines of JSON, the OpenAPI
operation and the equality test of all snapshots are derived from it. This module imports no web or command library.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from pypi_assets.errors import ExpectedError
from pypi_assets.questions.snapshot import After, Found, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepts:
    """The accepted values of a parameter, in words (`text`) and as limits.

    Lengths are in characters; limits of numbers are inclusive.
    """

    text: str
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    ge: int | None = None
    le: int | None = None


@dataclass(frozen=True)
class Parameters:
    """Base class of parameters. Each field is annotated with an `Accepts`."""


class ParameterError(ExpectedError):
    """A value of a parameter is not accepted."""

    def __init__(self, name: str, value: object, accepts: str) -> None:
        super().__init__(f"{name} must be {accepts}, not {value!r:.100}")
        self.name, self.value, self.accepts = name, value, accepts


AnyParameters = TypeVar("AnyParameters", bound=Parameters)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. `default` is MISSING if a value is required."""

    name: str
    type: Any
    accepts: Accepts
    default: Any = MISSING

    @property
    def is_required(self) -> bool:
        """Return whether the question needs a value for this parameter."""
        return self.default is MISSING

    def check(self, value: Any) -> None:
        """Raise ParameterError if the value exceeds a limit."""
        if value is None and not self.is_required:
            return
        limits = self.accepts
        size = len(value) if isinstance(value, str) else value
        least, most = (limits.min_length, limits.max_length) if isinstance(value, str) else (limits.ge, limits.le)
        is_beyond = (least is not None and size < least) or (most is not None and size > most)
        if is_beyond or (limits.pattern is not None and re.search(limits.pattern, value) is None):
            raise ParameterError(self.name, value, limits.text)


@dataclass(frozen=True, kw_only=True)
class Question(Generic[AnyParameters]):
    """One question.

    `name` is the name of its command. Its first parameter is the subject of the question; help calls it `argument`.
    `path` is the route, which contains the subject. None: the question has no route.

    `answer(snapshot, parameters, after)` returns the results from `after` on, which is the `sort_key` of an earlier
    result. `check` raises ParameterError for parameters that exclude each other. `nothing_found` is the sentence for an
    empty answer, and `hints` yields further sentences. `project_of` returns the project of an answer about a single
    project.

    `columns(parameters)` are the columns of a table; JSON has all fields. The column `name_column` repeats the subject,
    and is shown only if several subjects are possible. `row` makes a table row from a result, if columns differ from
    fields. A terminal prints the column `beneath` below the rows. `name_of_file` returns the subject that a local file
    stands for; several subjects and files can then be given at once.

    `needs_catalog` returns whether only a catalog can answer. `few(snapshot, subject)` gives the answer with few reads
    of LevelDBs, or None; the service then needs no thread.
    """

    name: str
    path: str | None = None
    parameters: type[AnyParameters]
    result: type[Mapping[str, Any]]
    answer: Callable[[Snapshot, AnyParameters, After], Found[Any]]
    summary: str
    description: str
    example: str
    argument: str = "NAME"
    columns: Callable[[AnyParameters], tuple[str, ...]]
    nothing_found: Callable[[AnyParameters], str]
    hints: Callable[[Snapshot, AnyParameters], Iterable[str]] = lambda _snapshot, _given: ()
    sort_key: Callable[[Mapping[str, Any]], tuple[str, ...]] | None = None
    check: Callable[[AnyParameters], None] = lambda _given: None
    project_of: Callable[[AnyParameters], str] | None = None
    name_column: str | None = None
    row: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    beneath: str | None = None
    name_of_file: Callable[[Path], str] | None = None
    needs_catalog: Callable[[AnyParameters], bool] = lambda _given: False
    few: Callable[[Snapshot, str], Found[Any] | None] | None = None

    @cached_property
    def takes(self) -> tuple[Parameter, ...]:
        """The parameters in order, the subject first."""
        hints = get_type_hints(self.parameters, include_extras=True)
        return tuple(
            Parameter(field.name, *_unwrapped(hints[field.name]), field.default) for field in fields(self.parameters)
        )

    def given(self, **values: Any) -> AnyParameters:
        """Return parameters with these values. Raises ParameterError."""
        for parameter in self.takes:
            if parameter.name in values:
                parameter.check(values[parameter.name])
        made = self.parameters(**values)
        self.check(made)
        return made


def _unwrapped(annotated: Any) -> tuple[Any, Accepts]:
    """Return the type and the limits of `Annotated[type, Accepts(...)]`."""
    if get_origin(annotated) is Annotated:
        kind, *extras = get_args(annotated)
        for one in extras:
            if isinstance(one, Accepts):
                return kind, one
    raise TypeError(f"{annotated} has no Accepts")


QUESTIONS: dict[str, Question[Any]] = {}
"""The imported questions, by name."""
MODULES = {
    "module": "pypi_assets.questions.modules",
    "project": "pypi_assets.questions.projects",
    "dependents": "pypi_assets.questions.dependents",
    "command": "pypi_assets.questions.commands",
    "hash": "pypi_assets.questions.hashes",
    "page": "pypi_assets.questions.pages",
}
"""The module of each question, in the order of help and documents."""


def find_question(name: str) -> Question[Any]:
    """Return the question of this name; only its module is imported. Raises KeyError."""
    import_module(MODULES[name])
    return QUESTIONS[name]


def all_questions() -> Iterator[Question[Any]]:
    """Yield all questions, in the order of `MODULES`."""
    return map(find_question, MODULES)


def question(
    name: str, **declared: Any
) -> Callable[[Callable[[Snapshot, AnyParameters, After], Found[Any]]], Question[AnyParameters]]:
    """Return a decorator that declares the question of a function; `declared` are fields of `Question`.

    The annotation of the argument `given` is the type of the parameters. The first line of the docstring is the
    summary.
    """

    def declare(answer: Callable[[Snapshot, AnyParameters, After], Found[Any]]) -> Question[AnyParameters]:
        hints = get_type_hints(answer)
        summary, _, description = (answer.__doc__ or "").strip().partition("\n")
        found = Question(
            name=name,
            parameters=hints["given"],
            answer=answer,
            summary=summary.removesuffix("."),
            description=" ".join(description.split()),
            **declared,
        )
        QUESTIONS[name] = found
        return found

    return declare
