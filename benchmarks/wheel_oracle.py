"""Check whether wheels provide the modules that are read from them: install each with pip, and compare.

    python -m benchmarks.wheel_oracle [FOLDER] [--jobs 2]

`FOLDER` (default .corpora) contains `closure`, the wheels of this project's own dependencies for this interpreter,
which `python -m benchmarks.corpora.download` fetches. Each is installed alone into an empty folder. Prints every
difference; the exit code is 1 if there is one.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.corpora.download import FOLDER
from pypi_assets.distributions.reader import read_path
from pypi_assets_tests.installed_tree import install, installed_modules


def differences(wheel: Path) -> tuple[Path, int, list[str]]:
    """Return the wheel, its number of installed modules, and each module that only one side has."""
    with tempfile.TemporaryDirectory() as folder:
        install([wheel], Path(folder))
        installed = installed_modules(Path(folder))
    record = read_path(wheel)
    read = set(record.modules or ())
    problems = [f"error: {record.error.kind}: {record.error.text}"] if record.error else []
    problems += [f"installed, not read: {name}" for name in sorted(installed - read)]
    problems += [f"read, not installed: {name}" for name in sorted(read - installed)]
    return wheel, len(installed), problems


def compare(wheels: list[Path], jobs: int) -> Iterator[tuple[Path, int, list[str]]]:
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(differences, wheels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    wheels = sorted((options.folder / "closure").glob("*.whl"))
    if not wheels:
        parser.error(f"no wheels in {options.folder / 'closure'}: python -m benchmarks.corpora.download brings them")
    equal = modules = 0
    for wheel, installed, problems in compare(wheels, options.jobs):
        equal += not problems
        modules += installed
        for problem in problems:
            print(f"{wheel.name}: {problem}")
    print("\n| wheels | modules installed | wheels that provide exactly the modules read from them |\n|---|---|---|")
    print(f"| {len(wheels):,} | {modules:,} | {equal:,} |")
    sys.exit(equal < len(wheels))


if __name__ == "__main__":
    main()
