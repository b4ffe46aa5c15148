"""Run the service under uvicorn: in one process, or in several that share a listening socket."""

import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from pypi_assets.service.app import ADDRESS_VARIABLE, create_app
from pypi_assets.service.monitoring import FOLDER_VARIABLE
from pypi_assets.service.service import Service
from pypi_assets.settings import Settings, load_settings

_APP = "pypi_assets.service.app:create_app"
_BACKLOG = 2_048
_KEEP_ALIVE_S = 15
GRACE_S = 30
"""How long the service may take to finish running answers when it stops."""
_START_S = 30
"""The time after which a supervisor replaces a worker that does not respond, also while it starts.

On a busy machine, starting takes longer than uvicorn's default of 5 seconds.
"""


def serve(host: str, port: int, workers: int, *, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM, then finish the running answers. Port 0 means any free port.

    Each of the `workers` reads the settings from the environment. Several workers are separate processes, and one that
    dies is replaced. `ready` is called with the URL once the port is bound. Raises OSError if it cannot be bound.
    """
    with _listener(host, port) as listener, tempfile.TemporaryDirectory(prefix="pypi-assets-service-") as folder:
        config = _config(_APP, load_settings(), factory=True, workers=workers, lifespan="on")
        os.environ[ADDRESS_VARIABLE] = _local_url(host, listener)
        ready(_url(host, listener))
        if workers > 1:
            os.environ[FOLDER_VARIABLE] = folder
            Multiprocess(config, sockets=[listener]).run()
        else:
            uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def running(service: Service, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve from a thread of this process while the context lasts. Yield the URL, which ends in a slash."""
    server = uvicorn.Server(_config(create_app(service), service.settings, lifespan="off"))
    with _listener(host, port) as listener:
        service.address = _local_url(host, listener)
        thread = threading.Thread(target=server.run, args=([listener],), name="service")
        thread.start()
        try:
            yield _url(host, listener)
        finally:
            service.stop()
            server.should_exit = True
            thread.join()


def _config(app: Any, settings: Settings, **options: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="httptools",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        ws="none",
        limit_concurrency=settings.service_max_connections + 1,  # plus the connection that exceeds the limit
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        timeout_worker_healthcheck=_START_S,
        **options,
    )


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (TypeError, UnicodeError):
        raise OSError("this is not a valid host name") from None


def _local_url(host: str, listener: socket.socket) -> str:
    """Return the URL for clients on this machine: loopback if the service listens on all addresses."""
    if not host:
        return _url("127.0.0.1", listener)
    try:
        address = ip_address(host)
    except ValueError:
        return _url(host, listener)
    loopback = "127.0.0.1" if address.version == 4 else "::1"
    return _url(loopback if address.is_unspecified else host, listener)


def _url(host: str, listener: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}/"
