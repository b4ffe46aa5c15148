"""The route of the next visits, as the command `pypi-assets queue` shows them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from pypi_assets.catalog.reports.next_visits import NextVisitResult, next_visits, next_visits_of, result_of
from pypi_assets.service.operations import Call, Operation
from pypi_assets.service.parameters import OperationParameters, ProjectName
from pypi_assets.service.problems import not_found
from pypi_assets.service.responses import Lasting, WholeAnswer, to_json
from pypi_assets.service.service import Service

MOST_VISITS, DEFAULT_VISITS = 1_000, 20


class QueueParameters(OperationParameters, frozen=True):
    """The number of visits, and the project."""

    limit: Annotated[int, Meta(ge=1, le=MOST_VISITS, description=f"visits: 1 to {MOST_VISITS}")] = DEFAULT_VISITS
    project: ProjectName | None = None


class NextVisits(msgspec.Struct, frozen=True, kw_only=True):
    """The next visits, and the name of the policy that orders them."""

    policy: str
    visits: tuple[NextVisitResult, ...]


def _queue(service: Service, call: Call[QueueParameters]) -> WholeAnswer:
    catalog, project = service.require_catalog(), call.parameters.project
    with catalog.read() as connection:
        limit = call.parameters.limit
        found = next_visits(connection, limit) if project is None else next_visits_of(connection, project)
    if found is None:
        raise not_found(f"the catalog has no project {project}", parameter="project")
    shown = tuple(result_of(visit) for visit in found[:limit])
    return WholeAnswer(to_json(NextVisits(policy=catalog.visit_policy.name, visits=shown)), lasting=Lasting.NO_STORE)


QUEUE = Operation(
    path="/v1/queue",
    handler=_queue,
    summary="Show which projects are visited next, and why",
    description="Each workload has places of its own. A planned visit is not queued yet: the next round chooses it.",
    parameters=QueueParameters,
    answer=NextVisits,
    problems=(404,),
    tag="service",
    at_serial=False,
)
OPERATIONS = (QUEUE,)
