"""The declaration of questions: parameters, results and presentation, once for all interfaces.

A question is a function of a snapshot and parameters:

    @question("module", path="/v1/modules/{module}", result=ModuleResult, example="yaml", ...)
    def module(snapshot: Snapshot, given: ModuleParameters, after: After = None) -> Found[ModuleResult]:
        '''List the projects that provide a module, and in which versions.'''

The declaration defines the command `pypi-assets lookup module`, the route (also below `/at/`), pages and JSON lines,
the OpenAPI operation, the tool for agents, and the test that all snapshots give equal answers. The client's method is
generated from it. This module imports no web or command library.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

from pypi_assets.errors import ExpectedError
from pypi_assets.questions.snapshot import After, Found, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepts:
    """The accepted values of a parameter, as a text for people and as limits.

    Lengths are in characters, and numeric limits are inclusive. A list has at most `most` texts, each within the
    limits. `canonical` returns the canonical spelling of a value.
    """

    text: str
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    ge: int | None = None
    le: int | None = None
    most: int | None = None
    canonical: Callable[[str], str] | None = None


@dataclass(frozen=True)
class Parameters:
    """Base class of parameters. Each field is annotated with an `Accepts`."""


class ParameterError(ExpectedError):
    """A parameter has an invalid value. `detail` is the message, if there is a better one than the accepted values."""

    def __init__(self, name: str, value: object, accepts: str, detail: str = "") -> None:
        super().__init__(f"{name}: {detail}" if detail else f"{name} must be {accepts}, not {value!r:.100}")
        self.name, self.value, self.accepts = name, value, accepts


class CombinationError(ParameterError):
    """A parameter has a value that is valid by itself, but not with another parameter, or not at this serial."""


AnyParameters = TypeVar("AnyParameters", bound=Parameters)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a question. `default` is MISSING if a value is required."""

    name: str
    type: Any
    accepts: Accepts
    default: Any = MISSING

    @property
    def is_required(self) -> bool:
        """Return whether the question needs a value for this parameter."""
        return self.default is MISSING

    def check(self, value: Any) -> None:
        """Raise ParameterError if the value is missing, has the wrong type or exceeds a limit."""
        limits = self.accepts
        if value is None:
            if self.is_required:
                raise ParameterError(self.name, value, limits.text)
            return
        if get_origin(self.type) is tuple:
            if not isinstance(value, tuple) or (limits.most is not None and len(value) > limits.most):
                raise ParameterError(self.name, value, limits.text)
            text = replace(self, type=str)
            for one in value:
                text.check(one)
            return
        if not _is_of(self.type, value):
            raise ParameterError(self.name, value, limits.text)
        if get_origin(self.type) is Literal and value not in get_args(self.type):
            raise ParameterError(self.name, value, f"one of {', '.join(get_args(self.type))}")
        size = len(value) if isinstance(value, str) else value
        least, most = (limits.min_length, limits.max_length) if isinstance(value, str) else (limits.ge, limits.le)
        is_beyond = (least is not None and size < least) or (most is not None and size > most)
        if is_beyond or (limits.pattern is not None and re.fullmatch(limits.pattern, value) is None):
            raise ParameterError(self.name, value, limits.text)

    def canonical(self, value: Any) -> Any:
        """Return the canonical spelling of the value."""
        return value if value is None or self.accepts.canonical is None else self.accepts.canonical(value)


def _is_of(kind: Any, value: Any) -> bool:
    """Check whether a value has the type of a parameter. A str must be encodable as UTF-8, and True is not an int."""
    if get_origin(kind) is Literal:
        return True
    kinds = get_args(kind) or (kind,)
    if isinstance(value, str):
        return str in kinds and not any("\ud800" <= character <= "\udfff" for character in value)
    return bool in kinds if isinstance(value, bool) else isinstance(value, kinds)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Batch:
    """A route for several subjects at once: a POST to `path`, with the subjects in the field `field` of the body.

    A body has at most `most` subjects. `item` is the annotated type of one subject, if it differs from the type in the
    question. `parameters` is the class of the query parameters; by default there are none. `answer(snapshot, subjects,
    parameters)` returns the results of all subjects, in the same order.
    """

    path: str
    field: str
    most: int
    summary: str
    answer: Callable[[Snapshot, Sequence[str], Any], Found[Any]]
    description: str = ""
    item: Any = None
    parameters: type[Parameters] = Parameters


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)  # unused methods would slow down each command
class Question(Generic[AnyParameters]):
    """One question, with everything that commands, routes and other interfaces derive from it.

    The parameters:

    - `name` is the name of the command.
    - `parameters` is a class. Its first field is the subject of the question; help calls it `argument`.
    - `split` parses an argument that holds several parameters, such as NAME==VERSION, and returns their values. These
      parameters are listed in `in_argument`. It raises LookupNameError.
    - `check` raises ParameterError if parameters cannot be combined.

    The route:

    - `path` is the route, which contains the subject. None: there is no route.
    - `batch` is the route for several subjects.
    - `has_body`: the route is a POST with the parameters in its body, and the command is written by hand.

    The answer:

    - `answer(snapshot, parameters, after)` returns the results after the sort key `after`. An answer that is whole in
      memory may ignore `after`.
    - `result` is the TypedDict of one result; its fields are the fields of the JSON.
    - `sort_key` returns the unique key of a result, with `key_size` parts. Results are sorted by it. Without it, an
      answer has no pages.
    - `is_single`: there is at most one result.
    - `is_paged`: a page has 1,000 results, unless a limit is given.
    - `count` returns the number of all results, or None if the results must be counted.
    - `project_of` returns the project, if the answer is about a single project.
    - `needs_catalog` returns whether only a catalog can answer. Commands and routes then open it for the newest answer,
      too.
    - `few(snapshot, subject)` returns the answer if that takes few reads of LevelDBs, else None. The service then needs
      no thread.
    - `answer_with(solver, snapshot, parameters, after)` returns the answer with the resolutions of another solver.
    - `long_by` returns the parameter that makes an answer a search of the whole index, or None. The service only
      streams such answers, and limits how many run at once.
    - `is_timed` returns whether an answer depends on how long it took.

    Sentences for people:

    - `nothing_found` is the sentence for an empty answer. `hints` yields further sentences for it.
    - `remarks` yields sentences that a command prints with any answer.
    - `unknown` returns the name of the parameter whose value is unknown, for an empty answer: the route then responds
      with 404. If it returns None, the route responds with 200 and no results.

    The table of a command:

    - `columns(parameters)` are the columns. JSON has all fields.
    - `name_column` repeats the subject. It is shown only if there can be several subjects.
    - `rows` makes table rows from a result, if the columns differ from the fields.
    - `beneath` is a column that a terminal prints below the rows.
    - `name_of_file` returns the subject for a local file. The command then accepts several subjects and files at once.
    """

    name: str
    path: str | None = None
    batch: Batch | None = None
    parameters: type[AnyParameters]
    result: type[Mapping[str, Any]]
    answer: Callable[[Snapshot, AnyParameters, After], Found[Any]]
    summary: str
    description: str
    example: str
    argument: str = "NAME"
    split: Callable[[str], Mapping[str, Any]] | None = None
    in_argument: frozenset[str] = frozenset()
    has_body: bool = False
    columns: Callable[[AnyParameters], tuple[str, ...]] = lambda _given: ()
    nothing_found: Callable[[AnyParameters], str] = lambda _given: ""
    hints: Callable[[Snapshot, AnyParameters], Iterable[str]] = lambda _snapshot, _given: ()
    remarks: Callable[[Snapshot, AnyParameters, Found[Any]], Iterable[str]] = lambda _snapshot, _given, _found: ()
    unknown: Callable[[Snapshot, AnyParameters], str | None] = lambda _snapshot, _given: None
    is_single: bool = False
    sort_key: Callable[[Mapping[str, Any]], tuple[str, ...]] | None = None
    key_size: int = 1
    check: Callable[[AnyParameters], None] = lambda _given: None
    project_of: Callable[[AnyParameters], str] | None = None
    name_column: str | None = None
    rows: Callable[[Mapping[str, Any]], Iterable[Mapping[str, Any]]] | None = None
    beneath: str | None = None
    name_of_file: Callable[[Path], str] | None = None
    needs_catalog: Callable[[AnyParameters], bool] = lambda _given: False
    few: Callable[[Snapshot, str], Found[Any] | None] | None = None
    answer_with: Callable[[Any, Snapshot, AnyParameters, After], Found[Any]] | None = None
    long_by: Callable[[AnyParameters], str | None] = lambda _given: None
    is_timed: Callable[[AnyParameters], bool] = lambda _given: False
    is_paged: bool = False
    count: Callable[[Snapshot, AnyParameters], int | None] | None = None

    @cached_property
    def takes(self) -> tuple[Parameter, ...]:
        """The parameters in order, the subject first."""
        return parameters_of(self.parameters)

    @property
    def command(self) -> str:
        """The words of the command after `pypi-assets`."""
        return self.name if self.name in TOP_LEVEL else f"lookup {self.name}"

    def given(self, **values: Any) -> AnyParameters:
        """Return parameters with these values. Raises ParameterError."""
        for parameter in self.takes:
            if parameter.name in values:
                if isinstance(values[parameter.name], list):
                    values[parameter.name] = tuple(values[parameter.name])
                parameter.check(values[parameter.name])
        made = self.parameters(**values)
        self.check(made)
        return made


def parameters_of(kind: type[Parameters]) -> tuple[Parameter, ...]:
    """Return the parameters that the fields of a class declare."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(Parameter(field.name, *unwrapped(hints[field.name]), field.default) for field in fields(kind))


def unwrapped(annotated: Any) -> tuple[Any, Accepts]:
    """Return the type and the limits of `Annotated[type, Accepts(...)]`."""
    if get_origin(annotated) is Annotated:
        kind, *extras = get_args(annotated)
        for one in extras:
            if isinstance(one, Accepts):
                return kind, one
    raise TypeError(f"{annotated} has no Accepts")


QUESTIONS: dict[str, Question[Any]] = {}
"""The questions whose modules are imported, by name."""
MODULES = {
    "module": "pypi_assets.questions.modules",
    "owners": "pypi_assets.questions.owners",
    "releases": "pypi_assets.questions.releases",
    "release": "pypi_assets.questions.releases",
    "project": "pypi_assets.questions.projects",
    "dependents": "pypi_assets.questions.dependents",
    "impact": "pypi_assets.questions.impact",
    "breaks": "pypi_assets.questions.breaks",
    "files": "pypi_assets.questions.files",
    "history": "pypi_assets.questions.history",
    "command": "pypi_assets.questions.commands",
    "hash": "pypi_assets.questions.hashes",
    "page": "pypi_assets.questions.pages",
    "purl": "pypi_assets.questions.purls",
    "resolve": "pypi_assets.questions.resolutions",
    "collisions": "pypi_assets.questions.collisions",
}
"""The module of each question, in the order of help and documentation."""
TOP_LEVEL = frozenset(("owners", "impact", "history", "resolve"))
"""The questions whose commands are outside the group `lookup`. `_COMMANDS` of `cli/__init__.py` lists them too."""


def find_question(name: str) -> Question[Any]:
    """Return the question of this name. Only its module is imported. Raises KeyError."""
    import_module(MODULES[name])
    return QUESTIONS[name]


def all_questions() -> Iterator[Question[Any]]:
    """Yield all questions, in the order of `MODULES`."""
    return map(find_question, MODULES)


def question(
    name: str, **declared: Any
) -> Callable[[Callable[[Snapshot, AnyParameters, After], Found[Any]]], Question[AnyParameters]]:
    """Return a decorator that declares a question from a function. `declared` are fields of `Question`.

    The annotation of the argument `given` is the class of the parameters. The first line of the docstring is the
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
