"""Measure the time from a requirements.txt to the first answer, and the requests that this sends to the index.

It downloads ten projects with their requirements, some of them also in an older version, serves the files as a package
index on this machine, and follows the requirements with a scope: catalog, dump, LevelDB, answer. The first line does
the same with a full crawl of this index.

    python -m benchmarks.scope_first_answer
    python -m benchmarks.scope_first_answer --files FOLDER --roots REQUIREMENT ... --modules MODULE ...

The second form downloads nothing: it serves the wheels in FOLDER, and follows these requirements until it has looked up
these modules.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from starlette.requests import Request

from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import running

ROOTS = (
    "click==8.1.8",
    "fastapi==0.115.12",
    "flask==3.1.1",
    "httpx==0.28.1",
    "jinja2==3.1.6",
    "requests==2.32.3",
    "rich==14.0.0",
    "sqlalchemy==2.0.41",
    "typer==0.15.4",
    "uvicorn==0.34.2",
)
OLDER = (
    *("anyio==4.8.0", "certifi==2025.1.31", "click==8.1.7", "fastapi==0.115.0", "flask==3.0.3", "h11==0.14.0"),
    *("httpx==0.27.2", "idna==3.7", "jinja2==3.1.5", "markupsafe==2.1.5", "pydantic==2.11.3", "pygments==2.18.0"),
    *("requests==2.31.0", "rich==13.9.4", "sniffio==1.3.0", "sqlalchemy==2.0.40", "starlette==0.45.3"),
    *(
        "annotated-types==0.6.0",
        "blinker==1.8.2",
        "charset-normalizer==3.4.0",
        "httpcore==1.0.7",
        "itsdangerous==2.1.2",
    ),
    *("markdown-it-py==2.2.0", "mdurl==0.1.1", "pydantic-core==2.27.2", "shellingham==1.5.3", "greenlet==3.1.1"),
    *("typer==0.15.1", "typing-extensions==4.12.2", "urllib3==2.3.0", "uvicorn==0.34.0", "werkzeug==3.1.2"),
)
OTHERS = ("attrs==25.3.0", "toolz==1.0.0", "tqdm==4.67.1", "pyyaml==6.0.2", "zope.interface==7.2")
"""Projects that no project in the closure requires."""
LISTS_TO_DETECT = 1
"""Detecting the kind of the index reads the headers of its list of projects; a scope never reads the list itself."""
MODULES = ("starlette.routing", "markupsafe", "h11", "pydantic_core", "flask")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path)
    parser.add_argument("--roots", nargs="+", default=ROOTS)
    parser.add_argument("--modules", nargs="+", default=MODULES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = sorted(options.files.glob("*.whl")) if options.files else _download(Path(folder) / "files")
        rows = [
            _measured(Path(folder), files, name, options.roots, options.modules) for name in ("full crawl", "scope")
        ]
    print(
        "| | projects | files | requests | of the list of projects | seconds | ratio |\n|---|---|---|---|---|---|---|"
    )
    for name, found in rows:
        counts = " | ".join(f"{found[key]}" for key in ("projects", "files", "requests", "lists"))
        print(f"| {name} | {counts} | {found['seconds']:.1f} | {found['seconds'] / rows[0][1]['seconds']:.2f} |")
    scope = rows[1][1]
    most = scope["projects"] + 1.3 * scope["files"] + 10
    print(
        f"requests of the scope: {scope['requests']}, at most {most:.0f} expected; of the list:"
        f" {scope['lists']}, at most {LISTS_TO_DETECT} expected"
    )
    return int(scope["requests"] > most or scope["lists"] > LISTS_TO_DETECT)


def _download(folder: Path) -> list[Path]:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download", "--only-binary", ":all:"]
    subprocess.run([*pip, "--dest", folder / "now", *ROOTS], check=True)
    for one in (*OLDER, *OTHERS):
        subprocess.run([*pip, "--no-deps", "--dest", folder / "further", one], check=True)
    return sorted(folder.glob("*/*.whl"))


def _measured(
    folder: Path, files: list[Path], name: str, roots: Sequence[str], modules: Sequence[str]
) -> tuple[str, dict[str, float]]:
    index, home = folder / name / "index", folder / name / "home"
    history = History(index)
    for path in files:
        history.add(path)
    requested: Counter[str] = Counter()

    def count(request: Request) -> None:
        path = request.url.path
        requested["list" if path == "/simple/" else "file" if "/files/" in path else "other"] += 1

    (requirements := folder / "requirements.txt").write_text("\n".join(roots))
    with running(index, faults=count) as url:
        run = _Commands(url, home)
        started = time.monotonic()
        if name == "scope":
            run("scope", "create", "first", "--roots", str(requirements))
            run("scope", "run", "first")
        else:
            run("crawl", "full")
        run("dump", "full")
        run("leveldb", "update")
        answers = [run("lookup", "module", module, "--json") for module in modules]
        seconds = time.monotonic() - started
        live = json.loads(run("lookup", "files", "--json"))
    assert all(json.loads(answer) for answer in answers), answers
    projects = {file["project"] for file in live}
    return name, {
        "projects": len(projects),
        "files": len(live),
        "requests": sum(requested.values()),
        "lists": requested["list"],
        "seconds": seconds,
    }


class _Commands:
    """Runs commands in their own processes, as a person would."""

    def __init__(self, url: str, home: Path) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYPI_ASSETS_", "DAGSTER_"))}
        self._environment = kept | {
            "PYPI_ASSETS_HOME": str(home),
            "PYPI_ASSETS_INDEX_URL": url,
            "PYPI_ASSETS_CONTACT": "benchmark@example.org",
            "PYPI_ASSETS_REQUESTS_PER_SECOND": "1000",
        }
        self._cwd = home.parent

    def __call__(self, *arguments: str) -> str:
        command = [shutil.which("pypi-assets", path=str(Path(sys.executable).parent)) or "pypi-assets", *arguments]
        done = subprocess.run(
            command, env=self._environment, cwd=self._cwd, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
        return done.stdout


if __name__ == "__main__":
    raise SystemExit(main())
