"""The routes of what depends on a release, and of what excludes it: in pages, or all of it as a stream."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import islice
from typing import Annotated, Any, Literal

from msgspec import Meta
from packaging.utils import canonicalize_name
from packaging.version import Version
from starlette.routing import Route

from pypi_assets.leveldbs.format.errors import NoVersionError
from pypi_assets.lookup.catalog_hints import past_project_hints
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.hints import project_hints
from pypi_assets.lookup.impact import Break, Impact, Solvable, Verdict, breaks, impact
from pypi_assets.lookup.newest_requirements import (
    NewestRequirements,
    PastRequirements,
    PublishedRequirements,
    is_release,
)
from pypi_assets.lookup.published_sets import OpenSet
from pypi_assets.lookup.requirement_filters import parse_version
from pypi_assets.resolve.questions import Question, Semantics, Unknown
from pypi_assets.resolve.solutions import Allowance, verdict_on, with_version
from pypi_assets.service.answers import Answer, Lasting, StreamedAnswer
from pypi_assets.service.cursors import Cursor, question, read_cursor, set_of
from pypi_assets.service.lines import PAGE_LIMIT, PagedParameters, lines_of, wants_lines
from pypi_assets.service.lookups import Results, past_answer, published_answer, require_known, results_at
from pypi_assets.service.names import VERSION, Flag, ParsedVersion, ProjectName
from pypi_assets.service.operations import Call, Operation, operation_routes
from pypi_assets.service.pins import Pinned
from pypi_assets.service.problems import ProblemError, conflict, suggestions_in
from pypi_assets.service.resolutions import (
    DEFAULT_PLATFORM,
    DEFAULT_PYTHON,
    PlatformText,
    PythonText,
    environment_of,
    job_of,
)
from pypi_assets.service.service import Service
from pypi_assets.service.walks import TimedRequirements, counted_chunks, counted_walk

MOST_SOLVING_S = 600
"""For how long an answer may resolve projects."""
_PROJECT_S, _WAIT_S = 2.0, 10.0
"""For how long one project is resolved, so that other questions come in between, and for how long it waits for them."""
_Walk = Callable[[NewestRequirements, str | None], Iterator[Any]]
"""The results after a project (normalized), of this graph."""


class ImpactParameters(PagedParameters, frozen=True, kw_only=True):
    """What depends on which project, or on which version. What is not direct comes as lines alone."""

    project: ProjectName
    version: Annotated[ParsedVersion, Meta(description=f"those that accept {VERSION}; it need not be live")] | None = (
        None
    )
    transitive: Annotated[Flag, Meta(description="1: also what requires these projects, and so on")] = False
    depth: Annotated[int, Meta(ge=1, le=1_000, description="with transitive: no more steps than this")] | None = None


class BreaksParameters(PagedParameters, frozen=True, kw_only=True):
    """What which version breaks. What is not direct, and what is resolved, comes as lines alone."""

    project: ProjectName
    version: Annotated[
        ParsedVersion, Meta(description=f"those that exclude {VERSION}; it need not be live, but with solve")
    ]
    transitive: Annotated[Flag, Meta(description="1: also what requires these projects, and so on")] = False
    depth: Annotated[int, Meta(ge=1, le=1_000, description="with transitive: no more steps than this")] | None = None
    solve: Annotated[Flag, Meta(description="1: also those that have no solution with the version")] = False
    seconds: Annotated[
        int, Meta(ge=1, le=MOST_SOLVING_S, description="with solve: for how long projects are resolved")
    ] = 30
    python: PythonText = DEFAULT_PYTHON
    platform: PlatformText = DEFAULT_PLATFORM
    semantics: Annotated[
        Literal["pip", "uv"], Meta(description="with solve: whose rules hold where installers differ")
    ] = "pip"
    unknown: Annotated[
        Literal["fail", "assume-none"],
        Meta(description="with solve: where it is not known what a file requires, leave a project undecided or go on"),
    ] = "fail"


def routes(service: Service) -> list[Route]:
    """The routes of impact and of breaks."""
    return list(operation_routes(service, [IMPACT, BREAKS]))


def _impact(service: Service, call: Call[ImpactParameters]) -> Answer | StreamedAnswer:
    given = call.parameters
    _check_steps(given, call.headers)
    version = None if given.version is None else parse_version(given.version)

    def walk(graph: NewestRequirements, after: str | None) -> Iterator[Impact]:
        return impact(graph, given.project, version, transitive=given.transitive, depth=given.depth, after=after)

    return _answer(service, call, Impact, walk, question("impact", canonicalize_name(given.project), version))


def _breaks(service: Service, call: Call[BreaksParameters]) -> Answer | StreamedAnswer:
    given = call.parameters
    version = parse_version(given.version)
    _check_steps(given, call.headers)
    if given.solve:
        return _solved_breaks(service, call, version)

    def walk(graph: NewestRequirements, after: str | None) -> Iterator[Break]:
        return breaks(graph, given.project, version, transitive=given.transitive, depth=given.depth, after=after)

    return _answer(service, call, Break, walk, question("breaks", canonicalize_name(given.project), version))


def _solved_breaks(service: Service, call: Call[BreaksParameters], version: Version) -> StreamedAnswer:
    """The lines of what is resolved: each project is a job of the process that resolves."""
    given = call.parameters
    if not wants_lines(given, call.headers):
        raise conflict("solve", "what is resolved comes as lines alone", "solve=1&format=ndjson")
    service = service.of_one_set()
    solvable = _solvable(service, call, version)

    def walk(graph: NewestRequirements, _after: str | None) -> Iterator[Break]:
        if not is_release(version, (text for text, _ in graph.versions(canonicalize_name(given.project)))):
            detail = f"{given.project} has no live release {version}, so nothing can be resolved with it"
            raise conflict("version", detail, "solve=0, for what requirements make of it")
        return breaks(graph, given.project, version, transitive=given.transitive, depth=given.depth, solvable=solvable)

    if call.pinned is not None:
        require_known(call.pinned, given.project)
    answer = _stream(service, call, Break, walk)
    answer.lasting = Lasting.NO_STORE  # what is not decided within the time can be the next time
    return answer


def _solvable(service: Service, call: Call[BreaksParameters], version: Version) -> Solvable:
    given, pinned = call.parameters, call.pinned
    environment = environment_of(given.python, given.platform, "platform")
    without = Question(
        (), environment.environment, semantics=Semantics(given.semantics), unknown=Unknown(given.unknown)
    )
    with_it = with_version(without, given.project, version)
    most = service.settings.service_timeout_s / 2  # at a serial, the answer begins when it is whole
    allowance = Allowance(given.seconds if pinned is None else min(given.seconds, most))

    def solvable(project: str, newest: str) -> Verdict | None:
        work = partial(
            verdict_on, question=with_it, without=without, project=project, newest=newest, most_seconds=_PROJECT_S
        )

        def solve() -> Verdict | None:
            try:
                job = job_of(service, pinned, work, 3 * _PROJECT_S)
                found: Verdict | None = service.resolver.answer(job, call.client, _WAIT_S)
            except ProblemError as error:
                return Verdict("undecided", error.problem.detail)
            return found

        return allowance.spend(solve, partial(Verdict, "undecided"))

    return solvable


def _check_steps(given: ImpactParameters | BreaksParameters, headers: Mapping[str, str]) -> None:
    if given.depth is not None and not given.transitive:
        raise conflict("depth", "depth goes with transitive=1")
    if given.transitive and not wants_lines(given, headers):
        raise conflict("transitive", "what is not direct comes as lines alone", "transitive=1&format=ndjson")


def _answer(
    service: Service, call: Call[Any], kind: type[Any], walk: _Walk, of_question: str
) -> Answer | StreamedAnswer:
    given, pinned = call.parameters, call.pinned
    if pinned is not None:
        require_known(pinned, given.project)
    if wants_lines(given, call.headers):
        return _stream(service, call, kind, walk)
    page = _page if pinned is None else partial(_past_page, pinned)
    answer = page(service, given, kind, walk, of_question)
    answer.varies = ("Accept",)
    return answer


def _stream(service: Service, call: Call[Any], kind: type[Any], walk: _Walk) -> StreamedAnswer:
    """All results: of the latest as they are found, at a serial from memory, so that no transaction stays open."""
    given, pinned = call.parameters, call.pinned
    is_counted = given.transitive or getattr(given, "solve", False)
    if pinned is not None:
        with counted_walk() if is_counted else nullcontext():
            found = list(walk(_past(service, pinned), None))
        return StreamedAnswer(lines_of(found), serial=pinned.serial, modified=pinned.at, varies=("Accept",))
    datasets = service.datasets()
    chunks = lines_of(datasets.reader(DepgraphReader).over_newest(kind, lambda graph: walk(graph, None)))
    return StreamedAnswer(
        counted_chunks(chunks) if is_counted else chunks,
        serial=datasets.serial,
        modified=datasets.published.published_at,
        varies=("Accept",),
    )


def _past(service: Service, pinned: Pinned) -> NewestRequirements:
    graph = PastRequirements(pinned.catalog, pinned.serial)
    return TimedRequirements(graph, service.settings.service_timeout_s)


def _page(service: Service, given: Any, kind: type[Any], walk: _Walk, of_question: str) -> Answer:
    cursor = read_cursor(given.cursor, of_question) if given.cursor else None
    datasets = set_of(service, cursor)
    reader = datasets.reader(DepgraphReader)
    stream = reader.over_newest(kind, lambda graph: walk(graph, _after(cursor)))
    results, following = _first(stream, given, datasets.id, of_question)
    hints = () if results or cursor else _hints(datasets, reader, given.project)
    content: Results[Any] = Results(
        serial=datasets.serial,
        set=datasets.id,
        followed_projects=stream.followed_projects,
        hints=tuple(map(str, hints)),
        suggestions=suggestions_in(hints),
        results=results,
        next=following,
    )
    return published_answer(datasets, content)


def _past_page(pinned: Pinned, service: Service, given: Any, _kind: type[Any], walk: _Walk, of_question: str) -> Answer:
    cursor = read_cursor(given.cursor, of_question) if given.cursor else None
    named = f"{pinned.serial}.{pinned.epoch}"
    if cursor is not None and cursor.set != named:
        raise conflict("cursor", "the cursor is of another serial or epoch")
    graph = _past(service, pinned)
    results, following = _first(walk(graph, _after(cursor)), given, named, of_question)
    hints: Sequence[str] = ()
    if not results and cursor is None and not graph.versions(canonicalize_name(given.project)):
        hints = [_unknown(given.project), *past_project_hints(pinned.catalog, given.project)]
    page = results_at(pinned, results, hints)
    content: Results[Any] = Results(
        serial=page.serial,
        epoch=page.epoch,
        followed_projects=page.followed_projects,
        hints=page.hints,
        suggestions=page.suggestions,
        results=page.results,
        next=following,
    )
    return past_answer(pinned, content)


def _first(found: Iterable[Any], given: Any, set_id: str, of_question: str) -> tuple[list[Any], str | None]:
    """The results of a page, and the cursor of the next one, where there is one."""
    limit = given.limit or PAGE_LIMIT
    results = list(islice(found, limit + 1))
    if len(results) <= limit:
        return results, None
    return results[:limit], Cursor(set_id, of_question, [results[limit - 1]["normalized"]], 0).text()


def _after(cursor: Cursor | None) -> str | None:
    return cursor.after[0] if cursor and cursor.after else None


def _hints(datasets: OpenSet, reader: DepgraphReader, name: str) -> Sequence[str]:
    """What may have been meant by the name of a project that is not known."""
    if reader.query(lambda db: PublishedRequirements(db).versions(canonicalize_name(name)))[1]:
        return ()
    try:
        return [_unknown(name), *project_hints(reader, name, datasets.opened)]
    except NoVersionError:
        return [_unknown(name)]


def _unknown(name: str) -> str:
    return f"no distribution of {name} is known"


IMPACT = Operation(
    path="/v1/projects/{project}/impact",
    handler=_impact,
    summary="Which projects depend on a project, or on one of its versions",
    description=(
        "Those whose newest release requires it, in pages, or with `format=ndjson` (or by Accept) as a stream, one a"
        " line; what requires these in turn, as a stream alone."
    ),
    parameters=ImpactParameters,
    answer=Results[Impact],
    line=Impact,
    problems=(404, 409, 410),
)
BREAKS = Operation(
    path="/v1/projects/{project}/breaks",
    handler=_breaks,
    summary="Which projects a version of a project breaks",
    description=(
        "Those whose newest release excludes it, in pages, or with `format=ndjson` (or by Accept) as a stream, one a"
        " line. What requires these in turn comes as a stream alone. So do, with `solve=1`, all whose newest release"
        " has no solution with the version; of what is not resolved in time, a line has the reason `undecided`."
    ),
    parameters=BreaksParameters,
    answer=Results[Break],
    line=Break,
    problems=(404, 409, 410),
)
