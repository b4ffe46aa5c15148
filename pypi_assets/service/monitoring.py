"""Records of requests: metrics for Prometheus, summed over all processes, and the access log.

The log has one line of JSON for each request, in the format of `logs.py`, without characters that control a terminal.
It contains no query strings, cookies or credentials. Lines are written in batches, several times a second.
"""

import asyncio
import os
import time
from functools import cache, lru_cache
from io import TextIOBase
from json.encoder import encode_basestring_ascii
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from starlette.types import Scope

from pypi_assets.service.service import Service
from pypi_assets.times import utc_text

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable with the folder in which several processes share their metrics.

It must be set before this module is imported.
"""
_EVERY_S = 0.2
_MOST_WAITING = 10_000
_LONGEST_PATH, _LONGEST_AGENT = 500, 200
LOGGER = "pypi_assets.access"
_text = encode_basestring_ascii
"""Return a JSON string with only ASCII characters."""
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
    "The serial of the datasets that answers come from: the minimum over all processes.",
    registry=_REGISTRY,
    multiprocess_mode="livemin",
)
FOLLOWING = Gauge(
    "pypi_assets_service_reachable",
    "1 if the part (storage or catalog) answered at the last poll, else 0: the minimum over all processes.",
    ("part",),
    registry=_REGISTRY,
    multiprocess_mode="livemin",
)
CLIENTS_LEFT = Counter(
    "pypi_assets_service_slow_clients", "Streams closed because the client stopped reading.", registry=_REGISTRY
)


@cache
def _counter(route: str, status: int) -> Counter:
    return REQUESTS.labels(route, str(status))


@cache
def _histogram(route: str) -> Histogram:
    return SECONDS.labels(route)


def count(route: str, status: int, seconds: float) -> None:
    """Count a request that was answered with `status` after `seconds`."""
    _counter(route, status).inc()
    _histogram(route).observe(seconds)


def metrics_text(service: Service) -> tuple[bytes, str]:
    """Return the metrics and their media type."""
    note_state(service)
    registry = _REGISTRY
    if FOLDER_VARIABLE in os.environ:
        _forget_ended(Path(os.environ[FOLDER_VARIABLE]))
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry), CONTENT_TYPE_LATEST


def _forget_ended(folder: Path) -> None:
    """Delete the gauges of processes that have ended. Their counters stay."""
    for path in folder.glob("gauge_live*_*.db"):
        process = int(path.stem.rpartition("_")[2])
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            mark_process_dead(process, str(folder))  # type: ignore[no-untyped-call]


def note_state(service: Service) -> None:
    """Set the gauges of this process. Another process may serve them."""
    SERIAL.set(service.serial)
    for part in ("storage", "catalog"):
        FOLLOWING.labels(part).set(part not in service.problems)


@lru_cache(maxsize=4)
def _time_text(seconds: int) -> str:
    return str(utc_text(seconds))


def _begin(level: str) -> str:
    """Return the beginning of a JSON line, up to the message."""
    return f'{{"time": "{_time_text(int(time.time()))}", "level": "{level}", "logger": "{LOGGER}", "message": '


def missing_requests(count: int) -> str:
    """Return the line of the access log that stands for dropped lines."""
    text = _text(f"{count} requests are missing from this log")
    return f'{_begin("WARNING")}{text}, "left_out": {count}}}\n'


class AccessLog:
    """Writes the access log to `stream`. If it cannot keep up, lines are counted and dropped."""

    def __init__(self, stream: TextIOBase) -> None:
        self._stream = stream
        self._lines: list[str] = []
        self._left_out = 0
        self._is_due = False

    def add(self, scope: Scope, status: int, sent_bytes: int, seconds: float) -> None:
        """Log a request that was answered. Status 0 means that the client disconnected before."""
        if len(self._lines) >= _MOST_WAITING:
            self._left_out += 1
            return
        client, agent = scope.get("client"), scope["pypi_assets.headers"].get("user-agent", "")
        method, path = scope["method"], scope["path"][:_LONGEST_PATH]
        self._lines.append(
            f'{_begin("INFO")}{_text(f"{method} {path} {status}")}, "request_id": "{scope["pypi_assets.request_id"]}",'
            f' "client": {_text(client[0]) if client else "null"}, "method": {_text(method)}, "path": {_text(path)},'
            f' "route": {_text(scope["pypi_assets.route"])}, "status": {status}, "bytes": {sent_bytes}, "ms":'
            f' {seconds * 1_000:.2f}, "agent": {_text(agent[:_LONGEST_AGENT])}}}'
        )
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(_EVERY_S, self.write)

    def write(self) -> None:
        """Write the waiting lines."""
        self._is_due = False
        lines, self._lines = self._lines, []
        if self._left_out:
            lines.append(missing_requests(self._left_out).rstrip("\n"))
            self._left_out = 0
        self._stream.write("".join(f"{line}\n" for line in lines))
        self._stream.flush()
