"""The routes of visits: a project's visits with all their statuses, and visits that clients request."""

import hmac
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from sqlalchemy import Connection

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.observed.projects import CatalogProject, find_project
from pypi_assets.catalog.reports.past_visits import count_deleted_visits, deleted_visits_sentence
from pypi_assets.catalog.reports.visit_log import (
    LoggedVisit,
    VisitFilter,
    logged_visit,
    logged_visits,
    shown_files,
)
from pypi_assets.catalog.reports.visit_requests import VisitAnswer, answer_of, find_request
from pypi_assets.catalog.work.full_crawls import has_baseline
from pypi_assets.catalog.work.requested_visits import MOST_PROJECTS, UnknownProjectsError, request_visits
from pypi_assets.components import existing_catalog_from
from pypi_assets.service.operations import Call, Operation
from pypi_assets.service.parameters import OperationParameters, ProjectName
from pypi_assets.service.problems import ProblemError, not_found, unavailable
from pypi_assets.service.responses import Lasting, WholeAnswer, to_json
from pypi_assets.service.service import Service
from pypi_assets.times import utc_text

VisitNumber = Annotated[int, Meta(ge=1, le=2**31 - 1, description="the number of a visit within its project")]
WorkloadName = Annotated[
    str, Meta(min_length=1, max_length=64, description="only visits of this workload, such as range:10-20")
]
Outcome = Literal["created", "ongoing", "full", "partial", "not_found", "failed"]
Kind = Literal["full", "incremental", "audit", "scope", "requested"]


class VisitStatusResult(msgspec.Struct, frozen=True):
    """A status of a visit. The page's serial and status are null if it saw no page."""

    at: str | None
    status: str
    page_serial: int | None
    seen_through: int | None
    page_status: str | None
    text: str | None


class VisitResult(msgspec.Struct, frozen=True, kw_only=True):
    """A visit with all its statuses, the oldest first. `outcome` is the last one.

    `snapshot` is the sha256 of the page's files, and `files` is their number; null if no page was seen.
    """

    visit: int
    kind: str
    workload: str
    started_at: str | None
    outcome: str
    statuses: list[VisitStatusResult]
    snapshot: str | None
    files: int | None


class Visits(msgspec.Struct, frozen=True):
    """Visits in the requested order. If `next` is not null, send it as `after` to get more.

    `deleted` is a sentence about earlier visits that are no longer in the log, or null.
    """

    project: str
    visits: list[VisitResult]
    next: int | None
    deleted: str | None


class VisitedFile(msgspec.Struct, frozen=True):
    """A file on the page that a visit saw."""

    filename: str
    sha256: str | None
    yanked: bool


class OneVisit(msgspec.Struct, frozen=True):
    """One visit, with the files of the page that it saw; null if it saw none, or the catalog does not have them."""

    project: str
    visit: VisitResult
    shown: list[VisitedFile] | None


class RequestedVisits(msgspec.Struct, frozen=True):
    """The requested visits, in the order of the projects of the request."""

    visits: list[VisitAnswer]


class VisitsParameters(OperationParameters, frozen=True):
    """A project, and a filter of its visits."""

    project: ProjectName
    outcome: Annotated[Outcome | None, Meta(description="only visits with this last status")] = None
    kind: Annotated[Kind | None, Meta(description="only visits of this kind")] = None
    workload: WorkloadName | None = None
    order: Annotated[Literal["newest", "oldest"], Meta(description="which visits come first")] = "newest"
    after: Annotated[VisitNumber | None, Meta(description="the last visit of the previous answer")] = None
    limit: Annotated[int, Meta(ge=1, le=1_000, description="the most visits in an answer: 1 to 1000")] = 100


class VisitParameters(OperationParameters, frozen=True):
    """A project, and the number of one of its visits."""

    project: ProjectName
    visit: VisitNumber


class RequestParameters(OperationParameters, frozen=True):
    """The id of a requested visit."""

    id: Annotated[int, Meta(ge=1, le=2**63 - 1, description="the `id` of a requested visit")]


class VisitBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The projects to visit now."""

    projects: Annotated[list[ProjectName], Meta(min_length=1, max_length=MOST_PROJECTS)]


def _project(connection: Connection, name: str) -> CatalogProject:
    found = find_project(connection, name)
    if found is None:
        raise not_found(f"the catalog has no project {name}", parameter="project")
    return found


def _result(visit: LoggedVisit) -> VisitResult:
    fields: dict[str, Any] = asdict(visit)
    statuses = [VisitStatusResult(**(asdict(one) | {"at": utc_text(one.at)})) for one in visit.statuses]
    fields |= {"started_at": utc_text(visit.started_at), "statuses": statuses}
    return VisitResult(**fields)


def _answer(value: object) -> WholeAnswer:
    return WholeAnswer(to_json(value), lasting=Lasting.NO_STORE)


def _visits(service: Service, call: Call[VisitsParameters]) -> WholeAnswer:
    given = call.parameters
    wanted = VisitFilter(
        given.outcome, given.kind, given.workload, given.order == "oldest", given.after, given.limit + 1
    )
    with service.require_catalog().read() as connection:
        project = _project(connection, given.project)
        found = logged_visits(connection, project, wanted)
        deleted = deleted_visits_sentence(count_deleted_visits(connection, project))
    shown = found[: given.limit]
    following = shown[-1].visit if len(found) > given.limit else None
    return _answer(Visits(project.name, list(map(_result, shown)), following, deleted))


def _visit(service: Service, call: Call[VisitParameters]) -> WholeAnswer:
    with service.require_catalog().read() as connection:
        project = _project(connection, call.parameters.project)
        try:
            visit = logged_visit(connection, project, call.parameters.visit)
        except CatalogError as error:
            raise not_found(str(error), parameter="visit") from None
        try:
            files = None if visit.snapshot is None else shown_files(connection, visit.snapshot)
        except CatalogError:
            files = None  # the journal that was replayed lacks them
    shown = None if files is None else [VisitedFile(*one) for one in files]  # type: ignore[arg-type]
    return _answer(OneVisit(project.name, _result(visit), shown))


def _request(service: Service, call: Call[Any]) -> WholeAnswer:
    _require_token(service, call.headers)
    if service.journal_end is not None:
        raise ProblemError(403, "refused", "this is a mirror: request the visit from the instance that it follows")
    service.require_catalog()
    catalog = existing_catalog_from(service.settings)
    try:
        with catalog.read() as connection:
            if not has_baseline(connection):
                raise unavailable("no full crawl is complete, so nothing makes the visits yet")
        now = catalog.clock()
        ids = catalog.transact(lambda connection: request_visits(connection, call.body.projects, now))
        with catalog.read() as connection:
            found = [find_request(connection, id_, now) for id_ in ids]
    except UnknownProjectsError as error:
        raise ProblemError(404, "not-found", str(error), parameter="projects") from None
    finally:
        catalog.close()
    return _answer(RequestedVisits([answer_of(one) for one in found if one is not None]))


def _require_token(service: Service, headers: Mapping[str, str]) -> None:
    """Raise a ProblemError unless the request has the token of the settings. The comparison takes constant time."""
    token = service.settings.visit_token
    if not token:
        raise ProblemError(
            403, "refused", "this service accepts no requests for visits: PYPI_ASSETS_VISIT_TOKEN is not set"
        )
    scheme, _, given = headers.get("authorization", "").partition(" ")
    is_right = hmac.compare_digest(given.strip().encode(), token.encode())
    if scheme.lower() != "bearer" or not is_right:
        raise ProblemError(
            401,
            "unauthorized",
            "the request needs the header `Authorization: Bearer TOKEN` with the token of this service",
            headers=[("WWW-Authenticate", 'Bearer realm="visits"')],
        )


def _requested(service: Service, call: Call[RequestParameters]) -> WholeAnswer:
    catalog = service.require_catalog()
    with catalog.read() as connection:
        found = find_request(connection, call.parameters.id, catalog.clock())
    if found is None:
        raise not_found(f"there is no requested visit {call.parameters.id}", parameter="id")
    return _answer(answer_of(found))


_operation = partial(Operation, problems=(404,), tag="visits", at_serial=False)
OPERATIONS = (
    _operation(
        path="/v1/projects/{project}/visits",
        handler=_visits,
        summary="List the visits of a project's page, with all statuses",
        parameters=VisitsParameters,
        answer=Visits,
    ),
    _operation(
        path="/v1/projects/{project}/visits/{visit}",
        handler=_visit,
        summary="Show one visit, with the files of the page that it saw",
        parameters=VisitParameters,
        answer=OneVisit,
    ),
    _operation(
        path="/v1/visits",
        handler=_request,
        summary="Visit the pages of some projects now",
        description="It needs the token of PYPI_ASSETS_VISIT_TOKEN. Requesting a project again returns the same visit"
        " until it is done.",
        method="POST",
        body=VisitBody,
        answer=RequestedVisits,
        problems=(401, 403, 404),
    ),
    _operation(
        path="/v1/visits/{id}",
        handler=_requested,
        summary="Show the state of a requested visit, and what changed",
        parameters=RequestParameters,
        answer=VisitAnswer,
    ),
)
