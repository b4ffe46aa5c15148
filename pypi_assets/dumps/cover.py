"""The cover: the dumps that readers use, of all that are committed."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_files import DumpKind
from pypi_assets.catalog.publications.dump_leaves import all_leaves
from pypi_assets.catalog.publications.dump_registry import Dump, DumpState, committed_dumps


@dataclass(frozen=True, slots=True)
class Cover:
    """A full dump and the ranges that follow it, to be applied in this order; they reach up to `serial`."""

    dumps: tuple[Dump, ...] = ()

    @property
    def serial(self) -> int:
        return self.dumps[-1].serials.end if self.dumps else 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that all its dumps have, in order."""
        first, *others = (dump.columns for dump in self.dumps) if self.dumps else ((),)
        return tuple(name for name in first if all(name in columns for columns in others))

    @property
    def directories(self) -> tuple[str, ...]:
        return tuple(dump.directory for dump in self.dumps)


def cover(catalog: Catalog) -> Cover:
    """The cover of the dumps that are committed now; empty where there is no full dump."""
    return cover_of(committed_dumps(catalog))


def cover_of(dumps: Iterable[Dump]) -> Cover:
    """Of the chains of `dumps` from 0 that reach furthest, the one whose full dump has the greatest sequence, then at
    each step the range with the greatest end. Of two dumps of one range, the one with the greater sequence.
    """
    by_start: dict[int, list[Dump]] = {}
    full: list[Dump] = []
    for dump in dumps:
        if dump.kind == DumpKind.FULL:
            full.append(dump)
        else:
            by_start.setdefault(dump.serials.start, []).append(dump)
    if not full:
        return Cover()
    reach: dict[int, int] = {}  # from a serial, how far chains of ranges lead
    for start in sorted(by_start, reverse=True):
        reach[start] = max(reach.get(dump.serials.end, dump.serials.end) for dump in by_start[start])
    furthest = max(reach.get(dump.serials.end, dump.serials.end) for dump in full)

    def best(candidates: Iterable[Dump], *, full_dump: bool) -> Dump:
        leading = [dump for dump in candidates if reach.get(dump.serials.end, dump.serials.end) == furthest]
        return max(leading, key=lambda dump: (0 if full_dump else dump.serials.end, dump.sequence, dump.id))

    chain = [best(full, full_dump=True)]
    while (end := chain[-1].serials.end) < furthest:
        chain.append(best(by_start[end], full_dump=False))
    return Cover(tuple(chain))


def covered_since(dumps: Iterable[Dump], since: float) -> set[str]:
    """The directories of those of `dumps`, all of them committed, that were in the cover at any moment since then.

    `since` is in unix seconds. What has been deleted meanwhile had left the cover before.
    """
    in_order = sorted(dumps, key=_committed_at)
    moments = {since, *(_committed_at(dump) for dump in in_order if _committed_at(dump) > since)}
    found: set[str] = set()
    for moment in moments:
        found.update(cover_of(in_order[: bisect_right(in_order, moment, key=_committed_at)]).directories)
    return found


def _committed_at(dump: Dump) -> float:
    return dump.committed_at or 0.0


def open_ends(dumps: Iterable[Dump]) -> set[int]:
    """The serials of the full dumps that are not committed yet: the ranges that follow these begin there."""
    return {dump.serials.end for dump in dumps if dump.kind == DumpKind.FULL and dump.state != DumpState.COMMITTED}


def still_covered(compaction: Dump, dumps: Sequence[Dump]) -> bool:
    """Whether a compaction may be committed, of all `dumps` that are not dropped: all its leaves are in the cover and
    not joined into one there, and it does not cross the end of an open full dump.
    """
    serials = compaction.serials
    ranges = cover_of(dump for dump in dumps if dump.state == DumpState.COMMITTED).dumps[1:]
    joined = [dump for dump in ranges if serials.holds(dump.serials)]
    crossed = any(serials.start < end < serials.end for end in open_ends(dumps))
    return len(joined) > 1 and all_leaves(dump.leaves for dump in joined) == compaction.leaves and not crossed
