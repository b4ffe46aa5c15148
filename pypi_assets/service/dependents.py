"""The route of dependents: who requires a project, in pages, or all of them as a stream."""

from itertools import islice
from typing import Annotated

from msgspec import Meta
from packaging.utils import canonicalize_name
from packaging.version import Version
from starlette.routing import Route

from pypi_assets.lookup.depgraph_reader import Dependent, DepgraphReader, filtered_dependents_at
from pypi_assets.lookup.requirement_filters import Which, parse_version
from pypi_assets.service.answers import Answer, StreamedAnswer
from pypi_assets.service.cursors import Cursor, question, read_cursor, set_of
from pypi_assets.service.lines import PAGE_LIMIT, PagedParameters, lines_of, wants_lines
from pypi_assets.service.lookups import Results, past_answer, published_answer, require_known, results_at
from pypi_assets.service.names import VERSION, ParsedVersion, ProjectName
from pypi_assets.service.operations import Call, Operation, operation_routes
from pypi_assets.service.pins import Pinned
from pypi_assets.service.problems import conflict
from pypi_assets.service.service import Service


class DependentsParameters(PagedParameters, frozen=True, kw_only=True):
    """Whose dependents, and which of them. `version` and `excludes` do not go together."""

    project: ProjectName
    version: Annotated[ParsedVersion, Meta(description=f"those that accept {VERSION}")] | None = None
    excludes: Annotated[ParsedVersion, Meta(description=f"those that exclude {VERSION}")] | None = None


class Dependents(Results[Dependent], frozen=True, kw_only=True, omit_defaults=True):
    """A page of the dependents; `count` is that of all pages."""

    count: int


def routes(service: Service) -> list[Route]:
    """The route of dependents."""
    return list(operation_routes(service, [DEPENDENTS]))


def _dependents(service: Service, call: Call[DependentsParameters]) -> Answer | StreamedAnswer:
    given = call.parameters
    version, which = _filter(given)
    is_streamed = wants_lines(given, call.headers)
    if call.pinned is not None:
        return _past(call.pinned, given, version, which, is_streamed=is_streamed)
    if is_streamed:
        return _stream(service, given, version, which)
    return _page(service, given, version, which)


def _filter(given: DependentsParameters) -> tuple[Version | None, Which]:
    if given.version is not None and given.excludes is not None:
        raise conflict("excludes", "version and excludes do not go together", "one of the two")
    if given.excludes is not None:
        return parse_version(given.excludes), "excludes"
    return None if given.version is None else parse_version(given.version), "accepts"


def _stream(service: Service, given: DependentsParameters, version: Version | None, which: Which) -> StreamedAnswer:
    datasets = service.datasets()
    found = datasets.reader(DepgraphReader).streamed_dependents(given.project, version=version, which=which)
    return StreamedAnswer(
        lines_of(found), serial=datasets.serial, modified=datasets.published.published_at, varies=("Accept",)
    )


def _page(service: Service, given: DependentsParameters, version: Version | None, which: Which) -> Answer:
    wanted = question("dependents", canonicalize_name(given.project), version, which)
    cursor = read_cursor(given.cursor, wanted) if given.cursor else None
    datasets = set_of(service, cursor)
    reader, limit = datasets.reader(DepgraphReader), given.limit or PAGE_LIMIT
    after = cursor.after[0] if cursor and cursor.after else None
    stream = reader.streamed_dependents(given.project, after, version=version, which=which)
    results = list(islice(stream, limit + 1))
    if cursor is not None:
        count = cursor.count
    elif version is None:
        count = reader.count_dependents(given.project)
    else:
        count = len(results) + sum(1 for _ in stream)
    following = None
    if len(results) > limit:
        following = Cursor(datasets.id, wanted, [results[limit - 1]["normalized"]], count).text()
    content = Dependents(
        serial=datasets.serial,
        set=datasets.id,
        followed_projects=stream.followed_projects,
        results=results[:limit],
        next=following,
        count=count,
    )
    answer = published_answer(datasets, content)
    answer.varies = ("Accept",)
    return answer


def _past(
    pinned: Pinned, given: DependentsParameters, version: Version | None, which: Which, *, is_streamed: bool
) -> Answer | StreamedAnswer:
    require_known(pinned, given.project)
    found = filtered_dependents_at(pinned.catalog, pinned.serial, given.project, version, which).results
    if is_streamed:  # from memory: no transaction stays open
        return StreamedAnswer(lines_of(found), serial=pinned.serial, modified=pinned.at, varies=("Accept",))
    wanted = question("dependents", canonicalize_name(given.project), version, which)
    cursor = read_cursor(given.cursor, wanted) if given.cursor else None
    named = f"{pinned.serial}.{pinned.epoch}"
    if cursor is not None and cursor.set != named:
        raise conflict("cursor", "the cursor is of another serial or epoch")
    after, limit = cursor.after[0] if cursor and cursor.after else "", given.limit or PAGE_LIMIT
    rest = [one for one in found if one["normalized"] > after]
    following = None
    if len(rest) > limit:
        following = Cursor(named, wanted, [rest[limit - 1]["normalized"]], len(found)).text()
    page = results_at(pinned, rest[:limit])
    content = Dependents(
        serial=page.serial,
        epoch=page.epoch,
        followed_projects=page.followed_projects,
        results=page.results,
        next=following,
        count=len(found),
    )
    answer = past_answer(pinned, content)
    answer.varies = ("Accept",)
    return answer


DEPENDENTS = Operation(
    path="/v1/projects/{project}/dependents",
    handler=_dependents,
    summary="Which projects require a project",
    description="All of them in pages, or with `format=ndjson` (or by Accept) as a stream, one a line.",
    parameters=DependentsParameters,
    answer=Dependents,
    line=Dependent,
    problems=(404, 409, 410),
)
