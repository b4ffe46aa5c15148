"""Declares a question once: what it takes, what it answers, and how it is called.

A question is a function of a snapshot and of parameters:

    @question("module", path="/v1/modules/{module}", columns=("module", "project", "versions"), example="yaml", ...)
    def module(snapshot: Snapshot, given: ModuleParameters, after: After = None) -> Found[ModuleResult]:
        '''List the projects that provide a module, and in which versions.'''

From it follow `pypi-assets lookup module`, the route with its form below `/at/`, pages and lines of JSON, the OpenAPI
operation, and the test that all snapshots of a serial answer it equally. This module imports no library of the skins.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from importlib import import_module
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from pypi_assets.errors import ExpectedError
from pypi_assets.questions.snapshot import After, Found, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepts:
    """What a parameter accepts, in words (`text`) and as limits: of lengths in characters, of numbers inclusive."""

    text: str
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    ge: int | None = None
    le: int | None = None


@dataclass(frozen=True)
class Parameters:
    """Base of the parameters of a question, whose fields are annotated with what they accept."""


class ParameterError(ExpectedError):
    """A value of a parameter is not accepted."""

    def __init__(self, name: str, value: object, accepts: str) -> None:
        super().__init__(f"{name} is {accepts}, not {value!r:.100}")
        self.name, self.value, self.accepts = name, value, accepts


AnyParameters = TypeVar("AnyParameters", bound=Parameters)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its name, its type, what it accepts, and its default (MISSING: it is required)."""

    name: str
    type: Any
    accepts: Accepts
    default: Any = MISSING

    @property
    def is_required(self) -> bool:
        """Whether a question needs a value for it."""
        return self.default is MISSING

    def check(self, value: Any) -> None:
        """Raise ParameterError if the value is beyond what is accepted."""
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

    `name` is that of its command and in the documents, `path` that of its route; the one field in the path is what is
    asked about, and the first parameter. `answer(snapshot, parameters, after)` returns what was found, from `after` on:
    the `sort_key` of a result before. `columns` are those of a table; JSON has all fields. The column `name_column`
    repeats what is asked about, and is shown if names can differ. `nothing_found` is the sentence for an empty answer,
    and `hints` yields more of them.

    `few(snapshot, name)` answers like `answer` with few reads of LevelDBs, or returns None: the service then does not
    need a thread.
    """

    name: str
    path: str
    parameters: type[AnyParameters]
    result: type[Mapping[str, Any]]
    answer: Callable[[Snapshot, AnyParameters, After], Found[Any]]
    summary: str
    description: str
    example: str
    columns: tuple[str, ...]
    name_column: str
    sort_key: Callable[[Mapping[str, Any]], tuple[str, ...]]
    nothing_found: Callable[[AnyParameters], str]
    hints: Callable[[Snapshot, AnyParameters], Iterable[str]]
    few: Callable[[Snapshot, str], Found[Any] | None] | None = None

    @cached_property
    def takes(self) -> tuple[Parameter, ...]:
        """The parameters in order; the first is what is asked about."""
        hints = get_type_hints(self.parameters, include_extras=True)
        return tuple(
            Parameter(field.name, *_unwrapped(hints[field.name]), field.default) for field in fields(self.parameters)
        )

    def given(self, **values: Any) -> AnyParameters:
        """Return parameters of these values. Raises ParameterError."""
        for parameter in self.takes:
            if parameter.name in values:
                parameter.check(values[parameter.name])
        return self.parameters(**values)


def _unwrapped(annotated: Any) -> tuple[Any, Accepts]:
    """Return the type and what it accepts, of `Annotated[type, Accepts(...)]`."""
    if get_origin(annotated) is Annotated:
        kind, *extras = get_args(annotated)
        for one in extras:
            if isinstance(one, Accepts):
                return kind, one
    raise TypeError(f"{annotated} does not say what it accepts")


QUESTIONS: dict[str, Question[Any]] = {}
"""By name; `all_questions` imports the modules that declare them."""
_MODULES = ("modules", "commands")


def all_questions() -> Iterator[Question[Any]]:
    """Yield all questions, in the order in which help and documents show them."""
    for module in _MODULES:
        import_module(f"pypi_assets.questions.{module}")
    yield from QUESTIONS.values()


def question(
    name: str, **declared: Any
) -> Callable[[Callable[[Snapshot, AnyParameters, After], Found[Any]]], Question[AnyParameters]]:
    """Declare the question that the decorated function answers; see `Question` for what to declare.

    The parameters are those of the function's annotation. Its docstring describes the question: the first line is the
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
