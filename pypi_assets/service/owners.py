"""Routes of owners: which project is meant by an import."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.routing import Route

from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.modules_reader import ModulesReader
from pypi_assets.lookup.owners import ImportOwners, owners
from pypi_assets.lookup.past_owners import owners_at
from pypi_assets.service.answers import Answer
from pypi_assets.service.lookups import Results, past_answer, published_answer, results_at
from pypi_assets.service.operations import Call, Operation, Parameters, operation_routes
from pypi_assets.service.pins import Pinned
from pypi_assets.service.service import Service

MOST_NAMES = 5_000
ImportName = Annotated[
    str, Meta(min_length=1, max_length=1_000, description="a name that is imported, such as google.cloud.storage")
]
MostCandidates = Annotated[int, Meta(ge=1, le=1_000, description="the most candidates of each import: 1 to 1000")]
FewCandidates = Annotated[int, Meta(ge=1, le=20, description="the most candidates of each import: 1 to 20")]


class ImportsParameters(Parameters, frozen=True):
    """How many candidates of each import: what names like `tests` have by thousands is not repeated for each."""

    limit: FewCandidates = 10


class ImportParameters(Parameters, frozen=True, kw_only=True):
    """Of which import, and how many candidates: all without `limit`."""

    name: ImportName = msgspec.field(name="import")
    limit: MostCandidates | None = None


class Imports(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Several imports."""

    imports: Annotated[tuple[ImportName, ...], Meta(max_length=MOST_NAMES, description=f"up to {MOST_NAMES} imports")]


def routes(service: Service) -> list[Route]:
    """The routes of owners."""
    return list(operation_routes(service, [IMPORT, IMPORTS]))


def _import(service: Service, call: Call[ImportParameters]) -> Answer:
    return _answer(service, call.pinned, call.parameters.limit, [call.parameters.name])


def _imports(service: Service, call: Call[ImportsParameters]) -> Answer:
    return _answer(service, call.pinned, call.parameters.limit, call.body.imports)


def _answer(service: Service, pinned: Pinned | None, most: int | None, names: Sequence[str]) -> Answer:
    if pinned is not None:
        return past_answer(pinned, results_at(pinned, owners_at(pinned.catalog, pinned.serial, names, most)))
    datasets = service.datasets()
    modules = datasets.reader(ModulesReader)
    content = Results[ImportOwners](
        serial=datasets.serial,
        set=datasets.id,
        followed_projects=modules.followed_projects,
        results=owners(modules, datasets.reader(DepgraphReader), names, most),
    )
    return published_answer(datasets, content)


IMPORT = Operation(
    path="/v1/owners/{import}",
    handler=_import,
    summary="Which project is meant by an import",
    description="The longest known module of it, and all projects that provide that, ranked with reasons.",
    parameters=ImportParameters,
    answer=Results[ImportOwners],
)
IMPORTS = Operation(
    path="/v1/owners",
    method="POST",
    handler=_imports,
    summary="Which projects are meant by several imports",
    description="One result for each, in their order, with the 10 best candidates or `limit` of them.",
    parameters=ImportsParameters,
    body=Imports,
    answer=Results[ImportOwners],
)
