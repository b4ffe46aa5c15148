"""Measure the instructions of reading, compared with the code of another checkout of this project.

    python -m benchmarks.read_in_turn OTHER FILE... [--rounds 5]

`OTHER` is the folder of the other checkout, and `FILE...` are wheels and sdists. Each checkout reads all files in its
own process, alternating with the other one. Ratios are medians over the rounds: of the instructions and cycles that the
processor counts outside of the kernel, and of the processor time. Other work on the machine changes the last two, but
not the first. Instructions and cycles are only counted on Linux, if the processor and the system allow it: as root, or
with `kernel.perf_event_paranoid` of 2 or less. Otherwise only the processor time is measured, which takes more rounds.
"""

import argparse
import ctypes
import gc
import os
import platform
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
COUNTED = {"instructions": 1, "cycles": 0}
"""Numbers of PERF_TYPE_HARDWARE events in linux/perf_event.h."""
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
ATTRIBUTES = struct.Struct("=IIQQQQQ64x")
"""The fields: type, size, event, period, kind of sample, result of a read, flags."""
EXCLUDE_KERNEL = 1 << 5


def counter(event: int) -> Callable[[], int]:
    """Return a function that reads the count of an event of this process. Raises OSError if the system does not count
    it.
    """
    attributes = ATTRIBUTES.pack(0, ATTRIBUTES.size, event, 0, 0, 0, EXCLUDE_KERNEL)
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(PERF_EVENT_OPEN[platform.machine()], attributes, 0, -1, -1, 0)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return lambda: int.from_bytes(os.read(descriptor, 8), sys.byteorder)


def counters() -> dict[str, Callable[[], int]]:
    """Return the available counters by name."""
    try:
        counted = {name: counter(event) for name, event in COUNTED.items()}
    except (OSError, KeyError):
        counted = {}
    return counted | {"processor ns": time.process_time_ns}


def work(paths: list[Path]) -> None:
    """Read all files for each line of the standard input, and print the counts."""
    sys.path[0] = str(Path.cwd())
    from pypi_assets.distributions.reader import read_distribution  # from the checkout in the working directory

    def read_all() -> None:
        for path in paths:
            with path.open("rb") as source:
                read_distribution(source, path.name, hash_content=False)

    counts = [*counters().values()]
    read_all()
    gc.freeze()
    for _ in sys.stdin:
        before = [count() for count in counts]
        read_all()
        print(*[count() - first for count, first in zip(counts, before, strict=True)], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.files)
        return
    files = [str(path.resolve()) for path in options.files]
    command = [sys.executable, __file__, "--worker", ".", *files]
    workers = [
        subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for folder in (options.other, ROOT)
    ]
    rounds: list[list[list[int]]] = []
    for number in range(options.rounds):
        taken: dict[int, list[int]] = {}
        for place in (number % 2, 1 - number % 2):
            print(file=workers[place].stdin, flush=True)
            taken[place] = list(map(int, workers[place].stdout.readline().split()))
        rounds.append([taken[0], taken[1]])
    for worker in workers:
        worker.communicate()
    print("| a file | ratio to the other checkout | this checkout |\n|---|---|---|")
    for column, name in enumerate(counters()):
        ratio = statistics.median(own[column] / other[column] for other, own in rounds)
        each = statistics.median(own[column] for _, own in rounds) / len(files)
        print(f"| {name} | {ratio:.3f} | {each:,.0f} |")


if __name__ == "__main__":
    main()
