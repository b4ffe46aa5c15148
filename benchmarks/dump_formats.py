"""Measure the bytes of a dump's row, and the time to write and read it, in each format of dump files.

    python -m benchmarks.dump_formats [--rows 30000] [--shards 64] [--repeats 3]

The rows are generated (see `benchmarks.generated`) and spread over the files of a full dump. The baseline is the rows
as JSON without compression, in the same run, by turns. Times are processor time.
"""

import argparse
import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TypeVar

from benchmarks.generated import generate_projects, project_rows
from pypi_assets.catalog.publications.dump_columns import FULL_DUMP_SHARDS, DumpFormat
from pypi_assets.catalog.reads.stored_json import to_utf8_json
from pypi_assets.dumps.dump_format import Row, read_rows, write_rows
from pypi_assets.dumps.dump_manifest import shard_of


@dataclass
class Cost:
    """The bytes of all files, and the least processor time of all turns, in seconds."""

    bytes: int = 0
    write_s: float = float("inf")
    read_s: float = float("inf")


_T = TypeVar("_T")


def _timed(work: Callable[[], _T]) -> tuple[_T, float]:
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def _plain(files: list[list[Row]]) -> int:
    return sum(len(to_utf8_json(row)) + 2 for rows in files for row in rows)


def _write(files: list[list[Row]], form: DumpFormat) -> list[bytes]:
    written = []
    for rows in files:
        target = io.BytesIO()
        write_rows(target, rows, form=form)
        written.append(target.getvalue())
    return written


def _read(written: list[bytes], form: DumpFormat) -> int:
    return sum(1 for content in written for _ in read_rows(io.BytesIO(content), form.ending, bytes_as_row))


def bytes_as_row(line: bytes) -> Row:
    """Return a row without decoding the line, so that only the decompression is measured."""
    return {"line": line}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--shards", type=int, choices=FULL_DUMP_SHARDS, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    rows = list(islice(chain.from_iterable(map(project_rows, generate_projects(given.rows))), given.rows))
    files: list[list[Row]] = [[] for _ in range(given.shards)]
    for row in rows:
        files[shard_of(str(row["normalized"]), given.shards)].append(row)
    for of_file in files:
        of_file.sort(key=lambda row: (str(row["normalized"]), str(row["version"]), str(row["filename"])))
    plain, costs = Cost(), {form: Cost() for form in DumpFormat}
    for _ in range(given.repeats):
        plain.bytes, seconds = _timed(partial(_plain, files))
        plain.write_s = min(plain.write_s, seconds)
        for form, cost in costs.items():
            written, seconds = _timed(partial(_write, files, form))
            cost.write_s = min(cost.write_s, seconds)
            cost.bytes = sum(map(len, written))
            count, seconds = _timed(partial(_read, written, form))
            cost.read_s = min(cost.read_s, seconds)
            if count != len(rows):
                raise SystemExit(f"{form}: {count} of {len(rows)} rows were read")
    print(f"{len(rows)} rows in {given.shards} files, {plain.bytes / len(rows):.0f} bytes of JSON a row")
    print(f"{'format':8}{'bytes/row':>10}{'write, µs/row':>15}{'of plain JSON':>15}{'read, µs/row':>14}")
    for form, cost in costs.items():
        write_us, read_us = (1e6 * seconds / len(rows) for seconds in (cost.write_s, cost.read_s))
        print(
            f"{form:8}{cost.bytes / len(rows):10.0f}{write_us:15.1f}{cost.write_s / plain.write_s:15.2f}{read_us:14.1f}"
        )


if __name__ == "__main__":
    main()
