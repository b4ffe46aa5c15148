"""The route of a project's history: what happened to it, by serial."""

from dataclasses import asdict
from typing import TypedDict, cast

from starlette.routing import Route

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.reports.project_history import VISIT, Entry, read_history
from pypi_assets.index.actions import Action
from pypi_assets.lookup.catalog_hints import past_project_hints
from pypi_assets.service.answers import Answer, to_json
from pypi_assets.service.lookups import Results, past_answer, require_known, results_at
from pypi_assets.service.names import Flag, ProjectName
from pypi_assets.service.operations import Call, Operation, Parameters, operation_routes
from pypi_assets.service.problems import not_found
from pypi_assets.service.service import Service
from pypi_assets.service.times import utc_text


class HistoryEntry(TypedDict):
    """One thing that happened at `serial`, as `pypi-assets history --json` prints it. Times are ISO 8601 in UTC."""

    serial: int
    at: str | None
    kind: str
    text: str
    version: str | None
    filenames: list[str]
    visit: int | None
    outcome: str | None
    error: str | None
    live: list[str]
    away: list[str]
    yanked: list[str]
    unyanked: list[str]
    epoch: int | None
    not_before: str | None


class HistoryParameters(Parameters, frozen=True):
    """Of which project. With `all`, also events that change no files."""

    project: ProjectName
    all: Flag = False


def routes(service: Service) -> list[Route]:
    """The route of histories."""
    return list(operation_routes(service, [HISTORY]))


def _history(service: Service, call: Call[HistoryParameters]) -> Answer:
    given, pinned = call.parameters, call.pinned
    if pinned is not None:
        require_known(pinned, given.project)
    catalog = service.require_catalog() if pinned is None else pinned.catalog
    entries, complete = _read(catalog, given.project)
    shown = [_entry(one) for one in entries if given.all or one.kind != Action.IGNORED]
    if pinned is None:
        return Answer(to_json(Results[HistoryEntry](serial=complete, results=shown)), serial=complete)
    # a visit changes nothing, and can come at any time; so it is no part of what stays as it is
    past = [one for one in shown if one["serial"] <= pinned.serial and one["kind"] != VISIT]
    return past_answer(pinned, results_at(pinned, past))


def _read(catalog: Catalog, name: str) -> tuple[list[Entry], int]:
    with catalog.read() as connection:
        project = find_project(connection, name)
        if project is not None:
            return read_history(connection, project), complete_serial(connection)
    raise not_found(
        f"there is no project {name}, and none is known to have been",
        hints=list(past_project_hints(catalog, name)),
        parameter="project",
    )


def _entry(entry: Entry) -> HistoryEntry:
    shown = asdict(entry) | {"at": utc_text(entry.at), "not_before": utc_text(entry.not_before)}
    return cast("HistoryEntry", shown)


HISTORY = Operation(
    path="/v1/projects/{project}/history",
    handler=_history,
    summary="What happened to a project, by serial",
    description="It needs a catalog. At an earlier serial it is what had happened by then, without visits.",
    parameters=HistoryParameters,
    answer=Results[HistoryEntry],
    problems=(404,),
)
