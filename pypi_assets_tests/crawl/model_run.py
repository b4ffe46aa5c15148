"""Runs many histories in several processes: `python -m pypi_assets_tests.crawl.model_run --histories 20000`.

Each history is determined by its seed. A failure is printed with its seed and with the shortest history that still
fails.
"""

# ruff: noqa: T201 - it prints failures

import argparse
import gc
import os
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from pprint import pformat

import pytest

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets_tests.crawl.model_following import follow
from pypi_assets_tests.crawl.model_shrinking import shrink
from pypi_assets_tests.crawl.model_steps import Step, draw_history
from pypi_assets_tests.databases import prepare_catalogs, sqlite_database

_AT_A_TIME = 25
_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Failure:
    """A failed history. `kind` is the error and its line, without the drawn values."""

    seed: int
    kind: str
    text: str


def try_history(catalog: Catalog, history: list[Step], seed: int = 0) -> Failure | None:
    """Run a history. Return its failure, or None."""
    try:
        follow(catalog, history)
    except Exception as error:  # noqa: BLE001 - each failure is reported
        place = traceback.extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__} in {place.name}:{place.lineno}"
        return Failure(seed, kind, str(error)[:2_000] or place.line or kind)
    return None


def shortened(catalog: Catalog, failure: Failure, within_s: float) -> str:
    """Return, as text, the shortest history found that fails in the same way."""

    def fails(history: list[Step]) -> bool:
        found = try_history(catalog, history)
        return found is not None and found.kind == failure.kind

    history = shrink(draw_history(failure.seed), fails, within_s)
    found = try_history(catalog, history)
    return f"{pformat(history, width=118)}\n{found.text if found else 'it fails no longer'}"


@contextmanager
def scratch_catalog() -> Iterator[Catalog]:
    """Yield a catalog in a new SQLite database, in memory if the system supports it."""
    with _scratch_folder() as folder, pytest.MonkeyPatch.context() as patch:
        prepare_catalogs(patch)
        catalog = open_catalog(sqlite_database(Path(folder, "catalog.sqlite")))
        yield catalog
        catalog.close()


def _scratch_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None)


@cache
def _catalog_of_process(folder: str) -> Catalog:
    """Open this process's catalog in `folder`. All histories share it, to reuse the cache of compiled statements."""
    prepare_catalogs(pytest.MonkeyPatch())
    catalog = open_catalog(sqlite_database(Path(folder, f"{os.getpid()}.sqlite")))
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)  # histories leave little garbage, and collecting it took a tenth of the time
    return catalog


def _try_part(folder: str, seeds: range) -> tuple[range, list[Failure]]:
    catalog = _catalog_of_process(folder)
    found = [try_history(catalog, draw_history(seed), seed) for seed in seeds]
    return seeds, [failure for failure in found if failure is not None]


def run(first: int, histories: int, workers: int, shrink_s: float) -> int:
    """Run the histories of the seeds from `first` on, and return the number of failures."""
    started = time.monotonic()
    parts = [
        range(seed, min(seed + _AT_A_TIME, first + histories)) for seed in range(first, first + histories, _AT_A_TIME)
    ]
    failures: list[Failure] = []
    done = 0
    with _scratch_folder() as folder, get_context("spawn").Pool(workers, maxtasksperchild=40) as pool:
        for seeds, found in pool.imap_unordered(partial(_try_part, folder), parts):
            done += len(seeds)
            for failure in found:
                print(f"seed {failure.seed}: {failure.kind}: {failure.text.splitlines()[0][:200]}", flush=True)
            failures += found
            if done % 1_000 < _AT_A_TIME:
                print(f"{done} histories in {time.monotonic() - started:.0f} s, {len(failures)} failed", flush=True)
    print(f"{done} histories in {time.monotonic() - started:.0f} s: {len(failures)} inexact", flush=True)
    by_kind = {failure.kind: failure for failure in failures}
    counts = Counter(failure.kind for failure in failures)
    with scratch_catalog() as catalog:
        for kind, failure in by_kind.items() if shrink_s else ():
            print(f"\n{counts[kind]} times {kind}, for example seed {failure.seed}:")
            print(shortened(catalog, failure, shrink_s), flush=True)
    return len(failures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--shrink", type=float, default=60.0, help="for how many seconds each kind is shortened")
    options = parser.parse_args()
    raise SystemExit(min(run(options.first, options.histories, options.workers, options.shrink), 1))


if __name__ == "__main__":
    main()
