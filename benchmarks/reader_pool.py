"""Measure the cost of reading in separate processes, compared with reading in the same process.

    python -m benchmarks.reader_pool [FOLDER] [--rounds 5]
    python -m benchmarks.reader_pool [FOLDER] --containment [--rounds 30]

`FOLDER` contains wheels and sdists, by default the pairs that `python -m benchmarks.corpora.download` fetches. Each
figure is the median of the rounds, and each ratio is to direct reading in the same round: with one thread and one
process, then with two of each. `--containment` compares contained processes with uncontained ones instead, alternately:
the seconds by the clock, and the processor time of the readers.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.corpora.download import FOLDER
from pypi_assets.distributions import reader_pool
from pypi_assets.distributions.extract import decode_extract, encode_extract
from pypi_assets.distributions.limits import MIB, ReadLimits
from pypi_assets.distributions.reader import make_record, read_distribution
from pypi_assets.distributions.reader_pool import ReaderPool, StoredExtract, WholeFile
from pypi_assets_tests.builders import make_wheel

ROUNDS, COMPARED_ROUNDS = 5, 30
PROGRAMS = {"contained": reader_pool.READER_PROGRAM, "uncontained": "benchmarks.uncontained_reader"}
SMALL_READS = 500
TOGETHER = 8
MAX_FILE_BYTES = 2 * MIB
JUDGED = 2000
BATCH = 250


def read_directly(path: Path) -> bytes:
    with path.open("rb") as source:
        return encode_extract(read_distribution(source, path.name, hash_content=False).extract)


def read_in_pool(pool: ReaderPool, path: Path) -> None:
    with path.open("rb") as source:
        pool.read(source, path.name)


def read_together(pool: ReaderPool, paths: Sequence[Path]) -> None:
    pool.read_together([WholeFile(path.name, None, path.read_bytes()) for path in paths])


def judge_directly(stored: Sequence[StoredExtract]) -> None:
    for extract in stored:
        make_record(decode_extract(extract.content), extract.filename, project=extract.project)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def start_seconds() -> float:
    """Return the seconds from the first call to its result, minus the time of a second call."""
    extracts = [StoredExtract("demo-1.0.exe", None, b"")]
    with ReaderPool(ReadLimits(), size=1) as pool:
        return seconds(lambda: pool.judge(extracts)) - seconds(lambda: pool.judge(extracts))


def compare(
    name: str, count: int, rounds: int, direct: Callable[[], object], pooled: dict[int, Callable[[], object]]
) -> None:
    """Print the rates of `count` units of work, directly and with each number of processes."""
    direct_s: list[float] = []
    pooled_s: dict[int, list[float]] = {size: [] for size in pooled}
    for _ in range(rounds):
        direct_s.append(seconds(direct))
        for size, work in pooled.items():
            pooled_s[size].append(seconds(work))
    print(f"{name:<18} {'direct':>12} {count / statistics.median(direct_s):>9.0f}/s")
    for size, all_s in pooled_s.items():
        ratio = statistics.median(base / own for base, own in zip(direct_s, all_s, strict=True))
        extra_ms = statistics.median(own - base for base, own in zip(direct_s, all_s, strict=True)) / count * 1000
        rate = count / statistics.median(all_s)
        print(f"{'':<18} {f'{size} processes':>12} {rate:>9.0f}/s {ratio:>8.2f}x {extra_ms:>+8.3f} ms each")


def compare_containment(paths: Sequence[Path], stored: Sequence[StoredExtract], rounds: int) -> None:
    """Print the cost of containment for the start of a process and for reading, as ratios of alternating rounds."""
    starts: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(rounds):
        for name, program in PROGRAMS.items():
            reader_pool.READER_PROGRAM = program
            starts[name].append(start_seconds())
    for name, taken in starts.items():
        print(f"start of a process, {name}: {statistics.median(taken) * 1000:.0f} ms, least {min(taken) * 1000:.0f} ms")
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        small = [make_wheel(temporary, "demo", "1.0", requires_dist=["attrs"])] * SMALL_READS
        pools = {}
        for name, program in PROGRAMS.items():
            reader_pool.READER_PROGRAM = program
            pools[name] = stack.enter_context(ReaderPool(ReadLimits(), size=1))
            read_in_pool(pools[name], small[0])
        works: dict[str, Callable[[ReaderPool], object]] = {
            "small wheels": lambda pool: [read_in_pool(pool, path) for path in small],
            f"{TOGETHER} small together": lambda pool: [
                read_together(pool, small[at : at + TOGETHER]) for at in range(0, len(small), TOGETHER)
            ],
            "wheels": lambda pool: [read_in_pool(pool, path) for path in paths if path.suffix == ".whl"],
            "sdists": lambda pool: [read_in_pool(pool, path) for path in paths if path.suffix != ".whl"],
            "extracts judged": lambda pool: pool.judge(stored[:BATCH]),
        }
        for name, work in works.items():
            compare_programs(name, pools, work, rounds)


def compare_programs(
    name: str, pools: Mapping[str, ReaderPool], work: Callable[[ReaderPool], object], rounds: int
) -> None:
    """Print the median ratios between the `pools`, of the time by the clock and of the readers' processor time."""
    passed: list[float] = []
    used: list[float] = []
    for _ in range(rounds):
        taken = []
        for pool in pools.values():
            [reader] = pool._idle
            before = reader._processor_s()
            taken.append((seconds(partial(work, pool)), reader._processor_s() - before))
        (own_s, own_used_s), (other_s, other_used_s) = taken
        passed.append(own_s / other_s)
        used.append(own_used_s / other_used_s)
    print(
        f"{name:<18} time {statistics.median(passed) - 1:>+7.1%}, processor time of the reader"
        f" {statistics.median(used) - 1:>+7.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER / "pairs")
    parser.add_argument("--containment", action="store_true", help="compare contained readers with uncontained ones")
    parser.add_argument(
        "--rounds", type=int, help=f"number of rounds; default: {ROUNDS}, and {COMPARED_ROUNDS} with --containment"
    )
    arguments = parser.parse_args()
    rounds: int = arguments.rounds or (COMPARED_ROUNDS if arguments.containment else ROUNDS)
    folder: Path = arguments.folder
    paths = sorted(path for path in folder.iterdir() if path.stat().st_size <= MAX_FILE_BYTES)
    wheels = [path for path in paths if path.suffix == ".whl"]
    sdists = [path for path in paths if path.suffix != ".whl"]
    stored = [StoredExtract(path.name, None, read_directly(path)) for path in paths]
    stored = (stored * (JUDGED // len(stored) + 1))[:JUDGED]
    if arguments.containment:
        compare_containment(paths, stored, rounds)
        return
    batches = [stored[start : start + BATCH] for start in range(0, len(stored), BATCH)]

    print(f"start of a process {statistics.median(start_seconds() for _ in range(rounds)) * 1000:.0f} ms")
    with (
        tempfile.TemporaryDirectory() as temporary,
        ReaderPool(ReadLimits(), size=1) as one,
        ReaderPool(ReadLimits(), size=2) as two,
        ThreadPoolExecutor(2) as threads,
    ):
        small = [make_wheel(Path(temporary), "demo", "1.0", requires_dist=["attrs"])] * SMALL_READS
        bundles = [small[start : start + TOGETHER] for start in range(0, len(small), TOGETHER)]
        for name, files in (("small wheels", small), ("wheels", wheels), ("sdists", sdists)):
            compare(
                name,
                len(files),
                rounds,
                lambda files=files: [read_directly(path) for path in files],
                {
                    1: lambda files=files: [read_in_pool(one, path) for path in files],
                    2: lambda files=files: list(threads.map(lambda path: read_in_pool(two, path), files)),
                },
            )
        compare(
            f"{TOGETHER} small together",
            len(small),
            rounds,
            lambda: [read_directly(path) for path in small],
            {
                1: lambda: [read_together(one, bundle) for bundle in bundles],
                2: lambda: list(threads.map(lambda bundle: read_together(two, bundle), bundles)),
            },
        )
        compare(
            "extracts judged",
            len(stored),
            rounds,
            lambda: judge_directly(stored),
            {
                1: lambda: [one.judge(batch) for batch in batches],
                2: lambda: list(threads.map(two.judge, batches)),
            },
        )


if __name__ == "__main__":
    main()
