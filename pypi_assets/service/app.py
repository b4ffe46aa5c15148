"""The ASGI application: the routes of all modules, and the middleware that every request passes."""

import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from types import FrameType

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route

from pypi_assets.logs import set_up_logs
from pypi_assets.service import (
    changes,
    completions,
    feeds,
    health_routes,
    mirror_methods,
    openapi,
    project_documents,
    questions,
    queue_routes,
    simple,
    simple_files,
    solvability,
    visit_routes,
)
from pypi_assets.service.log_streams import BackgroundStream, log_in_background
from pypi_assets.service.middleware import LimitMiddleware, RequestMiddleware, answer_routing_error
from pypi_assets.service.monitoring import AccessLog, missing_requests, note_state
from pypi_assets.service.operations import Endpoint, Operation, operation_routes
from pypi_assets.service.pages import home
from pypi_assets.service.service import Service, open_service
from pypi_assets.settings import load_settings

_log = logging.getLogger(__name__)
ADDRESS_VARIABLE = "SERVICE_LISTENS_AT"
"""The environment variable with the URL at which `serve` listens. The worker processes read it."""
_OBJECTS_BETWEEN_COLLECTIONS = 10_000
"""The requests of one moment need more objects than Python's own threshold of 700, and few of these form cycles."""


def _operations() -> Iterator[Operation]:
    """Yield all operations except the two that describe the others."""
    yield from questions.all_operations()  # the most requested routes first
    for module in (
        health_routes,
        queue_routes,
        completions,
        solvability,
        simple,
        simple_files,
        project_documents,
    ):
        yield from module.OPERATIONS
    yield from changes.OPERATIONS
    yield from (*mirror_methods.OPERATIONS, *feeds.OPERATIONS)
    yield from visit_routes.OPERATIONS
    yield from home.operations()


def create_app(service: Service | None = None) -> Starlette:
    """Return the application of `service`, or of a new service by the settings, which also writes an access log.

    The service is closed when the application stops.
    """
    log = None
    if service is None:
        set_up_logs()
        log_in_background()
        _end_with_parent()
        service, log = open_service(load_settings()), AccessLog(BackgroundStream(sys.stdout.fileno(), missing_requests))
        service.address = os.environ.get(ADDRESS_VARIABLE, service.address)
    routes = sorted(operation_routes(service, _operations()), key=_parameters)
    routes += openapi.routes(service, lambda: routes)
    app = Starlette(
        routes=sorted(routes, key=_is_no_point_lookup),  # the most requested ones, which no other route matches
        middleware=[Middleware(RequestMiddleware, service, log), Middleware(LimitMiddleware, service)],
        exception_handlers={HTTPException: answer_routing_error},
        lifespan=partial(_following, service, log),
    )
    app.router.redirect_slashes = False
    return app


def _parameters(route: Route) -> tuple[int, int]:
    """Return a sort key: the numbers of parameters in the route.

    The first matching route answers a request, so routes with fewer parameters must come first.
    """
    return route.path.count(":path}"), route.path.count("{")


def _is_no_point_lookup(route: BaseRoute) -> bool:
    endpoint = route.endpoint if isinstance(route, Route) else None
    return not isinstance(endpoint, Endpoint) or endpoint.operation.few is None


@asynccontextmanager
async def _following(service: Service, log: AccessLog | None, _app: object) -> AsyncIterator[None]:
    service.follow_in_background(note_state)
    restore = _stop_on_signals(service)
    gc.collect()
    gc.freeze()  # else collections would scan all loaded code, and delay requests
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    yield
    restore()
    service.close()
    if log is not None:
        log.write()


def _stop_on_signals(service: Service) -> Callable[[], None]:
    """Make signals also end the streams of changes, and return a function that undoes this.

    The server waits for all answers before it stops, and these streams never end by themselves.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, frame: FrameType | None) -> None:
        service.stop()
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in before:
        signal.signal(number, stop)
    return restore


def _end_with_parent() -> None:
    """Stop this process as SIGTERM does when its parent process ends: a killed parent cannot stop its workers."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        _log.warning("the parent process has ended: this worker finishes its answers and stops")
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()
