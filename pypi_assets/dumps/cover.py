"""The cover: the committed dumps that readers use."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_columns import DumpKind, all_leaves
from pypi_assets.catalog.publications.dump_registry import Dump, DumpState, committed_dumps


@dataclass(frozen=True, slots=True)
class Cover:
    """A full dump and the ranges that follow it, up to `serial`. Readers apply them in this order.

    A dump is followed by the late dumps of its last serial, which have the late changes to serials up to there.
    """

    dumps: tuple[Dump, ...] = ()

    @property
    def serial(self) -> int:
        return self.dumps[-1].serials.end if self.dumps else 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that all dumps of the cover have, in order."""
        first, *others = (dump.columns for dump in self.dumps) if self.dumps else ((),)
        return tuple(name for name in first if all(name in columns for columns in others))

    @property
    def directories(self) -> tuple[str, ...]:
        return tuple(dump.directory for dump in self.dumps)


def cover(catalog: Catalog) -> Cover:
    """Return the cover of the committed dumps; it is empty if there is no full dump.

    Reads all committed dumps. Clean-ups keep these few: the cover itself, and recently superseded dumps.
    """
    return cover_of(committed_dumps(catalog))


def cover_of(dumps: Iterable[Dump]) -> Cover:
    """Return the cover of `dumps`: the best of the chains from serial 0 that reach furthest.

    The best chain has the full dump with the greatest sequence, and then at each step the range with the greatest end.
    Of two dumps of the same range, the dump with the greater sequence is taken. Each dump is followed by the newer late
    dumps of its end, in the order of their sequences.
    """
    return _Chains(dumps).cover


class _Chains:
    """The chains of some dumps, and their `cover`. A chain is a full dump and the ranges that follow it.

    `reach` has, for each serial at which a range starts, the last serial of the chains from there. `furthest` is the
    last serial of the chains from 0.
    """

    def __init__(self, dumps: Iterable[Dump]) -> None:
        self.by_start: dict[int, list[Dump]] = {}
        self.full: list[Dump] = []
        self.late: dict[int, list[Dump]] = {}
        for dump in dumps:
            if dump.kind == DumpKind.FULL:
                self.full.append(dump)
            elif dump.is_late:
                self.late.setdefault(dump.serials.end, []).append(dump)
            else:
                self.by_start.setdefault(dump.serials.start, []).append(dump)
        self.reach: dict[int, int] = {}
        for start in sorted(self.by_start, reverse=True):
            self.reach[start] = max(map(self.reach_of, self.by_start[start]))
        self.furthest = max(map(self.reach_of, self.full), default=0)

    def reach_of(self, dump: Dump) -> int:
        """Return the last serial of the chains that begin with `dump`."""
        return self.reach.get(dump.serials.end, dump.serials.end)

    @property
    def cover(self) -> Cover:
        if not self.full:
            return Cover()
        chain = self.with_late(self._best(self.full))
        while (end := chain[-1].serials.end) < self.furthest:
            chain += self.with_late(self._best(self.by_start[end]))
        return Cover(tuple(chain))

    def with_late(self, dump: Dump) -> list[Dump]:
        """Return a dump of the chain, and the late dumps that were opened after it."""
        late = [one for one in self.late.get(dump.serials.end, ()) if one.sequence > dump.sequence]
        return [dump, *sorted(late, key=_opened)]

    def _best(self, candidates: Iterable[Dump]) -> Dump:
        return max((dump for dump in candidates if self.reach_of(dump) == self.furthest), key=_rank)


def _rank(dump: Dump) -> tuple[int, int, int]:
    """Rank the dumps that can come next in a chain that reaches furthest. The greatest is in the cover."""
    return 0 if dump.kind == DumpKind.FULL else dump.serials.end, dump.sequence, dump.id


def _opened(dump: Dump) -> tuple[int, int]:
    return dump.sequence, dump.id


def covered_since(dumps: Iterable[Dump], since: float) -> set[str]:
    """Return the directories of the committed `dumps` that were in the cover at any time since `since` (unix seconds).

    Dumps that were deleted in the meantime had left the cover before. This takes time in proportion to the number of
    `dumps`, if each commit since then added the next range or a compaction. After any other commit, such as a full
    dump, the whole cover is computed again.
    """
    in_order = sorted(dumps, key=_committed_at)
    count = bisect_right(in_order, since, key=_committed_at)
    cover = _GrowingCover()
    found = set(cover.add(in_order[:count]))
    for _, together in groupby(in_order[count:], key=_committed_at):
        found.update(cover.add(list(together)))
    return found


class _GrowingCover:
    """The cover while dumps are added in the order of their commits.

    `_at` has the ranges of the cover by their starts. The chains from the serials in `_leading` reach furthest.
    """

    def __init__(self) -> None:
        self._dumps: list[Dump] = []
        self._compute()

    def _compute(self) -> tuple[str, ...]:
        chains = self._chains = _Chains(self._dumps)
        cover = chains.cover
        self._at = {dump.serials.start: dump for dump in cover.dumps[1:] if not dump.is_late}
        self._furthest = chains.furthest
        self._starts = set(chains.by_start)
        self._leading = {start for start, reach in chains.reach.items() if reach == chains.furthest}
        self._leading.add(chains.furthest)
        return cover.directories

    def add(self, dumps: Sequence[Dump]) -> Sequence[str]:
        """Add `dumps`, which were committed at the same time.

        Returns directories that are in the cover now: all that were not before, and perhaps others.
        """
        self._dumps += dumps
        if len(dumps) == 1 and self._furthest and dumps[0].kind != DumpKind.FULL and not dumps[0].is_late:
            start, end = dumps[0].serials.start, dumps[0].serials.end
            if start == self._furthest and end not in self._starts:
                return self._append(dumps[0])
            if start in self._leading and end in self._leading and self._is_taken_up(start, end):
                return self._replace(dumps[0])
        return self._compute()

    def _append(self, dump: Dump) -> list[str]:
        """Append a range. All chains that reach furthest now end with it, since the chains that did before lead to its
        start.
        """
        self._at[dump.serials.start] = dump
        self._starts.add(dump.serials.start)
        self._furthest = dump.serials.end
        self._leading.add(dump.serials.end)
        return self._entering(dump)

    def _entering(self, dump: Dump) -> list[str]:
        """Return the directories of a dump that enters the cover, and of its late dumps.

        The late dumps are from the last full computation, and each late dump that is added later causes another
        computation.
        """
        return [one.directory for one in self._chains.with_late(dump)]

    def _is_taken_up(self, start: int, end: int) -> bool:
        """Check whether the cover contains the serial `end`, if it contains `start`."""
        return start not in self._at or end in self._at or end == self._furthest

    def _replace(self, dump: Dump) -> list[str]:
        """Replace ranges with a dump that reaches no further. Only dumps between its two ends can leave the cover."""
        start, end = dump.serials.start, dump.serials.end
        if start not in self._at or _rank(self._at[start]) > _rank(dump):
            return []
        while start != end:
            start = self._at.pop(start).serials.end
        self._at[dump.serials.start] = dump
        return self._entering(dump)


def _committed_at(dump: Dump) -> float:
    return dump.committed_at or 0.0


def open_ends(dumps: Iterable[Dump]) -> set[int]:
    """Return the ends of full dumps that are not committed yet. The ranges that follow these full dumps begin there."""
    return {dump.serials.end for dump in dumps if dump.kind == DumpKind.FULL and dump.state != DumpState.COMMITTED}


def _is_at_an_end(dump: Dump, serials: SerialRange) -> bool:
    """Check whether a dump has late changes up to the first or the last serial, which no compaction of `serials`
    joins.
    """
    return dump.is_late and dump.serials.end in {serials.start, serials.end}


def still_covered(compaction: Dump, dumps: Sequence[Dump]) -> bool:
    """Check whether a compaction may still be committed. `dumps` are all dumps that are not dropped.

    All leaves of the compaction must be in the cover, not yet joined into one dump, and the compaction must not cross
    the end of an open full dump.
    """
    serials = compaction.serials
    ranges = cover_of(dump for dump in dumps if dump.state == DumpState.COMMITTED).dumps[1:]
    joined = [dump for dump in ranges if serials.holds(dump.serials) and not _is_at_an_end(dump, serials)]
    crossed = any(serials.start < end < serials.end for end in open_ends(dumps))
    return len(joined) > 1 and all_leaves(dump.leaves for dump in joined) == compaction.leaves and not crossed
