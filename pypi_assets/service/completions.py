"""The route that completes the text in the search box with projects, imports and commands.

Names that many projects require come first. Each list costs a bounded number of reads, however large the datasets are.
"""

from collections.abc import Iterable
from typing import Annotated, TypedDict

from msgspec import Meta
from packaging.utils import canonicalize_name

from pypi_assets.lookup.commands_reader import CommandsReader
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.hints import Kind, Meaning, meanings
from pypi_assets.lookup.modules_reader import ModulesReader
from pypi_assets.lookup.providers import NamesReader
from pypi_assets.lookup.published_sets import OpenSet
from pypi_assets.service.operations import Call, Operation
from pypi_assets.service.pages.rendering import page_address
from pypi_assets.service.parameters import OperationParameters
from pypi_assets.service.responses import WholeAnswer
from pypi_assets.service.results import Results, published_answer
from pypi_assets.service.service import Service

MOST_OF_A_KIND = 4
MOST_OF_ONE_KIND = 8
"""The limit if the text can be only one kind of name, such as `import ya`."""
_MOST_SCANNED = 20_000
"""The number of required projects to compare, which takes about 20 ms. Longer texts match fewer projects."""
_SEPARATOR = "."


def completions(datasets: OpenSet, text: str) -> list[Meaning]:
    """Return the projects, imports and commands that begin with `text`. A text with a version has none.

    >>> completions(datasets, "import ya")
    [Meaning(kind=<Kind.IMPORT: 'import'>, name='yaml', version=None)]
    """
    ending = _SEPARATOR if text.rstrip().endswith(_SEPARATOR) else ""
    beginnings = {one.kind: one.name for one in meanings(text.strip().rstrip(_SEPARATOR))}
    most = MOST_OF_ONE_KIND if len(beginnings) == 1 else MOST_OF_A_KIND
    found: list[Meaning] = []
    projects: list[str] = []
    if (name := beginnings.get(Kind.PROJECT)) is not None:
        projects = _projects(datasets.reader(DepgraphReader), canonicalize_name(name), most)
        found += [Meaning(Kind.PROJECT, one) for one in projects]
    if (name := beginnings.get(Kind.IMPORT)) is not None:
        modules = datasets.reader(ModulesReader)
        likely = [one.replace("-", "_") for one in projects]
        found += [Meaning(Kind.IMPORT, one) for one in _names(modules, name + ending, likely, most, _SEPARATOR)]
    if (name := beginnings.get(Kind.COMMAND)) is not None:
        found += [Meaning(Kind.COMMAND, one) for one in _names(datasets.reader(CommandsReader), name, projects, most)]
    return found


def _projects(depgraph: DepgraphReader, beginning: str, most: int) -> list[str]:
    """Return the project with exactly this name, then the most required ones, then others."""
    if not beginning:
        return []
    first = depgraph.names_from(beginning, most)
    required = [name for name, _ in depgraph.most_required(most, beginning, _MOST_SCANNED)]
    return _distinct([[name for name in first if name == beginning], required, first], most)


def _names(
    reader: NamesReader, beginning: str, likely: Iterable[str], most: int, separator: str | None = None
) -> list[str]:
    """Return the name itself, then `likely` names that a project provides, then the first names in order."""
    first = reader.names_from(beginning, most, separator) or reader.names_from(beginning.lower(), most, separator)
    provided = [
        name for name in likely if name in first or (name.startswith(beginning) and reader.some_providers(name, 1))
    ]
    return _distinct([[name for name in first if name == beginning], provided, first], most)


def _distinct(lists: Iterable[Iterable[str]], most: int) -> list[str]:
    return list(dict.fromkeys(name for names in lists for name in names))[:most]


_LONGEST = 200


class CompletionResult(TypedDict):
    """A name that begins with the text. `kind` is `project`, `import` or `command`. `page` is the path of its page."""

    kind: str
    name: str
    page: str


class CompletionParameters(OperationParameters, frozen=True):
    """The text to complete."""

    q: Annotated[
        str,
        Meta(
            max_length=_LONGEST,
            description=f"the beginning of a project, an import or a command: up to {_LONGEST} characters",
        ),
    ]


def _completions(service: Service, call: Call[CompletionParameters]) -> WholeAnswer:
    datasets = service.datasets()
    found = [
        CompletionResult(kind=kind.value, name=name, page=page)
        for kind, name, _ in completions(datasets, call.parameters.q)
        if (page := page_address("", kind.value, name)) is not None
    ]
    return published_answer(datasets, Results(serial=datasets.serial, set=datasets.id, results=found))


COMPLETIONS = Operation(
    path="/v1/completions",
    handler=_completions,
    summary="Complete the beginning of a project, import or command",
    description="At most a dozen names, the most required first. `prefix` of modules gives complete lists.",
    parameters=CompletionParameters,
    answer=Results[CompletionResult],
    at_serial=False,
)
OPERATIONS = (COMPLETIONS,)
