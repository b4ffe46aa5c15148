"""Compaction: join successive range dumps of the cover into one, so that the cover stays short for years.

Nothing is deleted here. A committed compaction replaces its inputs in the cover.
"""

import heapq
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter

from pypi_assets.catalog.coordination.leases import lease, renewing
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_columns import all_leaves
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
"""Ranges are joined when together they have this many times the rows of the largest of them. Then each row of n ranges
is rewritten at most log n times (to the base of this number), and about 2.5 log n (to the base of 2) ranges remain.
"""
MOST = 64
"""The largest number of dumps that are joined at once. Each takes an open file, and some MiB of memory."""
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
    """Join ranges of the cover for as long as it pays, and yield the manifest of each compaction.

    `held` are the serials that consumers of the dumps have reached, such as the serials of LevelDB versions. No
    compaction crosses such a serial, so that the consumers can continue from there. Dumps beyond all of these serials
    are not joined for a day. With a `growth` of 1, all ranges are joined that can be. `progress` receives the number of
    rows of the current compaction.

    Raises LeaseTakenError if another process compacts, and DumpDamagedError if a dump is corrupt.
    """
    with lease(catalog, "compact dumps", LEASE_TTL_S) as own:
        commit_pending_dumps(catalog, storage)
        drop_open_compactions(catalog)
        while joined := next_join(known_dumps(catalog), held, catalog.clock(), growth, most):
            try:
                manifest = join(catalog, storage, joined, renewing(own, progress))
            except DumpDroppedError:  # the cover has changed in the meantime, so it is computed again
                continue
            yield manifest


def join(catalog: Catalog, storage: Storage, dumps: Sequence[Dump], progress: Progress | None = None) -> DumpManifest:
    """Write and commit one dump with the rows of `dumps`, which are adjacent ranges of the cover with equal columns.

    Raises DumpDroppedError if the dumps have left the cover in the meantime, and DumpDamagedError if a dump is corrupt.
    """
    compaction = open_compaction(catalog, dumps)
    write_file(catalog, storage, compaction, 0, joined_rows(storage, dumps), progress)
    return commit(catalog, storage, compaction)


def next_join(
    dumps: Sequence[Dump], held: Collection[int], now: float, growth: int = GROWTH, most: int = MOST
) -> Sequence[Dump]:
    """Return the ranges of the cover to join next, if any. `dumps` are all dumps that are not dropped.

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
            joined = [*chain.from_iterable(inner), last[0]]  # the late dumps of the last range stay separate
            if len(joined) <= most:
                return joined
            end -= 1  # late dumps count towards `most`
    return ()


def _with_late_dumps(part: Sequence[Dump]) -> list[list[Dump]]:
    """Group each range of the part with the late dumps that follow it."""
    units: list[list[Dump]] = []
    for dump in part:
        if not dump.is_late:
            units.append([dump])
        elif units:
            units[-1].append(dump)
    return units


def run_to_join(sizes: Sequence[int], growth: int = GROWTH, most: int = MOST) -> tuple[int, int]:
    """Return start and end of the first run of two or more `sizes` with a sum of `growth` times its largest, or (0, 0).

    The run is extended while this holds, up to `most` sizes. For example, `run_to_join([9, 1, 1, 1, 1])` is `(1, 5)`:
    the last four sizes sum to 4 times their largest.
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
    """Yield the row or tombstone of each distribution from the last of the `dumps` that has it, in the order of a dump.

    The files are read in parallel, and checked during the read. Only the rows of one project are in memory at once. A
    later dump can have a distribution under another version, so only its project and filename identify it.
    """
    by_project = heapq.merge(*(iter_dump(storage, dump.directory) for dump in dumps), key=_PROJECT)  # equals: in order
    for _, rows in groupby(by_project, key=_PROJECT):
        newest = {row["filename"]: row for row in rows}
        yield from sorted(newest.values(), key=_PLACE)


_PROJECT = itemgetter("normalized")
_PLACE = itemgetter("version", "filename")
