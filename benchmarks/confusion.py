"""Measure the time and the memory of comparing the names of two indexes.

    python -m benchmarks.confusion [--names 600000] [--private 2000]

A public index of `--names` projects is compared with a private index of `--private` projects, a hundredth of whose
names are also public, and with a mirror of itself, whose names are all public. Each project has one file. The baseline
reads the sorted names of both catalogs, and discards them. Each measurement runs in its own process. The memory is its
peak above the peak of a process with the same imports.
"""

import argparse
import multiprocessing
import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.reports.live_files import known_names
from pypi_assets.confusion import OpenIndex, confusions

SERIAL = 10_000_000
_SYLLABLES = ("py", "lib", "core", "data", "web", "io", "test", "ml", "api", "flow", "net", "auto", "fast", "open")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", type=int, default=600_000)
    parser.add_argument("--private", type=int, default=2_000)
    arguments = parser.parse_args()
    names = [name_of(number) for number in range(arguments.names)]
    step = max(len(names) // max(arguments.private // 100, 1), 1)
    of_private = [f"company-{number:x}-tool" for number in range(arguments.private)]
    of_private[: arguments.private // 100] = names[::step][: arguments.private // 100]
    with tempfile.TemporaryDirectory() as folder:
        public, mirror, private = (Path(folder) / f"{name}.sqlite" for name in ("public", "mirror", "private"))
        for path, some in ((public, names), (mirror, names), (private, of_private)):
            fill(path, some)
        nothing = measured(nothing_at_all, [public, mirror])
        print("| compared with | work | found | processor s | MiB |\n|---|---|---|---|---|")
        for title, paths in (("a private index", [private, public]), ("a mirror", [public, mirror])):
            for what, work in (("reading the names", read_names), ("comparing them", compare)):
                count, seconds, kib = measured(work, paths)
                mib = (kib - nothing[2]) / 1024
                print(f"| {title} | {what} | {count:,} | {seconds:.1f} | {mib:.0f} |", flush=True)


def name_of(number: int) -> str:
    """Return a name like real projects have: words that are joined by hyphens, and a number."""
    words = [_SYLLABLES[number % 14], _SYLLABLES[number // 14 % 14], _SYLLABLES[number // 196 % 14]]
    return "-".join([*words, f"{number:x}"])


def fill(path: Path, names: Sequence[str]) -> None:
    """Create a catalog with a project, a release and a live file for each name."""
    open_catalog(f"sqlite:///{path}").close()
    numbered = list(enumerate(names, 1))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA synchronous = OFF")
        database.execute(
            "INSERT INTO catalog_state (id, index_url, events_since, events_through, exact_from, next_dump_sequence)"
            f" VALUES (1, 'x', 0, {SERIAL}, 0, 1)"
        )
        database.executemany(
            "INSERT INTO projects (id, normalized, name, bucket, shard, known_since) VALUES (?, ?, ?, 0, 0, 0)",
            ((number, name, name) for number, name in numbered),
        )
        database.executemany(
            "INSERT INTO releases (id, project_id, version) VALUES (?, ?, '1.0')",
            ((number, number) for number, _ in numbered),
        )
        database.executemany(
            "INSERT INTO distributions (id, project_id, release_id, filename, kind) VALUES (?, ?, ?, ?, 'sdist')",
            ((number, number, number, f"{name}-1.0.tar.gz") for number, name in numbered),
        )
        database.executemany(
            "INSERT INTO live_intervals (distribution_id, start) VALUES (?, ?)",
            ((number, number) for number, _ in numbered),
        )


def measured(work: Callable[[list[Path]], int], paths: list[Path]) -> tuple[int, float, int]:
    """Return the count of `work`, its processor time in seconds, and the peak memory of its process in KiB."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (work, paths))


def _measured(work: Callable[[list[Path]], int], paths: list[Path]) -> tuple[int, float, int]:
    began = time.process_time()
    count = work(paths)
    return count, time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def nothing_at_all(_paths: list[Path]) -> int:
    return 0


def read_names(paths: list[Path]) -> int:
    count = 0
    for path in paths:
        with closing(open_catalog(f"sqlite:///{path}")) as catalog, catalog.read() as connection:
            count += sum(1 for _ in known_names(connection))
    return count


def compare(paths: list[Path]) -> int:
    catalogs = [open_catalog(f"sqlite:///{path}") for path in paths]
    indexes = [OpenIndex(path.stem, False, catalog, SERIAL) for path, catalog in zip(paths, catalogs, strict=True)]
    count = sum(1 for _ in confusions(indexes))
    for catalog in catalogs:
        catalog.close()
    return count


if __name__ == "__main__":
    main()
