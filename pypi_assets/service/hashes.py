"""The route of several hashes at once; that of one follows from its question."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.routing import Route

from pypi_assets.lookup.hashes_reader import HashesReader, HashResult, parse_sha256
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets.service.answers import Answer
from pypi_assets.service.lookups import Results, past_answer, published_answer, results_at
from pypi_assets.service.names import Sha256
from pypi_assets.service.operations import Call, Operation, Parameters, operation_routes
from pypi_assets.service.service import Service

MOST_HASHES = 1_000


class Hashes(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Several hashes."""

    hashes: Annotated[tuple[Sha256, ...], Meta(max_length=MOST_HASHES, description=f"up to {MOST_HASHES} hashes")]


class NoParameters(Parameters, frozen=True):
    """An operation that takes all from its body."""


def routes(service: Service) -> list[Route]:
    """The route of hashes."""
    return list(operation_routes(service, [HASHES]))


def _hashes(service: Service, call: Call[NoParameters]) -> Answer:
    wanted = list(dict.fromkeys(map(parse_sha256, call.body.hashes)))
    if (pinned := call.pinned) is not None:
        past = CatalogSnapshot(pinned.catalog, pinned.serial)
        return past_answer(pinned, results_at(pinned, [result for one in wanted for result in past.files(one).results]))
    datasets = service.datasets()
    reader = datasets.reader(HashesReader)
    content = Results[HashResult](
        serial=datasets.serial,
        set=datasets.id,
        followed_projects=reader.followed_projects,
        results=[result for one in wanted for result in reader.file(one).results],
    )
    return published_answer(datasets, content)


HASHES = Operation(
    path="/v1/hashes",
    method="POST",
    handler=_hashes,
    summary="Which live files have one of several sha256",
    description="Results come in the order of the hashes; one that no live file has brings none.",
    parameters=NoParameters,
    body=Hashes,
    answer=Results[HashResult],
)
