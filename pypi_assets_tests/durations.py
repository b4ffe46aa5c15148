"""Record the duration of each test, and generate the table of benchmarks/README.md from the records.

`pytest --record-durations=FOLDER` writes one file per worker. `python -m pypi_assets_tests.durations FOLDER` prints the
packages and the longest tests. With `--write`, it also updates the table of packages in the page. Processor time
includes child processes.
"""

import argparse
import json
import os
import resource
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pypi_assets_tests.generated_part import with_generated
from pypi_assets_tests.tiers import TOP, package_of

PAGE = Path(__file__).parent.parent / "benchmarks" / "README.md"
_ROOT = "pypi_assets_tests/"


class DurationRecorder:
    """A pytest plugin that writes one line of JSON per test: name, wall seconds and processor seconds."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}.jsonl").open("w", buffering=1)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        wall, processor = time.monotonic(), _processor_seconds()
        try:
            return (yield)
        finally:
            row = item.nodeid, round(time.monotonic() - wall, 4), round(_processor_seconds() - processor, 4)
            self._file.write(json.dumps(row) + "\n")

    def pytest_unconfigure(self) -> None:
        self._file.close()


@dataclass
class Total:
    """The total duration of a group of tests, in seconds."""

    tests: int = 0
    wall_s: float = 0.0
    processor_s: float = 0.0

    def add(self, wall_s: float, processor_s: float) -> None:
        self.tests += 1
        self.wall_s += wall_s
        self.processor_s += processor_s


@dataclass
class Durations:
    """Totals by package, and by test without its parameters."""

    packages: dict[str, Total] = field(default_factory=lambda: defaultdict(Total))
    groups: dict[str, Total] = field(default_factory=lambda: defaultdict(Total))

    @classmethod
    def read(cls, folder: Path) -> "Durations":
        """Read the files of all workers. Raise FileNotFoundError if the folder has none."""
        durations = cls()
        files = sorted(folder.glob("*.jsonl"))
        if not files:
            raise FileNotFoundError(f"{folder} has no durations: run `pytest --record-durations={folder}`")
        for file in files:
            for line in file.read_text().splitlines():
                name, wall_s, processor_s = json.loads(line)
                group = name.partition("[")[0].removeprefix(_ROOT)
                for total in (durations.packages[package_of(group)], durations.groups[group]):
                    total.add(wall_s, processor_s)
        return durations

    def tables(self, longest: int = 25) -> str:
        """Return two tables in Markdown: all packages, and the groups that took the most processor time."""
        whole = Total(
            sum(one.tests for one in self.packages.values()),
            sum(one.wall_s for one in self.packages.values()),
            sum(one.processor_s for one in self.packages.values()),
        )
        packages = sorted(self.packages.items(), key=lambda item: -item[1].processor_s)
        groups = sorted(self.groups.items(), key=lambda item: -item[1].processor_s)[:longest]
        named = [(f"`{'(top)' if name == TOP else name}`", total) for name, total in packages]
        return "\n".join(
            [
                *_table("package", [*named, ("together", whole)]),
                "",
                *_table("test", [(f"`{name}`", total) for name, total in groups]),
                "",
            ]
        )


def _table(kind: str, rows: Iterable[tuple[str, Total]]) -> Iterator[str]:
    yield f"| {kind} | tests | processor s | wall s |"
    yield "|---|---|---|---|"
    for name, total in rows:
        yield f"| {name} | {total.tests:,} | {total.processor_s:,.1f} | {total.wall_s:,.1f} |"


def _processor_seconds() -> float:
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder written by `pytest --record-durations`")
    parser.add_argument("--write", action="store_true", help="write the table of packages to benchmarks/README.md")
    options = parser.parse_args()
    tables = Durations.read(options.folder).tables()
    print(tables)  # noqa: T201
    if options.write:
        packages = tables.partition("\n\n")[0]
        PAGE.write_text(with_generated(PAGE.read_text(), "durations", f"{packages}\n"))


if __name__ == "__main__":
    main()
