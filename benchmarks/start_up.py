"""Measure how long a command takes to start, compared with importing the libraries that it needs.

    python -m benchmarks.start_up [--turns 9]

The baseline is `python -c "import click, plyvel, orjson"`, or plyvel_next on a Python without plyvel. The lines are run
alternately, each in its own process. The figures are medians, by the clock and of the processor. `lookup module` finds
its answer in a small LevelDB in a local folder. Without bytecode, Python compiles each module that it imports, both for
the command and for the baseline, as in a read-only container after `pip install --no-compile`.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks.lookups import publish
from pypi_assets.leveldbs.format.leveldb_binding import require_binding
from pypi_assets.lookup import ModulesReader, open_latest
from pypi_assets.setting_sources import ENV_PREFIX
from pypi_assets.storage.store import open_storage

BASELINE = ("-c", f"import click, {require_binding().__name__}, orjson")
COMMAND = ("-c", "from pypi_assets.cli import main; main()")
COMPLETION = {"_PYPI_ASSETS_COMPLETE": "bash_complete", "COMP_WORDS": "pypi-assets lo", "COMP_CWORD": "1"}
ROWS = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=9)
    turns = parser.parse_args().turns
    with tempfile.TemporaryDirectory() as folder:
        module = published_module(Path(folder) / "storage")
        lines: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {
            f'python -c "{BASELINE[1]}"': (BASELINE, {}),
            "pypi-assets --version": ((*COMMAND, "--version"), {}),
            "pypi-assets --help": ((*COMMAND, "--help"), {}),
            "completion of pypi-assets lo": (COMMAND, COMPLETION),
            "pypi-assets crawl full --help": ((*COMMAND, "crawl", "full", "--help"), {}),
            "pypi-assets lookup module NAME": ((*COMMAND, "lookup", "module", module), {}),
        }
        own = {name: value for name, value in os.environ.items() if not name.startswith((ENV_PREFIX, "PYTHON"))}
        own["PYPI_ASSETS_HOME"] = folder
        cache = {"PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
        none = {"PYTHONPYCACHEPREFIX": f"{folder}/none", "PYTHONDONTWRITEBYTECODE": "1"}
        with_bytecode = measure(lines, own | cache, turns)
        without = measure(lines, own | none, max(turns // 3, 1))
    for title, found in (("with bytecode", with_bytecode), ("without", without)):
        print(f"\n| {title} | ms | ratio | processor ms | ratio |\n|---|---|---|---|---|")
        clock, processor = next(iter(found.values()))
        for name, (seconds, busy) in found.items():
            figures = f"{1_000 * seconds:.0f} | {seconds / clock:.1f} | {1_000 * busy:.0f} | {busy / processor:.1f}"
            print(f"| `{name}` | {figures} |")


def published_module(folder: Path) -> str:
    """Publish LevelDBs of generated rows in `folder`, and return the name of a module in one of them."""
    storage = open_storage(folder.as_uri())
    publish(storage, ROWS)
    with open_latest(ModulesReader, storage) as reader:
        return next(iter(reader.modules()))["module"]


def measure(
    lines: Mapping[str, tuple[Sequence[str], Mapping[str, str]]], environment: Mapping[str, str], turns: int
) -> dict[str, tuple[float, float]]:
    """Return the median seconds of each line, by the clock and of the processor.

    A first turn, which can write bytecode, does not count.
    """
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in lines}
    for turn in range(turns + 1):
        for name, (arguments, variables) in lines.items():
            begun, busy = time.perf_counter(), busy_s()
            subprocess.run(
                [sys.executable, *arguments], env={**environment, **variables}, check=True, stdout=subprocess.DEVNULL
            )
            if turn:
                taken[name].append((time.perf_counter() - begun, busy_s() - busy))
    return {
        name: (median(clock for clock, _ in found), median(busy for _, busy in found)) for name, found in taken.items()
    }


def busy_s() -> float:
    """Return the processor time of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
