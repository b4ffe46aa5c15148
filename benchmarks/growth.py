"""Does a range, a tick or a status take longer on an older catalog?

    python -m benchmarks.growth [--ages 16 64 256] [--repetitions 5]

Ranges that are all alike age a catalog in SQLite; the index is in memory. At each age each kind of work is done some
times, and the least processor time counts. `pypi_assets_tests/test_growth.py` compares statements, steps and rows of
the same work.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pypi_assets_tests.growing_catalog import GrowingCatalog
from pypi_assets_tests.test_growth import kinds_of_work


def seconds(work: Callable[[], object], repetitions: int) -> float:
    """The least processor time of the work."""
    found = []
    for _ in range(repetitions):
        before = time.process_time()
        work()
        found.append(time.process_time() - before)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ages", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        growing = GrowingCatalog(Path(folder))
        print("ranges", *kinds_of_work(growing), "(milliseconds of processor time)", sep="\t")
        for age in options.ages:
            growing.grow(age)
            times = [seconds(work, options.repetitions) for work in kinds_of_work(growing).values()]
            print(age, *(f"{1000 * one:.1f}" for one in times), sep="\t")
        growing.catalog.close()


if __name__ == "__main__":
    main()
