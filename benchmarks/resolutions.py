"""Measure the resolutions a second on one core: from the LevelDBs, from the catalog at past serials, and by uv.

    python -m benchmarks.resolutions [--sets 200] [--uv-sets 40] [--projects 3000]

The median closure has 20 projects, and the 95th percentile 60 (see closures.py). *Cold* begins each resolution without
a cache, except the database's own. *Warm* repeats all sets with the cache of the first round. The baseline is the
program `uv pip compile` with a warm cache against `/at/N/simple/`, in a process for each set. It counts only if it
gives the answer: the script ends with an error if uv fails, or if fewer than 97 % of its pins are those by uv's rules
here. The last table has uv and a cold resolution from the LevelDB by turns, in processor time alone: the start of uv's
process is included, and the responses of the service are not.
"""

import argparse
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from sqlalchemy import event
from uv import find_uv_bin

from benchmarks.closures import graph, requirement_sets, rows
from benchmarks.filled_catalog import fill_catalog
from benchmarks.service_home import served
from pypi_assets.catalog.database import Catalog, open_catalog
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
_LEAST_EQUAL = 0.97


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


@contextmanager
def counted_statements(catalog: Catalog) -> Iterator[list[str]]:
    """Collect the statements that the block executes."""
    executed: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: object) -> None:
        executed.append(statement)

    event.listen(catalog.engine, "before_cursor_execute", note)
    try:
        yield executed
    finally:
        event.remove(catalog.engine, "before_cursor_execute", note)


def compile_by_uv(url: str, requirements: Sequence[str], cache: Path, serial: int) -> dict[str, str] | None:
    """Return the pins of one resolution by uv, or None if it has no solution.

    Raises RuntimeError with uv's message if uv did not resolve.
    """
    command = [find_uv_bin(), "pip", "compile", "-", "--no-header", "--no-annotate", "--quiet"]
    command += ["--python-version", PYTHON, "--python-platform", UV_PLATFORM, "--only-binary", ":all:"]
    command += ["--index-url", f"{url}at/{serial}/simple/", "--cache-dir", str(cache), "--no-config"]
    done = subprocess.run(command, input="\n".join(requirements), text=True, capture_output=True, check=False)
    if done.returncode == 1 and "No solution found" in done.stderr:
        return None
    if done.returncode != 0:
        raise RuntimeError(f"uv ended with {done.returncode}: {done.stderr.strip()}")
    return dict(line.split("==") for line in done.stdout.split())


def pins_here(index: ReleaseIndex, requirements: Sequence[str]) -> dict[str, str] | None:
    """Return the pins by uv's rules, or None if there is no solution."""
    try:
        return resolve(index, question(requirements, Semantics.UV)).pins
    except UnsolvableError:
        return None


def by_turns(home: Path, sets: Sequence[Sequence[str]], index_of: Callable[[], ReleaseIndex]) -> None:
    """Print the processor time of uv and of cold resolutions by uv's rules, which take turns.

    Raises RuntimeError if their answers differ too much.
    """
    pins = equal = 0
    of_uv, here = [], []
    with served(home, index_url="https://index.example.org/simple/") as (url, _):
        cache = home / "uv-cache"
        for requirements in sets:
            compile_by_uv(url, requirements, cache, index_of().serial)
        for requirements in sets:
            began = _children_s()
            found = compile_by_uv(url, requirements, cache, index_of().serial)
            of_uv.append(_children_s() - began)
            index, started = index_of(), time.process_time()
            expected = pins_here(index, requirements)
            here.append(time.process_time() - started)
            if (found is None) != (expected is None):
                raise RuntimeError(f"only one of both has a solution of {requirements}: {found} {expected}")
            pins += len(expected or ())
            equal += len((expected or {}).items() & (found or {}).items())
    if equal < _LEAST_EQUAL * pins:
        raise RuntimeError(f"{equal} of {pins} pins of uv are equal, so its time is not that of the same answer")
    print(f"\n| by turns, {equal} of {pins} pins equal | ms of processor time each | factor |\n|---|---|---|")
    for name, seconds in (("uv, warm cache", of_uv), ("LevelDB, cold, uv", here)):
        print(f"| {name} | {sum(seconds) / len(sets) * 1_000:.1f} | {sum(of_uv) / sum(seconds):.2f} |")


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
        with counted_statements(catalog) as executed:
            timed("catalog at a serial, cold, pip", lambda number: past_index(catalog, serials[number]), past)
        print(f"\n| statements of a resolution at a serial | {len(executed) / len(sets):.1f} |")
        with open_latest(DepgraphReader, storage) as depgraph:
            of_uv = [requirements for requirements, _ in sets[: options.uv_sets]]
            by_turns(home, of_uv, lambda: ReleaseIndex(depgraph.serial, depgraph.releases))
        catalog.close()


if __name__ == "__main__":
    main()
