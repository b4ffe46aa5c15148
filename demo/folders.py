"""The folders of the demo, and the environment in which it runs."""

import json
import os
import shlex
import socket
from pathlib import Path

ROOT = Path(__file__).parent.parent
DEMO = ROOT / ".demo"
DOWNLOADS = DEMO / "downloads"
INDEX = DEMO / "index"
DATA = DEMO / "data"
DAGSTER_HOME = DEMO / "dagster"
STATE = DEMO / "state.json"


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def index_url(port: int) -> str:
    return f"http://127.0.0.1:{port}/simple/"


def remember_port(port: int) -> None:
    """Stores the port of the index. It is part of the index URL, and the catalog follows one URL."""
    STATE.write_text(json.dumps({"index_port": port}))


def remembered_port() -> int | None:
    try:
        return int(json.loads(STATE.read_text())["index_port"])
    except (OSError, ValueError, KeyError):
        return None


def environment(port: int) -> dict[str, str]:
    """The environment with the settings of the demo, and without the user's own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYPI_ASSETS_")}
    return kept | {
        "DAGSTER_HOME": str(DAGSTER_HOME),
        "PYPI_ASSETS_ENV_FILE": os.devnull,
        "PYPI_ASSETS_HOME": str(DATA),
        "PYPI_ASSETS_INDEX_URL": index_url(port),
        "PYPI_ASSETS_REQUESTS_PER_SECOND": "1000",
        "PYTHONWARNINGS": "ignore",
    }


if __name__ == "__main__":  # what demo/env evaluates
    port = remembered_port()
    if port is None:
        raise SystemExit("run `make demo` first")
    settings = {
        name: value for name, value in environment(port).items() if name.startswith(("PYPI_ASSETS_", "DAGSTER_"))
    }
    for name, value in settings.items():
        print(f"export {name}={shlex.quote(value)}")
    print(f"export PATH={shlex.quote(str(ROOT / '.venv' / 'bin'))}:$PATH")
