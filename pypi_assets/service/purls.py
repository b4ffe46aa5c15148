"""The route of package URLs: what is known of each."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.routing import Route

from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.errors import LookupNameError
from pypi_assets.lookup.package_urls import PurlResult, parse_purl, purl_result, wrong_purl
from pypi_assets.lookup.project_answers import files_at
from pypi_assets.service.answers import Answer
from pypi_assets.service.hashes import NoParameters
from pypi_assets.service.lookups import Results, past_answer, published_answer, results_at
from pypi_assets.service.operations import Call, Operation, operation_routes
from pypi_assets.service.service import Service

MOST_PURLS = 1_000
Purl = Annotated[
    str, Meta(min_length=1, max_length=1_000, description="a package URL, such as pkg:pypi/requests@2.32.3")
]
_FilesOf = Callable[[str, str | None], Sequence[Any]]


class Purls(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Several package URLs."""

    purls: Annotated[tuple[Purl, ...], Meta(max_length=MOST_PURLS, description=f"up to {MOST_PURLS} package URLs")]


def routes(service: Service) -> list[Route]:
    """The route of package URLs."""
    return list(operation_routes(service, [PURLS]))


def _purls(service: Service, call: Call[NoParameters]) -> Answer:
    if (pinned := call.pinned) is not None:
        catalog, serial = pinned.catalog, pinned.serial
        results = _results(call.body.purls, lambda name, version: files_at(catalog, serial, name, version))
        return past_answer(pinned, results_at(pinned, results))
    datasets = service.datasets()
    reader = datasets.reader(DepgraphReader)
    results = _results(call.body.purls, lambda name, version: reader.project(name, version).results)
    content = Results[PurlResult](
        serial=datasets.serial, set=datasets.id, followed_projects=reader.followed_projects, results=results
    )
    return published_answer(datasets, content)


def _results(purls: Sequence[str], files_of: _FilesOf) -> list[PurlResult]:
    results = []
    for purl in purls:
        try:
            parsed = parse_purl(purl)
        except LookupNameError as error:
            results.append(wrong_purl(purl, error))
        else:
            results.append(purl_result(purl, parsed, files_of(parsed.normalized, parsed.version)))
    return results


PURLS = Operation(
    path="/v1/purls",
    method="POST",
    handler=_purls,
    summary="What is known of package URLs",
    description="One result for each, in their order; `error` is what is wrong with one.",
    parameters=NoParameters,
    body=Purls,
    answer=Results[PurlResult],
)
