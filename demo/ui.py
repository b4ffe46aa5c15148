"""Dagster's UI with the demo's data: `make ui`.

It serves the demo's index, and runs `pypi-assets up` with its data until Ctrl-C. The sensors are on and poll every 10
seconds, so a new upload is followed automatically. If PYPI_ASSETS_INDEXES names several indexes, each is a code
location.
"""

import os
import signal
import sys
import threading
import zipfile
from pathlib import Path

from folders import DEMO, INDEX, ROOT, environment, free_port, index_url, is_free, remembered_port
from pages import SERVICE_PORT
from pages import stop as stop_pages
from processes import answers, has_ended, started
from rich.console import Console

UI_PORT = 3000
METRICS_PORT = 9464

console = Console()


def main() -> int:
    port = remembered_port()
    if port is None or not INDEX.is_dir():
        console.print("There is no data yet: run `make demo` first.")
        return 1
    stop_pages()
    if not is_free(port):
        console.print(
            f"The demo's index has the port {port}, which is in use; stop `make ui`, or run `make demo` again."
        )
        return 1
    wheel = new_wheel(DEMO / "uploads")
    ui_port = UI_PORT if is_free(UI_PORT) else free_port()
    service_port = SERVICE_PORT if is_free(SERVICE_PORT) else free_port()
    metrics_port = METRICS_PORT if is_free(METRICS_PORT) else free_port()
    settings = environment(port) | {"PYPI_ASSETS_SENSOR_INTERVAL_S": "10"}
    if indexes := os.environ.get("PYPI_ASSETS_INDEXES"):
        settings["PYPI_ASSETS_INDEXES"] = str(Path(indexes).expanduser().absolute())
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    program = f"{sys.prefix}/bin/pypi-assets"
    commands = {
        "devindex": [program, "devindex", "serve", str(INDEX), "--port", str(port)],
        "up": [
            *(program, "up", "--no-follower", "--ui-port", str(ui_port)),
            *("--port", str(service_port), "--metrics-port", str(metrics_port)),
        ],
    }
    with started(commands, settings) as processes:
        console.print("starting ...")
        url = f"http://127.0.0.1:{ui_port}"
        while not stop.wait(0.5) and not answers(f"{url}/server_info"):
            if has_ended(processes):
                return 1
        if not stop.is_set():
            welcome(url, port, service_port, wheel)
        while not stop.wait(1):
            if has_ended(processes):
                return 1
    console.print("stopped")
    return 0


def new_wheel(folder: Path) -> Path:
    """Create a small wheel that is not on the index yet, for a manual upload."""
    folder.mkdir(parents=True, exist_ok=True)
    version = 1 + sum(1 for _ in folder.glob("*.whl"))
    path = folder / f"hello_assets-{version}.0-py3-none-any.whl"
    info = f"hello_assets-{version}.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("hello_assets/__init__.py", "")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: hello-assets\nVersion: {version}.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: demo\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


def welcome(url: str, port: int, service_port: int, wheel: Path) -> None:
    console.print(
        f"\n[bold]Dagster's UI:[/bold] {url}   (assets: {url}/asset-groups)"
        f"\n[bold]The pages:[/bold]    http://127.0.0.1:{service_port}/   (the API: http://127.0.0.1:{service_port}/docs)"
        f"\n[bold]The index:[/bold]    {index_url(port)}"
        "\n\nUpload one more wheel from another terminal, and look it up a minute later:\n"
        "\n  . demo/env"
        f"\n  pypi-assets devindex add .demo/index {wheel.relative_to(ROOT)}"
        "\n  pypi-assets lookup module hello_assets"
        "\n\nTheir logs are in .demo/data/stack/logs, .demo/up.log and .demo/devindex.log. Ctrl-C stops all.",
        highlight=False,
        soft_wrap=True,
    )


if __name__ == "__main__":
    sys.exit(main())
