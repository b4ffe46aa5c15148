"""Measure a stream of 100,000 dependents: the time to the first byte, the speed and the memory.

    python -m benchmarks.service_stream [--dependents 100000]

The service runs in its own process. Its peak memory during the stream is compared with its memory before.
"""

import argparse
import threading
import time

import requests

from benchmarks.service_home import home_of, in_order, memory_mb, row_of, served


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dependents", type=int, default=100_000)
    options = parser.parse_args()
    rows = (row_of(f"dependent-{number:06}", requires_dist=["base>=1"]) for number in range(options.dependents))
    with home_of(in_order([row_of("base"), *rows])) as home, served(home.folder) as (url, pid):
        path = f"{url}v1/projects/base/dependents?format=ndjson"
        print(
            "| encoding | first byte, ms | all, s | MB sent | dependents | MB more memory |\n|---|---|---|---|---|---|"
        )
        for encoding in ("identity", "gzip", "zstd"):
            requests.get(f"{url}v1/projects/base/dependents?limit=1", timeout=60)
            before = memory_mb(pid)
            watched = _Watched(pid)
            begun = time.perf_counter()
            with requests.get(path, stream=True, headers={"Accept-Encoding": encoding}, timeout=60) as answer:
                parts = answer.raw.read_chunked(decode_content=False)
                sent = len(next(parts))
                first_s = time.perf_counter() - begun
                sent += sum(map(len, parts))
            whole_s = time.perf_counter() - begun
            grown = watched.greatest() - before
            count = len(requests.get(path, timeout=60).content.splitlines())
            print(f"| {encoding} | {first_s * 1_000:.1f} | {whole_s:.2f} | {sent / 1e6:.1f} | {count} | {grown:.1f} |")


class _Watched:
    """The peak memory of a process, which is polled."""

    def __init__(self, pid: int) -> None:
        self._pid, self._greatest, self._ended = pid, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def greatest(self) -> float:
        """Stop polling, and return the peak in MB."""
        self._ended.set()
        self._thread.join()
        return self._greatest

    def _look(self) -> None:
        while not self._ended.wait(0.005):
            self._greatest = max(self._greatest, memory_mb(self._pid))


if __name__ == "__main__":
    main()
