"""Measure the page of a project of 2,000 files: from the dataset, and from the catalog at random serials.

`python -m benchmarks.simple_pages [--files 2000] [--requests 500]` runs the service as a process and prints the median
and the 99th percentile in milliseconds, of JSON and of HTML, by one client.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import requests

from benchmarks.service_home import processor_s, served
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.service.published import published_index

FORMS = {"JSON": "application/vnd.pypi.simple.v1+json", "HTML": "text/html"}
PERCENTILE = 99
FILES_A_RELEASE, WARM_UP = 10, 5
REMEMBERED = 10


def fill(folder: Path, add: Callable[[Path], object], files: int) -> None:
    """Upload wheels of one project, `FILES_A_RELEASE` for each release."""
    folder.mkdir()
    for number in range(files):
        release, build = divmod(number, FILES_A_RELEASE)
        path = make_wheel(
            folder,
            "large",
            f"{release // 10}.{release % 10}.{release}",
            build=str(build + 1),
            requires_dist=[f"other{one}>={release % 7}" for one in range(12)],
            requires_python=">=3.9",
        )
        add(path)


def measured(send: Callable[[], requests.Response], number: int, pid: int) -> str:
    """Return table columns in ms: median and 99th percentile of `number` requests, and the processor time of a
    request.
    """
    taken: list[float] = []
    before = processor_s(pid)
    for _ in range(number):
        began = time.perf_counter()
        answer = send()
        taken.append((time.perf_counter() - began) * 1_000)
        answer.raise_for_status()
    processor = (processor_s(pid) - before) / number * 1_000
    p99 = statistics.quantiles(taken, n=100)[PERCENTILE - 1]
    return f"{statistics.median(taken):.1f} | {p99:.1f} | {processor:.1f}"


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--requests", type=int, default=500)
    options = parser.parse_args()
    drawn = random.Random(1)
    with tempfile.TemporaryDirectory() as folder, published_index(Path(folder)) as one:
        fill(Path(folder, "wheels"), one.index.history.add, options.files)
        last = one.publish_first()
        with served(one.home, index_url=one.index.url) as (url, pid), requests.Session() as session:
            print("| page | median, ms | p99, ms | processor, ms |\n|---|---|---|---|")
            for name, form in FORMS.items():
                session.headers["Accept"] = form
                measured(lambda: session.get(f"{url}at/{last}/simple/large/"), WARM_UP, pid)
                latest = measured(lambda: session.get(f"{url}simple/large/"), options.requests, pid)
                print(f"| {name}, latest | {latest} |")
                numbers = count()

                def made(form: str = form, numbers: Iterator[int] = numbers) -> requests.Response:
                    return session.get(f"{url}simple/large/", headers={"Accept": f"{form};number={next(numbers)}"})

                print(f"| {name}, latest, made each time | {measured(made, options.requests, pid)} |")

                serials = drawn.sample(range(last - options.requests, last + 1), options.requests)
                rest = iter(serials)

                def past(rest: Iterator[int] = rest) -> requests.Response:
                    serial = next(rest)
                    return session.get(f"{url}at/{serial}.{serial}/simple/large/")

                print(f"| {name}, at a serial, for the first time | {measured(past, options.requests, pid)} |")
                rest = iter(serials[-REMEMBERED:] * (options.requests // REMEMBERED))
                again = measured(partial(past, rest), options.requests // REMEMBERED * REMEMBERED, pid)
                print(f"| {name}, at a serial, again | {again} |")


if __name__ == "__main__":
    main()
