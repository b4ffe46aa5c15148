"""Measure the resolutions a second on one core: from the LevelDBs, from the catalog at past serials, and by uv.

    python -m benchmarks.resolutions [--sets 200] [--uv-sets 40] [--projects 3000]

The median closure has 20 projects, and the 95th percentile 60 (see closures.py). *Cold* begins each resolution without
a cache, except the database's own. *Warm* repeats all sets with the cache of the first round. The baseline is `uv pip
compile` with a warm cache against `/at/N/simple/`, in a process for each set. Its time by the clock includes the
service's responses, so the processor time of uv alone is also shown.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from benchmarks.closures import graph, requirement_sets, rows
from benchmarks.filled_catalog import fill_catalog
from benchmarks.service_home import served
from pypi_assets.catalog.database import open_catalog
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.locks.environments import named_environment
from pypi_assets.lookup import DepgraphReader, open_latest
from pypi_assets.resolve.releases import ReleaseIndex
from pypi_assets.resolve.resolving import (
    ResolutionQuestion,
    Semantics,
    UnsolvableError,
    parse_wanted,
    past_index,
    resolve,
)
from pypi_assets.storage.store import open_storage

SERIALS = 1_000_000
PYTHON, PLATFORM, UV_PLATFORM = "3.12", "manylinux_2_28_x86_64", "x86_64-manylinux_2_28"


def question(requirements: Sequence[str], semantics: Semantics) -> ResolutionQuestion:
    return ResolutionQuestion(
        tuple(map(parse_wanted, requirements)),
        named_environment(PYTHON, PLATFORM),
        semantics=semantics,
        only_binary=True,
    )


def timed(name: str, index_of: Callable[[int], ReleaseIndex], questions: Sequence[ResolutionQuestion]) -> None:
    """Print a row: resolutions a second of processor time, and by the clock the median and the 95th percentile."""
    seconds, unsolvable, began = [], 0, time.process_time()
    for number, one in enumerate(questions):
        index = index_of(number)
        started = time.perf_counter()
        try:
            resolve(index, one)
        except UnsolvableError:
            unsolvable += 1
        seconds.append(time.perf_counter() - started)
    processor = time.process_time() - began
    p95 = statistics.quantiles(seconds, n=20)[18]
    print(
        f"| {name} | {len(questions) / processor:.1f} | {statistics.median(seconds) * 1_000:.1f} | {p95 * 1_000:.1f} |"
        f" {unsolvable} |"
    )


def compile_by_uv(url: str, requirements: Sequence[str], cache: Path, serial: int) -> tuple[float, bool]:
    """Return the seconds by the clock of one resolution by uv, and whether there is a solution.

    Raises RuntimeError with uv's message if uv did not resolve.
    """
    command = [sys.executable, "-m", "uv", "pip", "compile", "-", "--no-header", "--no-annotate", "--quiet"]
    command += ["--python-version", PYTHON, "--python-platform", UV_PLATFORM, "--only-binary", ":all:"]
    command += ["--index-url", f"{url}at/{serial}/simple/", "--cache-dir", str(cache), "--no-config"]
    started = time.perf_counter()
    done = subprocess.run(command, input="\n".join(requirements), text=True, capture_output=True, check=False)
    seconds = time.perf_counter() - started
    is_unsolvable = done.returncode == 1 and "No solution found" in done.stderr
    if done.returncode != 0 and not is_unsolvable:
        raise RuntimeError(f"uv ended with {done.returncode}: {done.stderr.strip()}")
    return seconds, not is_unsolvable


def by_uv(home: Path, sets: Sequence[Sequence[str]], serials: Sequence[int]) -> None:
    with served(home, index_url="https://index.example.org/simple/") as (url, _):
        cache = home / "uv-cache"
        for requirements, serial in zip(sets, serials, strict=True):
            compile_by_uv(url, requirements, cache, serial)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = [
            compile_by_uv(url, requirements, cache, serial) for requirements, serial in zip(sets, serials, strict=True)
        ]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    seconds = [each for each, _ in found]
    unsolvable = sum(not is_solved for _, is_solved in found)
    p95 = statistics.quantiles(seconds, n=20)[18]
    print(
        f"| uv, warm cache | {len(sets) / processor:.1f} | {statistics.median(seconds) * 1_000:.1f} |"
        f" {p95 * 1_000:.1f} | {unsolvable} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--uv-sets", type=int, default=40)
    parser.add_argument("--projects", type=int, default=3_000)
    options = parser.parse_args()
    required = graph(projects=options.projects)
    sets = requirement_sets(required, options.sets)
    sizes = [size for _, size in sets]
    draw = Random(1)
    with tempfile.TemporaryDirectory(prefix="pypi-assets-resolutions-") as folder:
        home = Path(folder)
        catalog = open_catalog(f"sqlite:///{home / 'catalog.sqlite'}")
        count = fill_catalog(catalog, rows(required, SERIALS))
        storage = open_storage((home / "storage").as_uri())
        full_dump(catalog, storage, 1)
        for dataset in DATASETS:
            build_version(dataset, storage=storage, catalog=catalog)
        quantiles = statistics.quantiles(sizes, n=20)
        print(
            f"{options.projects:,} projects, {count:,} files; {len(sets)} sets of requirements, whose closures have"
            f" {statistics.median(sizes):.0f} projects in the median and {quantiles[18]:.0f} at the 95th percentile\n"
        )
        print("| | a second of processor time | median, ms | 95th percentile, ms | unsolvable |\n|---|---|---|---|---|")
        with open_latest(DepgraphReader, storage) as depgraph:
            for semantics in Semantics:
                questions = [question(requirements, semantics) for requirements, _ in sets]
                timed(
                    f"LevelDB, cold, {semantics}", lambda _: ReleaseIndex(depgraph.serial, depgraph.releases), questions
                )
                warm = ReleaseIndex(depgraph.serial, depgraph.releases)
                timed(f"LevelDB, first round, {semantics}", lambda _, warm=warm: warm, questions)  # type: ignore[misc]
                timed(f"LevelDB, warm, {semantics}", lambda _, warm=warm: warm, questions)  # type: ignore[misc]
        serials = [draw.randint(SERIALS // 2, SERIALS) for _ in sets]
        past = [question(requirements, Semantics.PIP) for requirements, _ in sets]
        timed("catalog at a serial, cold, pip", lambda number: past_index(catalog, serials[number]), past)
        by_uv(home, [requirements for requirements, _ in sets[: options.uv_sets]], [warm.serial] * options.uv_sets)
        catalog.close()


if __name__ == "__main__":
    main()
