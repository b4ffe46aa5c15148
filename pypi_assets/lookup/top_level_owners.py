"""One file with all top-level names and their first candidates, for programs that are offline: docs/owners.md has its
format."""

import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import orjson

from pypi_assets.lookup.owner_ranking import OwnerCandidate, is_junk_root
from pypi_assets.lookup.owners import Evidence, OwnerSource, ranked_providers

FORMAT = 1
MOST_CANDIDATES = 3
_REMEMBERED_NAMES = 10_000
_LEVEL = 6


class TopLevelName(NamedTuple):
    """A name, how many projects provide it, and the best of these."""

    name: str
    providers: int
    best: list[OwnerCandidate]


class Exported(NamedTuple):
    """What was written: the serial that it is of, how many names, and how many bytes."""

    serial: int
    names: int
    size: int


class TopLevelSource(OwnerSource, Protocol):
    """A snapshot that lists top-level names."""

    def top_level_names(self) -> Iterator[str]:
        """Yield the first parts of all modules, in the order of their bytes in UTF-8."""


def top_level_owners(source: TopLevelSource, most: int = MOST_CANDIDATES) -> Iterator[TopLevelName]:
    """All top-level names, in the order of their bytes in UTF-8."""
    evidence = Evidence(source)
    for number, name in enumerate(source.top_level_names(), 1):
        if number % _REMEMBERED_NAMES == 0:  # so that not all projects are kept in memory
            evidence = Evidence(source)
        candidates = ranked_providers(evidence, name, evidence.providers(name))
        if candidates:  # none if no installer takes any of the files
            yield TopLevelName(name, len(candidates), candidates[:most])


def export_top_level(
    source: TopLevelSource, path: Path, most: int = MOST_CANDIDATES, progress: Callable[[int], object] = int
) -> Exported:
    """Writes the file, compressed if its name ends with `.gz`, and puts it in its place when it is whole.

    Equal datasets give equal bytes. `progress` is called with the names so far.
    """
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        names = _write(source, path.suffix == ".gz", unfinished, most, progress)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return Exported(source.serial, names, path.stat().st_size)


def _write(
    source: TopLevelSource, is_compressed: bool, path: Path, most: int, progress: Callable[[int], object]
) -> int:
    count = 0
    with path.open("wb") as plain:
        file = gzip.GzipFile("", "wb", _LEVEL, plain, mtime=0) if is_compressed else plain
        header = {"format": FORMAT, "serial": source.serial, "most": most}
        file.write(orjson.dumps(header) + b"\n")
        for count, one in enumerate(top_level_owners(source, most), 1):
            best = [[each["project"], each["score"], each["reasons"]["dependents"]] for each in one.best]
            file.write(orjson.dumps([one.name, one.providers, int(is_junk_root(one.name)), best]) + b"\n")
            if count % _REMEMBERED_NAMES == 0:
                progress(count)
        if file is not plain:
            file.close()
    progress(count)
    return count
