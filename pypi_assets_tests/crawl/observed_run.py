"""Runs many histories of an observed index: `python -m pypi_assets_tests.crawl.observed_run --histories 5000`."""

# ruff: noqa: T201 - it prints failures

import argparse
import os
import time
import traceback
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from pypi_assets_tests.crawl.model_run import _catalog_of_process, _scratch_folder
from pypi_assets_tests.crawl.observed_model import observe_history

_AT_A_TIME = 25


def _try_part(folder: str, seeds: range) -> list[tuple[int, str]]:
    """Return the seeds that failed, each with its traceback."""
    catalog = _catalog_of_process(folder)
    failed = []
    for seed in seeds:
        try:
            observe_history(catalog, seed)
        except Exception:  # noqa: BLE001 - each failure is reported
            failed.append((seed, traceback.format_exc()))
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=5_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    started, failed = time.monotonic(), 0
    end = options.first + options.histories
    parts = [range(seed, min(seed + _AT_A_TIME, end)) for seed in range(options.first, end, _AT_A_TIME)]
    with _scratch_folder() as folder, get_context("spawn").Pool(options.workers, maxtasksperchild=40) as pool:
        for found in pool.imap_unordered(partial(_try_part, str(Path(folder))), parts):
            for seed, text in found:
                print(f"seed {seed}: {text}", flush=True)
            failed += len(found)
    print(f"{options.histories} histories in {time.monotonic() - started:.0f} s: {failed} failed")
    raise SystemExit(min(failed, 1))


if __name__ == "__main__":
    main()
