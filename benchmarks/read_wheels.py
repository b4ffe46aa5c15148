"""Measure how fast wheels are read from local files, compared with pkginfo and zipfile doing the same reading.

    python -m benchmarks.read_wheels [FOLDER]

`FOLDER` (default .corpora) contains `closure` and `pairs`, which `python -m benchmarks.corpora.download` fetches. Each
way reads every wheel once a round, in one process, without hashing; the table has medians of five alternating rounds.
The baseline reads the metadata with pkginfo, and with zipfile the names of all members, top_level.txt, entry_points.txt
and a plain list of modules. "records from extracts" is the part that is repeated when the reading rules change.
"""

import argparse
import configparser
import os
import statistics
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pkginfo

from benchmarks.corpora.download import FOLDER
from pypi_assets.distributions.reader import make_record, read_distribution

ROUNDS = 5
MODULE_SUFFIXES = (".py", ".so", ".pyd")


def read_by_pkginfo(path: Path) -> tuple[object, ...]:
    metadata = pkginfo.Wheel(str(path))
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        files = {}
        for kept in ("top_level.txt", "entry_points.txt"):
            for name in names:
                if name.endswith(f".dist-info/{kept}"):
                    files[kept] = archive.read(name).decode()
    entry_points = configparser.ConfigParser(delimiters="=", interpolation=None)
    entry_points.read_string(files.get("entry_points.txt", ""))
    modules = set()
    for name in names:
        if name.endswith(MODULE_SUFFIXES):
            *folders, filename = name.split("/")
            stem = filename.partition(".")[0]
            modules.add(".".join(folders if stem == "__init__" else [*folders, stem]))
    return (
        (metadata.name, metadata.version, metadata.requires_dist, metadata.requires_python, metadata.provides_extras),
        files.get("top_level.txt", "").split(),
        {group: dict(entry_points[group]) for group in entry_points.sections()},
        sorted(modules),
    )


def read(path: Path) -> object:
    with path.open("rb") as source:
        return read_distribution(source, path.name, hash_content=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    folder = parser.parse_args().folder
    wheels = sorted(path for part in ("closure", "pairs") for path in (folder / part).glob("*.whl"))
    if not wheels:
        parser.error(f"no wheels in {folder}: python -m benchmarks.corpora.download brings them")
    extracts = []
    for path in wheels:
        with path.open("rb") as source:
            extracts.append((read_distribution(source, path.name, hash_content=False).extract, path.name))
    ways: dict[str, Callable[[], list[object]]] = {
        "pkginfo and zipfile": lambda: [read_by_pkginfo(path) for path in wheels],
        "read_distribution": lambda: [read(path) for path in wheels],
        "records from extracts": lambda: [make_record(extract, name) for extract, name in extracts],
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()  # fills the system's cache, and imports modules
    for _ in range(ROUNDS):
        for name, way in ways.items():
            started = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    size = sum(path.stat().st_size for path in wheels)
    members = sum(len(extract.paths) for extract, _ in extracts)
    print(f"{len(wheels)} wheels, {size / 1e6:.0f} MB, {members} members, one process of {os.cpu_count()} cores")
    print(f"{'':24}{'wheels/s':>10}{'ms each':>10}{'ratio':>8}")
    baseline = medians["pkginfo and zipfile"]
    for name, each in medians.items():
        print(f"{name:24}{len(wheels) / each:10.0f}{each / len(wheels) * 1000:10.3f}{baseline / each:8.2f}")


if __name__ == "__main__":
    main()
