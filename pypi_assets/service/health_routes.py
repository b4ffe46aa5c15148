"""Routes about the service itself: how current its answers are, liveness, readiness, and metrics."""

import time
from collections.abc import Mapping

import msgspec
from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.observed.events import first_event_time, last_event
from pypi_assets.catalog.observed.followed import count_answered
from pypi_assets.catalog.reports.catalog_status import read_followed
from pypi_assets.catalog.reports.moments import first_exact_serial
from pypi_assets.index.urls import redact
from pypi_assets.lookup.published_sets import OpenSet
from pypi_assets.service.monitoring import metrics_text
from pypi_assets.service.operations import Call, Operation
from pypi_assets.service.parameters import NoParameters
from pypi_assets.service.problems import unavailable
from pypi_assets.service.responses import Lasting, WholeAnswer, to_json
from pypi_assets.service.service import Service
from pypi_assets.times import utc_text


class CatalogState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the catalog: complete up to `serial`, with answers at serials from `exact_from` on.

    `index_serial` is the newest serial of the index that the catalog knows. `followed_projects` is null if the whole
    index is followed.
    """

    exact_from: int | None
    serial: int | None
    index_url: str | None
    index_serial: int | None
    followed_projects: int | None


class DatasetsState(msgspec.Struct, frozen=True, kw_only=True):
    """The set of datasets that answers come from, with the version of each dataset."""

    serial: int
    set: str
    published_at: str
    versions: Mapping[str, int]


class ServiceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the service, and the age of its answers.

    `lag_serials` and `lag_seconds` are the distance from the index, as far as the catalog knows it. `lacks_since` is
    the time of the first event that is missing in the answers. `problems` has the reason for each part that does not
    answer now. A missing part is null.
    """

    serial: int | None
    datasets: DatasetsState | None
    catalog: CatalogState | None
    lag_serials: int | None
    lag_seconds: float | None
    lacks_since: str | None
    problems: Mapping[str, str]


class Health(msgspec.Struct, frozen=True):
    """The state of the process."""

    status: str


def _status(service: Service, _call: Call[NoParameters]) -> WholeAnswer:
    present = service.present
    problems = dict(service.problems)
    catalog, lacked = None, None
    try:
        catalog, lacked = _catalog_state(service, None if present is None else present.serial)
    except (CatalogError, SQLAlchemyError):
        problems["catalog"] = "the catalog does not answer"
    serial = present.serial if present else None
    index_serial = catalog.index_serial if catalog else None
    content = ServiceStatus(
        serial=serial,
        datasets=None if present is None else _datasets_state(present),
        catalog=catalog,
        lag_serials=None if serial is None or index_serial is None else max(index_serial - serial, 0),
        lag_seconds=None if catalog is None else 0.0 if lacked is None else max(time.time() - lacked, 0.0),
        lacks_since=utc_text(lacked),
        problems=problems,
    )
    return WholeAnswer(to_json(content), serial=serial, lasting=Lasting.NO_STORE)


def _datasets_state(present: OpenSet) -> DatasetsState:
    return DatasetsState(
        serial=present.serial,
        set=present.id,
        published_at=str(utc_text(present.published.published_at.timestamp())),
        versions=present.published.versions,
    )


def _catalog_state(service: Service, serial: int | None) -> tuple[CatalogState | None, float | None]:
    """Return the state of the catalog, and the time of the first event missing in the answers, in unix seconds."""
    catalog = service.catalog
    if catalog is None:
        return None, None
    with catalog.read() as connection:
        followed, newest = read_followed(connection), last_event(connection)
        lacked = None if serial is None else first_event_time(connection, serial)
        count = None if followed.complete_serial is None else count_answered(connection, followed.complete_serial)
        exact_from = first_exact_serial(connection)
    known = (
        *(followed.complete_serial, followed.listed_serial, followed.observed_serial),
        newest.serial if newest else None,
    )
    state = CatalogState(
        exact_from=exact_from,
        serial=followed.complete_serial,
        index_url=followed.index_url and redact(followed.index_url),
        index_serial=max((one for one in known if one is not None), default=None),
        followed_projects=count,
    )
    return state, lacked


def _healthy(_service: Service, _call: Call[NoParameters]) -> WholeAnswer:
    return WholeAnswer(to_json(Health("alive")), lasting=Lasting.NO_STORE)


def _ready(service: Service, _call: Call[NoParameters]) -> WholeAnswer:
    if service.is_closing:
        raise unavailable("the service is stopping")
    service.datasets()
    return WholeAnswer(to_json(Health("ready")), lasting=Lasting.NO_STORE)


def _metrics(service: Service, _call: Call[NoParameters]) -> WholeAnswer:
    content, media_type = metrics_text(service)
    return WholeAnswer(content, media_type, lasting=Lasting.NO_STORE)


STATUS = Operation(
    path="/v1/status",
    handler=_status,
    summary="Show how current answers are, and what is followed",
    answer=ServiceStatus,
    tag="service",
    at_serial=False,
)
HEALTHY = Operation(
    path="/healthz",
    handler=_healthy,
    summary="Check whether the process answers",
    answer=Health,
    tag="service",
    at_serial=False,
)
READY = Operation(
    path="/readyz",
    handler=_ready,
    summary="Check whether datasets are available to answer from",
    answer=Health,
    tag="service",
    at_serial=False,
)
METRICS = Operation(
    path="/metrics",
    handler=_metrics,
    summary="Metrics of the service for Prometheus",
    media_types=("text/plain",),
    tag="service",
    at_serial=False,
)
OPERATIONS = (STATUS, HEALTHY, READY, METRICS)
