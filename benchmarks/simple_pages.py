"""How long the page of a project of 2,000 files takes: from the dataset, and from the catalog at random serials.

`python -m benchmarks.simple_pages [--files 2000] [--requests 500]` serves one process on loopback and prints the median
and the 99th percentile in milliseconds, of JSON and of HTML, by one client. The catalog's pages are all different ones.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import requests

from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.service.published import client_of, published_index

FORMS = {"JSON": "application/vnd.pypi.simple.v1+json", "HTML": "text/html"}
PERCENTILE = 99
FILES_A_RELEASE = 10


def fill(folder: Path, add: Callable[[Path], object], files: int) -> None:
    """Uploads wheels of one project, `FILES_A_RELEASE` of each release."""
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


def measured(send: Callable[[], requests.Response], count: int) -> str:
    """The median and the 99th percentile of `count` requests, in milliseconds."""
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        answer = send()
        taken.append((time.perf_counter() - began) * 1_000)
        answer.raise_for_status()
    return f"median {statistics.median(taken):.1f} ms, p99 {statistics.quantiles(taken, n=100)[PERCENTILE - 1]:.1f} ms"


def main() -> None:
    """Prints the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--requests", type=int, default=500)
    options = parser.parse_args()
    drawn = random.Random(1)
    with tempfile.TemporaryDirectory() as folder, published_index(Path(folder)) as one:
        fill(Path(folder, "wheels"), one.index.history.add, options.files)
        last = one.publish_first()
        with one.service() as service, client_of(service) as client:
            for name, form in FORMS.items():
                accept = {"Accept": form}
                latest = measured(lambda accept=accept: client.get("/simple/large/", headers=accept), options.requests)
                print(f"{name}, latest, the same page again: {latest}")
                service.remembered.most_bytes = 0

                def past(accept: dict[str, str] = accept) -> requests.Response:
                    serial = drawn.randint(last - last // 10, last)
                    return client.get(f"/at/{serial}.{serial}/simple/large/", headers=accept)

                print(f"{name}, at a serial: {measured(past, options.requests)}")


if __name__ == "__main__":
    main()
