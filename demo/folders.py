"""The folders of the demo, and the environment in which it runs."""

import json
import os
import shlex
import socket
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DEMO = ROOT / ".demo"
DOWNLOADS = DEMO / "downloads"
INDEX = DEMO / "index"
DATA = DEMO / "data"
DAGSTER_HOME = DEMO / "dagster"
STATE = DEMO / "state.json"


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def index_url(port: int) -> str:
    return f"http://127.0.0.1:{port}/simple/"


def read_state() -> dict[str, Any]:
    """Return the stored state of the demo: `index_port`, and `run` and `service_port` of pages in the background."""
    try:
        found = json.loads(STATE.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_state(state: dict[str, Any]) -> None:
    """Replace the stored state atomically, since a process in the background can read it at any time."""
    new = STATE.with_suffix(".new")
    new.write_text(json.dumps(state))
    new.replace(STATE)


def remember_port(port: int) -> None:
    """Store the port of the index. It is part of the index URL, and the catalog follows one URL."""
    write_state({"index_port": port})


def remembered_port() -> int | None:
    return read_state().get("index_port")


def remember_pages(run: str, port: int) -> None:
    """Store the process that serves pages in the background, and its port."""
    write_state(read_state() | {"run": run, "service_port": port})


def forget_pages() -> None:
    """End the process that serves pages in the background, which watches for its `run` in the state."""
    state = read_state()
    if "run" in state:
        write_state({name: value for name, value in state.items() if name not in {"run", "service_port"}})


def environment(port: int) -> dict[str, str]:
    """Return the environment with the settings of the demo, and without the user's own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYPI_ASSETS_")}
    return kept | {
        "DAGSTER_HOME": str(DAGSTER_HOME),
        "PYPI_ASSETS_ENV_FILE": os.devnull,
        "PYPI_ASSETS_HOME": str(DATA),
        "PYPI_ASSETS_INDEX_URL": index_url(port),
        "PYPI_ASSETS_REQUESTS_PER_SECOND": "1000",
        "PYTHONWARNINGS": "ignore",
    }


if __name__ == "__main__":  # demo/env evaluates the output
    port = remembered_port()
    if port is None:
        raise SystemExit("run `make demo` first")
    settings = {
        name: value for name, value in environment(port).items() if name.startswith(("PYPI_ASSETS_", "DAGSTER_"))
    }
    settings["PATH"] = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    for name, value in settings.items():
        print(f"export {name}={shlex.quote(value)}")
    before = {name: os.environ.get(name) for name in settings}
    undone = [
        f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}" for name, value in before.items()
    ]
    print(f"leave_demo() {{ {'; '.join(undone)}; unset -f leave_demo; }}")
