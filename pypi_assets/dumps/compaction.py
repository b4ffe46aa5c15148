"""Compaction: joins ranges of the cover that follow each other into one, so that the cover stays short for years.

Nothing is deleted here. A compaction that is committed takes the place of its inputs in the cover.
"""

import heapq
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter

from pypi_assets.catalog.coordination.leases import lease, renewing
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_facts import all_leaves
from pypi_assets.catalog.publications.dump_registry import (
    Dump,
    DumpDroppedError,
    DumpState,
    drop_open_compactions,
    known_dumps,
    open_compaction,
)
from pypi_assets.dumps.cover import cover_of, open_ends
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.dump_manifest import DumpManifest
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.dump_writer import Progress, commit, commit_pending_dumps, write_file
from pypi_assets.storage.store import Storage

GROWTH = 4
"""Ranges are joined once together they are this many times the largest of them. Then each row of n ranges is written
again at most log n times, to the base of this number, and of n ranges some 2.5 log n are left, to the base of 2."""
MOST = 64
"""How many dumps are joined into one at most: each takes an open file, and some MiB of memory."""
HELD_BACK_S = 24 * 3600.0
LEASE_TTL_S = 600.0


def compact(
    catalog: Catalog,
    storage: Storage,
    *,
    held: Collection[int] = (),
    growth: int = GROWTH,
    most: int = MOST,
    progress: Progress | None = None,
) -> Iterator[DumpManifest]:
    """Joins ranges of the cover for as long as it pays, and yields the manifest of each compaction.

    `held` are the serials up to which others, like LevelDB versions, contain the dumps. No compaction crosses such a
    serial, so that they can go on from there. What is beyond all of them is left alone for a day. With a `growth` of 1
    everything is joined that can be. `progress` receives the number of rows of the present compaction.

    Raises LeaseTakenError where another process compacts, DumpDamagedError where a dump that is read is damaged.
    """
    with lease(catalog, "compact dumps", LEASE_TTL_S) as own:
        commit_pending_dumps(catalog, storage)
        drop_open_compactions(catalog)
        while joined := next_join(known_dumps(catalog), held, catalog.clock(), growth, most):
            try:
                manifest = join(catalog, storage, joined, renewing(own, progress))
            except DumpDroppedError:  # the cover has changed meanwhile, and is looked at again
                continue
            yield manifest


def join(catalog: Catalog, storage: Storage, dumps: Sequence[Dump], progress: Progress | None = None) -> DumpManifest:
    """Writes and commits one dump of what `dumps`, adjacent ranges of the cover with equal columns, hold together.

    Raises DumpDroppedError where they have left the cover meanwhile, DumpDamagedError.
    """
    compaction = open_compaction(catalog, dumps)
    write_file(catalog, storage, compaction, 0, joined_rows(storage, dumps), progress)
    return commit(catalog, storage, compaction)


def next_join(
    dumps: Sequence[Dump], held: Collection[int], now: float, growth: int = GROWTH, most: int = MOST
) -> Sequence[Dump]:
    """Which ranges of the cover are to be joined next, of all `dumps` that are not dropped; empty where none are.

    Only ranges with equal columns are joined. `now` is in unix seconds.
    """
    ranges = cover_of(dump for dump in dumps if dump.state == DumpState.COMMITTED).dumps[1:]
    apart = open_ends(dumps) | set(held)
    parts: list[list[Dump]] = [[]]
    for dump in ranges:
        is_new = dump.committed_at is None or dump.committed_at > now - HELD_BACK_S
        if held and dump.serials.end > min(held) and is_new:
            break
        if dump.serials.start in apart or (parts[-1] and dump.columns != parts[-1][-1].columns):
            parts.append([])
        parts[-1].append(dump)
    for part in parts:
        units = _with_late_dumps(part)
        start, end = run_to_join(
            [all_leaves(dump.leaves for dump in unit).count for unit in units], min(growth, most), most
        )
        while end - start > 1:
            *inner, last = units[start:end]
            joined = [*chain.from_iterable(inner), last[0]]  # what is late of its end follows what reaches that serial
            if len(joined) <= most:
                return joined
            end -= 1  # late dumps count too
    return ()


def _with_late_dumps(part: Sequence[Dump]) -> list[list[Dump]]:
    """Each range of the part, with the late dumps that follow it."""
    units: list[list[Dump]] = []
    for dump in part:
        if not dump.is_late:
            units.append([dump])
        elif units:
            units[-1].append(dump)
    return units


def run_to_join(sizes: Sequence[int], growth: int = GROWTH, most: int = MOST) -> tuple[int, int]:
    """Start and end of the first run of at least two `sizes` that is `growth` times its largest; (0, 0) without one.

    It goes on for as long as that is so, up to `most` sizes.
    """
    for start in range(len(sizes)):
        total = largest = end = 0
        for position, size in enumerate(sizes[start : start + most], start=start + 1):
            total, largest = total + size, max(largest, size)
            if total >= growth * largest and position > start + 1:
                end = position
        if end:
            return start, end
    return 0, 0


def joined_rows(storage: Storage, dumps: Sequence[Dump]) -> Iterator[Row]:
    """Of each distribution the row or tombstone of the last of `dumps` that has one, in the order of a dump.

    The files are read in parallel and checked as they are read. Only the rows of one project are in memory at once. A
    later dump can have a distribution under another version, so its project and filename alone identify it.
    """
    by_project = heapq.merge(*(iter_dump(storage, dump.directory) for dump in dumps), key=_PROJECT)  # equals: in order
    for _, rows in groupby(by_project, key=_PROJECT):
        newest = {row["filename"]: row for row in rows}
        yield from sorted(newest.values(), key=_PLACE)


_PROJECT = itemgetter("normalized")
_PLACE = itemgetter("version", "filename")
