"""Measure the time and the size of large web pages: with 10,000 files, and with 100,000 dependents.

    python -m benchmarks.large_pages [--files 10000] [--dependents 100000] [--requests 20]

The service runs in its own process, from published files. A page is rendered again for each request, because only the
style sheet is cached without revalidation. The table has the median time of the client and of the processor, and the
bytes of the page.
"""

import argparse
import statistics
import time
from collections.abc import Iterator

import requests

from benchmarks.service_home import home_of, in_order, processor_s, row_of, served

FILES_A_RELEASE = 10
HTML = {"Accept": "text/html", "Accept-Encoding": "identity"}


def large_project(files: int) -> Iterator[dict[str, object]]:
    """Yield the rows of a project, `FILES_A_RELEASE` for each release."""
    for number in range(files):
        release, build = divmod(number, FILES_A_RELEASE)
        version = version_of(release)
        yield row_of(
            "large",
            version=version,
            filename=f"large-{version}-{build}-py3-none-any.whl",
            uploaded_at=f"{2010 + release % 15}-{1 + release % 12:02}-{1 + build:02}T00:00:00Z",
            modules=[f"large.part{one:03}" for one in range(300)],
            requires_dist=[f"dependent-{one:06}>=1" for one in range(200)],
        )


def version_of(release: int) -> str:
    return f"{release // 100}.{release // 10 % 10}.{release % 10}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--dependents", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=20)
    options = parser.parse_args()
    dependents = (row_of(f"dependent-{number:06}", requires_dist=["base>=1"]) for number in range(options.dependents))
    rows = in_order([row_of("base"), *large_project(options.files), *dependents])
    middle = version_of(options.files // FILES_A_RELEASE // 2)
    paths = (
        *("/project/large/", "/releases/large/", "/releases/large/?page=9", f"/release/large/{middle}/"),
        *("/changes/large/", "/project/base/", "/dependents/base/", "/import/large.part001/"),
        *("/search/?q=large", "/"),
    )
    with home_of(rows) as home, served(home.folder) as (url, pid):
        print("| page | median, ms | processor, ms | kB |\n|---|---|---|---|")
        for path in paths:
            taken = []
            before = processor_s(pid)
            for _ in range(options.requests):
                begun = time.perf_counter()
                answer = requests.get(url.rstrip("/") + path, headers=HTML, timeout=60)
                taken.append(time.perf_counter() - begun)
                answer.raise_for_status()
            processor = (processor_s(pid) - before) / options.requests
            median = statistics.median(taken)
            print(f"| `{path}` | {median * 1_000:.0f} | {processor * 1_000:.0f} | {len(answer.content) / 1e3:.0f} |")


if __name__ == "__main__":
    main()
