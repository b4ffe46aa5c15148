"""Serve the demo's index, and pages with its data, in the background until `make stop`.

The background process ends when `.demo/state.json` no longer names it: because it was stopped, because
another one was started, or because `.demo` was deleted. So no process is ever killed by a stored process ID.
"""

import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

from folders import INDEX, environment, forget_pages, free_port, is_free, read_state, remember_pages, remembered_port
from processes import STOP_WITHIN_S, answers, has_ended, log_of, started

SERVICE_PORT = 8642
STARTED_WITHIN_S = 60
AT_MOST_S = 8 * 3600
"""The longest time for which pages are served."""


def start() -> str:
    """Start the processes, and return the address of the first page when it answers. Raises SystemExit."""
    stop()
    port = SERVICE_PORT if is_free(SERVICE_PORT) else free_port()
    run = secrets.token_hex(8)
    remember_pages(run, port)
    with log_of("pages").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "serve", run],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + STARTED_WITHIN_S
    while not answers(f"{url}/healthz"):
        if process.poll() is not None or time.monotonic() > deadline:
            forget_pages()
            raise SystemExit(f"the pages could not be served: see {log_of('pages')} and {log_of('service')}")
        time.sleep(0.1)
    return f"{url}/"


def stop() -> bool:
    """End the processes in the background, and wait for their end; return whether there were any."""
    port = read_state().get("service_port")
    forget_pages()
    if port is None or is_free(int(port)):
        return False
    deadline = time.monotonic() + 2 * STOP_WITHIN_S
    while not (is_free(int(port)) and is_free(remembered_port() or int(port))):
        if time.monotonic() > deadline:
            raise SystemExit(f"the pages at port {port} did not end: see {log_of('pages')}")
        time.sleep(0.1)
    return True


def serve(run: str) -> int:
    """Serve the index and the pages until the state no longer names this run."""
    state, program = read_state(), f"{sys.prefix}/bin/pypi-assets"
    index_port, deadline = str(state["index_port"]), time.monotonic() + AT_MOST_S
    commands = {
        "devindex": [program, "devindex", "serve", str(INDEX), "--port", index_port],
        "service": [program, "serve", "--port", str(state["service_port"])],
    }
    with started(commands, environment(int(index_port))) as processes:
        while read_state().get("run") == run and time.monotonic() < deadline:
            if has_ended(processes):
                return 1
            time.sleep(0.3)
    return 0


if __name__ == "__main__":
    os.chdir("/")  # the folder in which it was started may be deleted
    match sys.argv[1:]:
        case ["serve", run]:
            sys.exit(serve(run))
        case ["stop"]:
            print("stopped" if stop() else "no pages are served in the background")
        case _:
            sys.exit("usage: pages.py stop")
