"""Routes of hashes: which files have one."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.routing import Route

from pypi_assets.lookup.hashes_reader import COMMANDS, HashesReader, HashResult, parse_sha256
from pypi_assets.service.answers import Answer
from pypi_assets.service.lookups import (
    Results,
    past_answer,
    past_found,
    past_results,
    published_answer,
    results_at,
    results_of,
)
from pypi_assets.service.names import Sha256
from pypi_assets.service.operations import Call, Operation, Parameters, operation_routes
from pypi_assets.service.service import Service

MOST_HASHES = 1_000
[_COMMAND] = COMMANDS


class HashParameters(Parameters, frozen=True):
    """Which sha256."""

    sha256: Sha256


class Hashes(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Several hashes."""

    hashes: Annotated[tuple[Sha256, ...], Meta(max_length=MOST_HASHES, description=f"up to {MOST_HASHES} hashes")]


class NoParameters(Parameters, frozen=True):
    """An operation that takes all from its body."""


def routes(service: Service) -> list[Route]:
    """The routes of hashes."""
    return list(operation_routes(service, [HASH, HASHES]))


def _hash(service: Service, call: Call[HashParameters]) -> Answer:
    sha256 = call.parameters.sha256
    if call.pinned is not None:
        return past_results(call.pinned, _COMMAND, sha256)
    datasets = service.datasets()
    return published_answer(datasets, results_of(datasets, datasets.reader(HashesReader).file(sha256)))


def _hashes(service: Service, call: Call[NoParameters]) -> Answer:
    wanted = list(dict.fromkeys(map(parse_sha256, call.body.hashes)))
    if call.pinned is not None:
        pinned = call.pinned
        results = [result for one in wanted for result in past_found(pinned, _COMMAND, one)]
        return past_answer(pinned, results_at(pinned, results))
    datasets = service.datasets()
    reader = datasets.reader(HashesReader)
    results = [result for one in wanted for result in reader.file(one).results]
    content = Results[HashResult](
        serial=datasets.serial, set=datasets.id, followed_projects=reader.followed_projects, results=results
    )
    return published_answer(datasets, content)


HASH = Operation(
    path="/v1/hashes/{sha256}",
    handler=_hash,
    summary="Which live files have a sha256",
    parameters=HashParameters,
    answer=Results[HashResult],
)
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
