"""Routes of projects: all releases, and one version."""

from packaging.utils import canonicalize_name
from sqlalchemy.exc import SQLAlchemyError
from starlette.routing import Route

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.leveldbs.format.errors import NoVersionError
from pypi_assets.lookup.catalog_hints import past_project_hints
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.hints import newest_version_hint, project_hints
from pypi_assets.lookup.project_answers import (
    ProjectFacts,
    ProjectResult,
    VersionResult,
    facts_at,
    project_at,
    published_project,
    published_version,
    version_at,
)
from pypi_assets.lookup.published_sets import OpenSet
from pypi_assets.service.answers import Answer, Lasting
from pypi_assets.service.lookups import One, past_answer, published_answer, require_known
from pypi_assets.service.names import ProjectName, VersionText
from pypi_assets.service.operations import Call, Operation, Parameters, operation_routes
from pypi_assets.service.pins import Pinned
from pypi_assets.service.problems import ProblemError, not_found
from pypi_assets.service.service import Service


class ProjectParameters(Parameters, frozen=True):
    """Which project."""

    project: ProjectName


class VersionParameters(ProjectParameters, frozen=True):
    """Which version of it, compared canonically."""

    version: VersionText


def routes(service: Service) -> list[Route]:
    """The routes of projects."""
    return list(operation_routes(service, [PROJECT, VERSION]))


def _project(service: Service, call: Call[ProjectParameters]) -> Answer:
    name = call.parameters.project
    if (pinned := call.pinned) is not None:
        require_known(pinned, name)
        result = project_at(pinned.catalog, pinned.serial, name)
        if result is None:
            raise _no_project_at(pinned, name)
        return past_answer(pinned, One(serial=pinned.serial, epoch=pinned.epoch, result=result))
    datasets = service.datasets()
    facts, is_complete = _facts(service, datasets, name)
    result = published_project(datasets, name, facts)
    if result is None:
        raise no_project(datasets, name)
    answer = published_answer(datasets, One(serial=datasets.serial, set=datasets.id, result=result))
    if facts is None:
        answer.set_id = None  # the catalog may come later, and the datasets stay the same
    if not is_complete:
        answer.lasting = Lasting.NO_STORE
    return answer


def _facts(service: Service, datasets: OpenSet, name: str) -> tuple[ProjectFacts | None, bool]:
    """What the catalog adds to a project, and whether that is all there is: it may not answer just now."""
    catalog = service.catalog
    if catalog is None:
        return None, not service.has_catalog
    try:
        if service.journal_end is not None and _complete(catalog) < datasets.serial:
            return None, False  # a mirror that still replays what its datasets have
        return facts_at(catalog, datasets.serial, name), True
    except (CatalogError, SQLAlchemyError):
        return None, False


def _complete(catalog: Catalog) -> int:
    with catalog.read() as connection:
        return complete_serial(connection)


def _version(service: Service, call: Call[VersionParameters]) -> Answer:
    name, version = call.parameters.project, call.parameters.version
    if (pinned := call.pinned) is not None:
        require_known(pinned, name)
        result = version_at(pinned.catalog, pinned.serial, name, version)
        if result is None:
            raise _no_project_at(pinned, name, version)
        return past_answer(pinned, One(serial=pinned.serial, epoch=pinned.epoch, result=result))
    datasets = service.datasets()
    result = published_version(datasets, name, version)
    if result is None:
        raise no_project(datasets, name, version)
    return published_answer(datasets, One(serial=datasets.serial, set=datasets.id, result=result))


def no_project(datasets: OpenSet, name: str, version: str | None = None) -> ProblemError:
    """The problem that a project, or a version of it, has no live files."""
    reader = datasets.reader(DepgraphReader)
    known = reader.project(name).results if version is not None else ()
    if known:
        hints = [newest_version_hint(known[-1]["project"], known[-1]["version"])]
        detail = f"{known[-1]['project']} has no version {version} as of serial {datasets.serial}"
        return not_found(detail, hints=hints, parameter="version")
    try:
        hints = list(project_hints(reader, name, datasets.opened))
    except NoVersionError:
        hints = []
    detail = f"there is no project {canonicalize_name(name)} as of serial {datasets.serial}"
    return not_found(detail, hints=hints, parameter="project")


def _no_project_at(pinned: Pinned, name: str, version: str | None = None) -> ProblemError:
    project = canonicalize_name(name)
    if version is not None:
        detail = f"{project} had no version {version} at serial {pinned.serial}"
        return not_found(detail, parameter="version")
    hints = list(past_project_hints(pinned.catalog, name))
    return not_found(f"there was no project {project} at serial {pinned.serial}", hints=hints, parameter="project")


PROJECT = Operation(
    path="/v1/projects/{project}",
    handler=_project,
    summary="A project: its releases with their files, and what is known of it",
    description="Without a catalog, summary, licence and the serials of the first and last change are null.",
    parameters=ProjectParameters,
    answer=One[ProjectResult],
    problems=(404,),
)
VERSION = Operation(
    path="/v1/projects/{project}/{version}",
    handler=_version,
    summary="A version of a project: files, requirements, extras, modules and commands",
    parameters=VersionParameters,
    answer=One[VersionResult],
    problems=(404,),
)
