"""One file with all top-level names and their first candidates, for programs that are offline: docs/owners.md has its
format."""

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import orjson

from pypi_assets.leveldbs.datasets.provided_names import name_prefix, names_prefix, split_name_key
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.modules_reader import ModulesReader
from pypi_assets.lookup.owner_ranking import OwnerCandidate, is_junk_root
from pypi_assets.lookup.owners import Published, answered_by_both, ranked_providers

FORMAT = 1
MOST_CANDIDATES = 3
_AFTER_SUBMODULES = "/"  # the character after the dot
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


def top_level_owners(evidence: Published, most: int = MOST_CANDIDATES) -> Iterator[TopLevelName]:
    """All top-level names, in the order of their bytes in UTF-8."""
    for number, name in enumerate(_top_level_names(evidence)):
        if number % _REMEMBERED_NAMES == 0:  # so that not all projects are kept in memory
            evidence = Published(evidence.serial, evidence.modules, evidence.depgraph)
        candidates = ranked_providers(evidence, name, evidence.providers(name))
        if candidates:  # none if no installer takes any of the files
            yield TopLevelName(name, len(candidates), candidates[:most])


def _top_level_names(evidence: Published) -> Iterator[str]:
    start = names_prefix("")
    with closing(evidence.modules.raw_iterator(verify_checksums=True)) as records:
        records.seek(start)
        while records.valid() and records.key().startswith(start):
            name = split_name_key(records.key())[0].partition(".")[0]
            records.seek(name_prefix(name))
            if records.valid() and records.key().startswith(name_prefix(name)):
                yield name  # what has no module of its own, but some below it, is listed by those in other records
            records.seek(names_prefix(name + _AFTER_SUBMODULES))


def export_top_level(
    modules: ModulesReader,
    depgraph: DepgraphReader,
    path: Path,
    most: int = MOST_CANDIDATES,
    progress: Callable[[int], object] = int,
) -> Exported:
    """Writes the file, compressed if its name ends with `.gz`, and puts it in its place when it is whole.

    Equal datasets give equal bytes. `progress` is called with the names so far.
    """
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        serial, names = answered_by_both(
            modules, depgraph, lambda evidence: _write(evidence, path.suffix == ".gz", unfinished, most, progress)
        )
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return Exported(serial, names, path.stat().st_size)


def _write(evidence: Published, is_compressed: bool, path: Path, most: int, progress: Callable[[int], object]) -> int:
    count = 0
    with path.open("wb") as plain:
        file = gzip.GzipFile("", "wb", _LEVEL, plain, mtime=0) if is_compressed else plain
        header = {"format": FORMAT, "serial": evidence.serial, "most": most}
        file.write(orjson.dumps(header) + b"\n")
        for count, one in enumerate(top_level_owners(evidence, most), 1):
            best = [[each["project"], each["score"], each["reasons"]["dependents"]] for each in one.best]
            file.write(orjson.dumps([one.name, one.providers, int(is_junk_root(one.name)), best]) + b"\n")
            if count % _REMEMBERED_NAMES == 0:
                progress(count)
        if file is not plain:
            file.close()
    progress(count)
    return count
