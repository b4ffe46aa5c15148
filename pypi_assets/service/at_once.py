"""Plain requests, answered as soon as their head has arrived: without a task, a thread, or routing.

A plain request is a GET without a body and without conditions, whose answer is remembered, or needs a few reads of
LevelDBs. All others go the way of `front.py`, also what fails here: that reports why. An answer is the same either way.
"""

import resource
import time
from collections.abc import Iterable, Sequence

from starlette.routing import BaseRoute, Route

from pypi_assets.service import measures
from pypi_assets.service.access_log import AccessLog
from pypi_assets.service.answers import Answer, Header, sent_fields
from pypi_assets.service.operations import Endpoint
from pypi_assets.service.request_ids import request_id
from pypi_assets.service.service import Service

_MOMENT_S = 0.002
"""For how long reads may hold up all other requests. If they wait longer, threads read for the next `_PAUSE_S`."""
_PAUSE_S = 1.0
_WATCHED_READS = 10
_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
_LONGEST_BODY = 16 * 1024
"""To compress a longer one takes more than a moment."""
_LONGEST_NAME = 200
_NOT_PLAIN = frozenset(
    {b"content-length", b"transfer-encoding", b"expect", b"upgrade", b"if-none-match", b"if-modified-since"}
)
_OK = b"HTTP/1.1 200 OK\r\n"


class AtOnce:
    """Answers plain requests for one event loop: what `service` remembers, and the operations of `routes` that have a
    `latest`.
    """

    def __init__(self, service: Service, routes: Iterable[BaseRoute], log: AccessLog | None = None) -> None:
        self._service, self._log = service, log
        self._lookups = {
            endpoint.route.rpartition("/")[0].encode(): (endpoint.operation.latest, endpoint.route)
            for route in routes
            if isinstance(route, Route) and isinstance(endpoint := route.endpoint, Endpoint)
            if endpoint.operation.latest is not None and endpoint.route == endpoint.operation.path
        }
        self._reading = _Reading()
        self._shared: tuple[Sequence[Header], bytes] = ((), b"")

    def answer(self, url: bytes, headers: list[Header], shared: Sequence[Header], client: object) -> bytes | None:
        """The response to a GET of HTTP/1.1, or None: it is not plain. `shared` are headers of all responses."""
        began = time.perf_counter()
        fields = dict(headers)
        if len(fields) != len(headers) or b"host" not in fields or not _NOT_PLAIN.isdisjoint(fields):
            return None
        try:
            found = self._found(url, fields, began)
        except Exception:  # noqa: BLE001 - whatever it is, it is found out again where errors become answers
            return None
        if found is None:
            return None
        answer, route, encoding = found
        body, own = answer.wire(encoding)
        of_request = request_id(fields.get(b"x-request-id", b"").decode("latin-1"))
        seconds = time.perf_counter() - began
        measures.count(route, answer.status, seconds)
        if self._log is not None:
            scope = {
                "client": client,
                "method": "GET",
                "path": url.partition(b"?")[0].decode(),
                "pypi_assets.route": route,
                "pypi_assets.request_id": of_request,
                "pypi_assets.headers": {"user-agent": fields.get(b"user-agent", b"").decode("latin-1")},
            }
            self._log.add(scope, answer.status, len(body), seconds)
        if shared is not self._shared[0]:  # the server makes others each second
            self._shared = shared, sent_fields(shared)
        return b"".join((_OK, self._shared[1], b"x-request-id: %b\r\n" % of_request.encode(), own, body))

    def _found(self, url: bytes, fields: dict[bytes, bytes], began: float) -> tuple[Answer, str, str] | None:
        """The answer, its route, and the encoding in which it is sent."""
        path, _, query = url.partition(b"?")
        present = self._service.present
        if present is None or not path.startswith(b"/") or b"%" in path or b"#" in url:
            return None
        target = (path, query, fields.get(b"accept", b"").decode("latin-1"))
        found = self._service.remembered.get(present.id, target)
        if found is None:
            is_whole = not query and b"ndjson" not in fields.get(b"accept", b"").lower()
            found = self._looked_up(path, began) if is_whole else None
            if found is None:
                return None
            self._service.remembered.keep(present.id, target, *found)
        answer, route = found
        if answer.headers or answer.status != 200 or answer.serial is None:
            return None
        encoding = answer.encoding_for(fields.get(b"accept-encoding", b"").decode("latin-1"))
        is_quick = encoding == "identity" or len(answer.body) <= _LONGEST_BODY or answer.has_form(encoding)
        return (answer, route, encoding) if is_quick else None

    def _looked_up(self, path: bytes, began: float) -> tuple[Answer, str] | None:
        start, _, name = path.rpartition(b"/")
        latest, route = self._lookups.get(start, (None, ""))
        if latest is None or not 0 < len(name) <= _LONGEST_NAME or not self._reading.begins(began):
            return None
        answer = latest(self._service, name.decode("ascii"))
        self._reading.ends()
        return None if answer is None else (answer, route)


class _Reading:
    """Whether reads are prompt: the disk answers, and no other thread has the interpreter.

    Only waiting counts, and not what other processes take of the processor. So after a slow read the next ones are
    watched: a thread that waits leaves the processor by itself, and the system counts that.
    """

    def __init__(self) -> None:
        self._paused_until = self._began = 0.0
        self._watched = self._waits = 0

    def begins(self, now: float) -> bool:
        """Returns whether to read now."""
        if now < self._paused_until:
            return False
        self._began = now
        if self._watched:
            self._watched -= 1
            self._waits = _waits_of_this_thread()
        return True

    def ends(self) -> None:
        """Notes how long the read took."""
        now = time.perf_counter()
        if now - self._began <= _MOMENT_S:
            return
        if self._watched and _waits_of_this_thread() > self._waits:
            self._paused_until = now + _PAUSE_S
        self._watched = _WATCHED_READS


def _waits_of_this_thread() -> int:
    return resource.getrusage(_THREAD).ru_nvcsw
