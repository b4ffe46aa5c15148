"""Measure the peak memory of reading any real or hostile file.

    python -m benchmarks.read_memory [FOLDER] [--hostile 453]

`FOLDER` contains `closure/` and `pairs/`, which `python -m benchmarks.corpora.download` fetches. Each file is read, and
its extract encoded, in a new process that has imported everything. The memory is its peak resident set above the peak
of the same process with a wheel and an sdist of a few bytes. It fails above 150 MB.
"""

import argparse
import tempfile
import time
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks.corpora.download import FOLDER
from pypi_assets.distributions.extract import encode_extract
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.reader import read_distribution
from pypi_assets_tests.builders import make_sdist, make_wheel
from pypi_assets_tests.distributions import hostile

MAX_MB = 150
SHOWN = 8


@dataclass(frozen=True)
class Peak:
    resident: int
    seconds: float
    outcome: str


def peak_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def read(path: Path, filename: str, limits: ReadLimits) -> Peak:
    started = time.process_time()
    with path.open("rb") as source:
        reading = read_distribution(source, filename, limits=limits)
    encode_extract(reading.extract)
    error = reading.record.error
    return Peak(peak_bytes(), time.process_time() - started, error.kind.value if error else "read")


def build(number: int, path: Path) -> None:
    path.write_bytes(hostile.CASES[number].build())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--hostile", type=int, default=len(hostile.CASES), help="number of hostile files")
    options = parser.parse_args()
    folder: Path = options.folder
    # a fork for each task, so that it starts with all modules in memory and nothing else
    with tempfile.TemporaryDirectory() as temporary, get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        scratch = Path(temporary)
        small = [make(scratch, "demo", "1.0") for make in (make_wheel, make_sdist)]
        start = max(pool.apply(read, (path, path.name, ReadLimits())).resident for path in small)
        print(f"{start / 1e6:.0f} MB for the interpreter with everything imported")
        groups: dict[str, list[tuple[Peak, str]]] = {}
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            group = "real wheels" if path.suffix == ".whl" else "real sdists"
            peak = pool.apply(read, (path, path.name, ReadLimits()))
            groups.setdefault(group, []).append((peak, path.name))
        for number, case in enumerate(hostile.CASES[: options.hostile]):
            path = scratch / "hostile"
            pool.apply(build, (number, path))
            peak = pool.apply(read, (path, case.filename, case.limits))
            groups.setdefault("hostile files", []).append((peak, case.name))

    highest = 0.0
    for group, peaks in groups.items():
        peaks.sort(key=lambda named: -named[0].resident)
        print(f"\n{len(peaks)} {group}")
        for peak, name in peaks[:SHOWN]:
            megabytes = (peak.resident - start) / 1e6
            highest = max(highest, megabytes)
            print(f"{megabytes:>7.1f} MB {peak.seconds:>6.2f} s  {peak.outcome:<18} {name}")
    print(f"\nat the most {highest:.1f} MB, of {MAX_MB} MB allowed")
    if highest > MAX_MB:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
