"""Measure how long devindex takes to read the history of an index with thousands of files.

    python -m benchmarks.devindex_replay [--files 5000] [--rounds 5]

Each round reads a new history of uploads, of 1,500 projects at most, as a server does when it starts. The baseline only
decodes its lines. Prints medians of the rounds, in processor time.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import orjson

from pypi_assets.devindex.history import History
from pypi_assets.devindex.index_state import IndexOperation, OperationKind
from pypi_assets.devindex.uploads import UploadedFile

PROJECTS = 1_500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_history(Path(folder), arguments.files)
        rounds = [(decode_s(Path(folder)), replay_s(Path(folder))) for _ in range(arguments.rounds)]
    decoding, replaying = (median(times) for times in zip(*rounds, strict=True))
    print(f"{arguments.files:,} files\n\n| work | processor s | µs a file | ratio |\n|---|---|---|---|")
    for what, seconds in (("decoding alone", decoding), ("reading the history", replaying)):
        print(f"| {what} | {seconds:.2f} | {1e6 * seconds / arguments.files:.0f} | {seconds / decoding:.1f} |")


def write_history(folder: Path, files: int) -> None:
    """Write a history of this many uploads, as devindex stores it, without the files."""
    folder.mkdir(exist_ok=True)
    with (folder / "history.jsonl").open("wb") as stream:
        for number in range(files):
            at, digest, project = "2026-11-20T09:43:17.484199Z", f"{number:064x}", f"p{number % PROJECTS}"
            name = f"{project}-{number}-py3-none-any.whl"
            file = UploadedFile(name, "bdist_wheel", "py3", 1000, digest, digest[:32], digest, None, digest, at)
            operation = IndexOperation(OperationKind.ADD, at, project, str(number), owner="x", file=file)
            stream.write(orjson.dumps(operation.as_record()) + b"\n")


def decode_s(folder: Path) -> float:
    start = time.process_time()
    for line in (folder / "history.jsonl").read_bytes().splitlines():
        orjson.loads(line)
    return time.process_time() - start


def replay_s(folder: Path) -> float:
    start = time.process_time()
    History(folder).state()
    return time.process_time() - start


if __name__ == "__main__":
    main()
