"""Two operators follow one index independently and prove that they saw the same.

    python -m pypi_assets_tests.journal.two_operators [--events 5000] [--seed 1]

An index over real small files has a drawn history of uploads, yanks, removals and quarantines. The first operator
follows it from the beginning. The second operator begins later, splits the serials differently, meets faults of the
index, and its commands are killed with SIGKILL at any moment. At the end, the streams of both are compared, both chains
are verified, and a corrupted byte of the second is detected. A third catalog, replayed only from the first journal,
builds LevelDBs with the same content hashes as the first. Prints a line for each check, and exits with 1 if one fails.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pypi_assets.devindex.devindex_errors import DevIndexError
from pypi_assets.devindex.faults import FaultPlan
from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import running
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.builders import make_sdist, make_wheel
from pypi_assets_tests.journal.written import flip_a_bit

# ruff: noqa: T201 - it prints its results

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
PROJECTS, STEP_EVENTS = 60, 250
_FAULTS = """
fault = [
    {kind = "status", status = 503, rate = 0.02},
    {kind = "reset", rate = 0.02},
    {kind = "truncated", rate = 0.01},
]
"""


@dataclass
class DrawnIndex:
    """An index with random events, one hour apart."""

    history: History
    folder: Path
    random: random.Random
    _live: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _events: int = 0
    _uploads: int = 0

    def happen(self, events: int) -> None:
        """Add at least `events` events."""
        until = self._events + events
        while self._events < until:
            before = self._serial()
            try:
                self._one()
            except DevIndexError:
                continue  # impossible in this state: a quarantined project accepts no file
            self._events += self._serial() - before

    def _serial(self) -> int:
        return self.history.state().last_serial or 0

    def _one(self) -> None:
        at = BEGAN + timedelta(hours=self._events)
        kind = self.random.random()
        if kind < 0.7 or not self._live:
            self._upload(at)
            return
        project, version = self.random.choice(list(self._live))
        history = self.history
        if kind < 0.8:
            history.yank(project, version, self.random.choice([None, "broken", "wrong <b>files</b>"]), at=at)
        elif kind < 0.85:
            history.unyank(project, version, at=at)
        elif kind < 0.92:
            history.remove_file(self._live[project, version][0], at=at)
            self._live[project, version].pop(0)
            if not self._live[project, version]:
                del self._live[project, version]
        elif kind < 0.95:
            history.remove_release(project, version, at=at)
            del self._live[project, version]
        elif kind < 0.96:
            history.remove_project(project, at=at)
            self._live = {key: files for key, files in self._live.items() if key[0] != project}
        elif kind < 0.98:
            history.quarantine(project, at=at)
        else:
            history.unquarantine(project, at=at)

    def _upload(self, at: datetime) -> None:
        self._uploads += 1
        project = f"drawn{self.random.randrange(PROJECTS)}"
        version = f"{self.random.randrange(3)}.{self._uploads}"
        requires = [f"drawn{self.random.randrange(PROJECTS)}>=0.{self.random.randrange(9)}"]
        files = {f"{project}/__init__.py": "", f"{project}/part{self.random.randrange(5)}.py": f"{self._uploads}"}
        make = make_wheel if self.random.random() < 0.8 else make_sdist
        path = make(self.folder, project, version, files=files, requires_dist=requires)
        self.history.add(path, at=at)
        self._live.setdefault((project, version), []).append(path.name)
        path.unlink()


@dataclass
class Operator:
    """Runs the commands that follow an index, each as a process, with a separate home."""

    home: Path
    index_url: str
    range_events: int
    kills: random.Random | None = None
    killed: int = 0

    def run(self, *arguments: str) -> str:
        """Return the output of a command."""
        code, printed = self.tried(*arguments)
        if code:
            raise RuntimeError(f"{' '.join(arguments)}: exit code {code}\n{printed}")
        return printed

    def tried(self, *arguments: str) -> tuple[int, str]:
        """Return the exit code and the output of a command. Repeat it if it is killed at a random moment."""
        command = [str(Path(sys.executable).with_name("pypi-assets")), *arguments]
        while True:
            process = subprocess.Popen(command, env=self._environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            limit = None if self.kills is None or self.kills.random() < 0.5 else self.kills.uniform(1.0, 6.0)
            try:
                out, errors = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                self.killed += 1
                continue
            return process.returncode, out.decode() + errors.decode()

    def _environment(self) -> dict[str, str]:
        self.home.mkdir(parents=True, exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYPI_ASSETS_")}
        return kept | {
            "PYPI_ASSETS_HOME": str(self.home),
            "PYPI_ASSETS_INDEX_URL": self.index_url,
            "PYPI_ASSETS_RANGE_EVENTS": str(self.range_events),
            "PYPI_ASSETS_CLAIM_LEASE_S": "5",
        }


def follow(index: DrawnIndex, first: Operator, second: Operator, events: int) -> None:
    """Let both follow while events happen. The second operator begins after a third of the events."""
    step = min(STEP_EVENTS, max(events // 10, 1))
    for number in range(0, events, step):
        index.happen(step)
        if number == 0:
            first.run("crawl", "full")
        first.run("crawl", "incremental")
        first.run("journal", "write")
        if number >= events // 3:
            if not (second.home / "catalog.sqlite").exists():
                second.run("crawl", "full")
            second.tried("crawl", "incremental")  # commands that fail because of faults are repeated the next time
            if index.random.random() < 0.4:
                second.run("journal", "write")
    for one in (first, second):
        one.kills = None
        one.run("crawl", "incremental")
        one.run("journal", "write")


def flip_a_byte(home: Path, drawn: random.Random) -> str:
    """Change a byte of a segment of the stream `content`, and return the segment's path."""
    storage = home / "storage"
    segment = drawn.choice(sorted(storage.glob("journal/content/**/*.zst")))
    flip_a_bit(segment)
    return segment.relative_to(storage).as_posix()


def content_hashes(home: Path) -> dict[str, str]:
    """Return the content hash of the newest version of each dataset."""
    storage = open_storage((home / "storage").as_uri())
    newest = {dataset: published_versions(storage, dataset)[-1] for dataset in DATASETS}
    return {
        dataset: read_published(storage, dataset, version).manifest.content_hash for dataset, version in newest.items()
    }


def checks(first: Operator, second: Operator, drawn: random.Random) -> Iterator[tuple[str, bool]]:
    """Yield the output of each check and whether it passed."""
    code, compared = first.tried("journal", "verify", "--against", (second.home / "storage").as_uri())
    yield f"the streams of both, compared:\n{compared.rstrip()}", code == 0
    code, verified = second.tried("journal", "verify")
    yield f"the second one's chains:\n{verified.rstrip()}", code == 0
    replayed = Operator(first.home.parent / "replayed", first.index_url, first.range_events)
    first.run("dump", "full")
    first.run("leveldb", "update")
    replayed.home.mkdir(parents=True)
    first.run("journal", "replay", "--into", f"sqlite:///{replayed.home}/catalog.sqlite")
    replayed.run("dump", "full")
    replayed.run("leveldb", "update")
    published, own = content_hashes(first.home), content_hashes(replayed.home)
    yield f"content hashes of LevelDBs from the journal alone: {own}", bool(own) and own == published
    damaged = flip_a_byte(second.home, drawn)
    code, verified = second.tried("journal", "verify")
    yield f"a byte of {damaged} flipped:\n{verified.rstrip()}", code == 1 and damaged in verified


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    drawn = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "made").mkdir()
        index = DrawnIndex(History(folder / "index"), folder / "made", drawn)
        with running(folder / "index") as url, running(folder / "index", faults=FaultPlan(_FAULTS)) as faulty_url:
            first = Operator(folder / "first", url, 250)
            second = Operator(folder / "second", faulty_url, 70, kills=random.Random(options.seed + 1))
            follow(index, first, second, options.events)
            print(f"{index.history.state().last_serial:,} events, {second.killed} kills of commands")
            failed = 0
            for what, holds in checks(first, second, drawn):
                print(f"{'holds' if holds else 'FAILED'}: {what}", flush=True)
                failed += not holds
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
