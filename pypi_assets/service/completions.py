"""The route that completes a text of the search box."""

from typing import Annotated, TypedDict

from msgspec import Meta
from starlette.routing import Route

from pypi_assets.lookup.completions import completions
from pypi_assets.service.answers import Answer
from pypi_assets.service.lookups import Results, published_answer
from pypi_assets.service.operations import Call, Operation, Parameters, operation_routes
from pypi_assets.service.pages.addresses import page_address
from pypi_assets.service.service import Service

_LONGEST = 200


class CompletionResult(TypedDict):
    """A name that begins with the text. `kind` is `project`, `import` or `command`, and `page` the path of its page."""

    kind: str
    name: str
    page: str


class CompletionParameters(Parameters, frozen=True):
    """The text so far."""

    q: Annotated[
        str,
        Meta(
            max_length=_LONGEST,
            description=f"the beginning of a project, an import or a command: up to {_LONGEST} characters",
        ),
    ]


def routes(service: Service) -> list[Route]:
    """Return the route of completions."""
    return list(operation_routes(service, [COMPLETIONS]))


def _completions(service: Service, call: Call[CompletionParameters]) -> Answer:
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
    summary="Projects, imports and commands that begin with a text",
    description="A dozen at most: those that many projects require first. `prefix` of modules gives whole lists.",
    parameters=CompletionParameters,
    answer=Results[CompletionResult],
    at_serial=False,
)
