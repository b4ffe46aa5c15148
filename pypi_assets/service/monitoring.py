"""What the service measures of itself, for Prometheus: of all its processes together where there are several."""

import os
from functools import cache
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from pypi_assets.service.service import Service

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Names a folder in which several processes keep their numbers. It is set before this module is imported."""
_REGISTRY = CollectorRegistry()
REQUESTS = Counter(
    "pypi_assets_service_requests", "Answers by route and status.", ("route", "status"), registry=_REGISTRY
)
SECONDS = Histogram(
    "pypi_assets_service_request_seconds",
    "Seconds until an answer was written, by route.",
    ("route",),
    registry=_REGISTRY,
    buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60),
)
OPEN = Gauge(
    "pypi_assets_service_open_requests",
    "Requests that are being answered.",
    registry=_REGISTRY,
    multiprocess_mode="livesum",
)
SERIAL = Gauge(
    "pypi_assets_service_serial",
    "The serial of the datasets that answers come from: the least of all processes.",
    registry=_REGISTRY,
    multiprocess_mode="livemin",
)
FOLLOWING = Gauge(
    "pypi_assets_service_reachable",
    "Whether the part answered when it was followed last: the least of all processes.",
    ("part",),
    registry=_REGISTRY,
    multiprocess_mode="livemin",
)
CLIENTS_LEFT = Counter(
    "pypi_assets_service_slow_clients", "Streams that ended since the client took nothing more.", registry=_REGISTRY
)


@cache
def _counter(route: str, status: int) -> Counter:
    return REQUESTS.labels(route, str(status))


@cache
def _histogram(route: str) -> Histogram:
    return SECONDS.labels(route)


def count(route: str, status: int, seconds: float) -> None:
    """Counts a request that was answered by `status`, after `seconds`."""
    _counter(route, status).inc()
    _histogram(route).observe(seconds)


def metrics_text(service: Service) -> tuple[bytes, str]:
    """The metrics, and their media type."""
    note_state(service)
    registry = _REGISTRY
    if FOLDER_VARIABLE in os.environ:
        _forget_ended(Path(os.environ[FOLDER_VARIABLE]))
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry), CONTENT_TYPE_LATEST


def _forget_ended(folder: Path) -> None:
    """Removes what processes that have ended measured of themselves alone; what they counted stays."""
    for path in folder.glob("gauge_live*_*.db"):
        process = int(path.stem.rpartition("_")[2])
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            mark_process_dead(process, str(folder))  # type: ignore[no-untyped-call]


def note_state(service: Service) -> None:
    """Takes over how far this process has come: also where another process answers what is measured of all."""
    SERIAL.set(service.serial)
    for part in ("storage", "catalog"):
        FOLLOWING.labels(part).set(part not in service.problems)
