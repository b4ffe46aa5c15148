"""A home written by a release, with the index that it follows and the answers of that release.

`make release` records one for each release in `homes/`. Later versions must upgrade it, give the same answers, and
continue to follow the same index. The archive contains `index/` (a folder of devindex), `home/` and `answers.json`.
"""

import json
import os
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import running
from pypi_assets_tests.builders import make_sdist, make_wheel

HOMES = Path(__file__).parent / "homes"
INDEX_URL = "http://index.example/simple/"
"""The URL that the home belongs to. Requests reach the served index because it is configured as the proxy."""

QUESTIONS = (
    "lookup module alpha --json",
    "lookup module alpha.tools --json",
    "lookup dependents beta --json",
    "lookup dependents beta --latest --transitive --json",
    "lookup release alpha==1.1 --json",
    "lookup releases beta --json",
    "lookup project gamma --json",
    "lookup command alpha-run --json",
    "lookup page beta --json",
    "history beta --json",
    "history gamma --json",
    "owners alpha --json",
    "resolve alpha --json",
)
"""Commands that are run for the newest serial, and with `--at` for earlier ones."""

CURRENT_ONLY = frozenset({"lookup command alpha-run --json", "owners alpha --json"})
"""The questions that the catalog does not answer for an earlier serial."""

CHECKS = ("leveldb verify --deep", "journal verify")
"""Commands that exit with 0 if the published files are intact."""


PROGRAM = """
import contextlib, io, json, sys
from pypi_assets.cli import main
for line in sys.stdin:
    sys.argv = ["pypi-assets", *line.split()]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            main()
        except SystemExit as exit:
            if exit.code:
                sys.exit(f"{line.strip()} exited with {exit.code}: {printed.getvalue()}")
    print(json.dumps(printed.getvalue()), flush=True)
"""
"""Runs a command for each line of its input, in one process, since each new process would take a second to start."""


@dataclass(frozen=True)
class RecordedHome:
    """A home and its index in `folder`, and the interpreter of the environment in which pypi-assets is installed."""

    folder: Path
    python: Path
    environment: Mapping[str, str]

    def run(self, *commands: str) -> list[str]:
        """Return the output of each command. Raise AssertionError with all messages if a command fails."""
        done = subprocess.run(
            [self.python, "-c", PROGRAM],
            input="\n".join(commands),
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def answers(self, serials: Sequence[int]) -> dict[str, str]:
        """Return the answer to each question: the newest one, and the one at each of the serials."""
        past = [f"{question} --at {at}" for at in serials for question in QUESTIONS if question not in CURRENT_ONLY]
        questions = (*QUESTIONS, *past)
        return dict(zip(questions, self.run(*questions), strict=True))

    def update(self) -> None:
        """Follow the index to its last serial, and publish the result."""
        self.run("crawl incremental", "dump incremental", "leveldb update", "journal write")


@contextmanager
def opened(folder: Path, python: Path) -> Iterator[RecordedHome]:
    """Serve the index of `folder`, and set the environment for a home that follows it."""
    (folder / "index").mkdir(exist_ok=True)
    with running(folder / "index") as url:
        settings = {
            "HOME": folder / "home",
            "INDEX_URL": INDEX_URL,
            "PROXY": f"http://{urlsplit(url).netloc}",
            "CONTACT": "tests@example.org",
            "ENV_FILE": os.devnull,
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYPI_ASSETS_")}
        yield RecordedHome(
            folder, python, kept | {f"PYPI_ASSETS_{name}": str(value) for name, value in settings.items()}
        )


def record(archive: Path, folder: Path, python: Path) -> None:
    """Make a home in the empty `folder` with the release that is installed for `python`, and pack it into `archive`."""
    files = folder / "built"
    files.mkdir(parents=True)
    history = History(folder / "index")
    serials: list[int] = []

    def upload(path: Path, day: int) -> None:
        history.add(path, at=datetime(2026, 1, day, tzinfo=UTC))

    upload(
        make_wheel(
            files,
            "alpha",
            "1.0",
            files={"alpha/__init__.py": "", "alpha/tools.py": ""},
            requires_dist=["beta>=1,<2", 'gamma; extra == "more"'],
            provides_extra=["more"],
            entry_points="[console_scripts]\nalpha-run = alpha.tools:main\n",
        ),
        1,
    )
    upload(make_wheel(files, "beta", "1.0", requires_python=">=3.8"), 2)
    upload(make_sdist(files, "gamma", "0.5", requires_dist=["beta"]), 3)
    with opened(folder, python) as home:
        home.run("crawl full", "dump full --shards 1", "leveldb update", "journal write")
        serials.append(history.state().last_serial or 0)
        upload(make_wheel(files, "beta", "1.1"), 4)
        history.yank("beta", "1.0", reason="wrong metadata", at=datetime(2026, 1, 5, tzinfo=UTC))
        home.update()
        serials.append(history.state().last_serial or 0)
        upload(make_wheel(files, "alpha", "1.1", requires_dist=["beta>=1.1"]), 6)
        history.remove_project("gamma", at=datetime(2026, 1, 7, tzinfo=UTC))
        home.update()
        recorded = {"serials": serials, "answers": home.answers(serials)}
    (folder / "answers.json").write_text(json.dumps(recorded, indent=1))
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:gz") as packed:
        for name in ("answers.json", "home", "index"):
            packed.add(folder / name, name)


def unpack(archive: Path, folder: Path) -> tuple[list[int], dict[str, str]]:
    """Unpack a recorded home. Return the earlier serials of its questions, and the recorded answers."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    recorded = json.loads((folder / "answers.json").read_text())
    return recorded["serials"], recorded["answers"]
