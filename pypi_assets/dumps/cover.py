"""The cover: the dumps that readers use, of all that are committed."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_facts import DumpKind, all_leaves
from pypi_assets.catalog.publications.dump_registry import Dump, DumpState, committed_dumps


@dataclass(frozen=True, slots=True)
class Cover:
    """A full dump and the ranges that follow it, to be applied in this order; they reach up to `serial`.

    After the dump that reaches a serial come those of what was learnt late of the serials up to there.
    """

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
    """The cover of the dumps that are committed now; empty where there is no full dump.

    Reads all of these, which clean-ups keep few: the cover's own, and what was superseded lately.
    """
    return cover_of(committed_dumps(catalog))


def cover_of(dumps: Iterable[Dump]) -> Cover:
    """Of the chains of `dumps` from 0 that reach furthest, the one whose full dump has the greatest sequence, then at
    each step the range with the greatest end. Of two dumps of one range, the one with the greater sequence. Each is
    followed by the late dumps of its end that are newer, in order of their sequence.
    """
    return _Chains(dumps).cover


class _Chains:
    """The chains of some dumps, and their `cover`: each chain is a full dump and the ranges that follow it.

    `reach` is how far chains of ranges lead from a serial where one starts, and `furthest` how far they lead from 0.
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
        """How far the chains lead that begin with `dump`."""
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
        """A dump of the chain, and what was learnt late after it was opened."""
        late = [one for one in self.late.get(dump.serials.end, ()) if one.sequence > dump.sequence]
        return [dump, *sorted(late, key=_opened)]

    def _best(self, candidates: Iterable[Dump]) -> Dump:
        return max((dump for dump in candidates if self.reach_of(dump) == self.furthest), key=_rank)


def _rank(dump: Dump) -> tuple[int, int, int]:
    """Of the dumps that can come next in a chain that leads as far as any, the greatest is in the cover."""
    return 0 if dump.kind == DumpKind.FULL else dump.serials.end, dump.sequence, dump.id


def _opened(dump: Dump) -> tuple[int, int]:
    return dump.sequence, dump.id


def covered_since(dumps: Iterable[Dump], since: float) -> set[str]:
    """The directories of those of `dumps`, all of them committed, that were in the cover at any moment since then.

    `since` is in unix seconds. What has been deleted meanwhile had left the cover before. Takes time in proportion to
    the number of `dumps`, as long as the next range or a compaction is committed. At each other commit since then, such
    as a full dump's, all of them are looked at again.
    """
    in_order = sorted(dumps, key=_committed_at)
    count = bisect_right(in_order, since, key=_committed_at)
    cover = _GrowingCover()
    found = set(cover.add(in_order[:count]))
    for _, together in groupby(in_order[count:], key=_committed_at):
        found.update(cover.add(list(together)))
    return found


class _GrowingCover:
    """The cover of dumps to which others are added, in the order of their commits.

    `_at` has the ranges of the cover by their starts. From `_leading` serials chains lead as far as any chain does.
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
        """Adds `dumps`, which were committed at one moment. Returns directories that are in the cover now: all that
        were not before, and perhaps others."""
        self._dumps += dumps
        if len(dumps) == 1 and self._furthest and dumps[0].kind != DumpKind.FULL and not dumps[0].is_late:
            start, end = dumps[0].serials.start, dumps[0].serials.end
            if start == self._furthest and end not in self._starts:
                return self._append(dumps[0])
            if start in self._leading and end in self._leading and self._is_taken_up(start, end):
                return self._replace(dumps[0])
        return self._compute()

    def _append(self, dump: Dump) -> list[str]:
        """All chains that lead furthest end with this one now: those that led furthest before lead to it."""
        self._at[dump.serials.start] = dump
        self._starts.add(dump.serials.start)
        self._furthest = dump.serials.end
        self._leading.add(dump.serials.end)
        return self._entering(dump)

    def _entering(self, dump: Dump) -> list[str]:
        """The directories of a dump that enters, and of what was learnt late after it was opened: the late dumps are
        those of the last time that all were looked at, which each of them leads to."""
        return [one.directory for one in self._chains.with_late(dump)]

    def _is_taken_up(self, start: int, end: int) -> bool:
        """Whether the cover, if it holds the serial `start`, holds `end` too."""
        return start not in self._at or end in self._at or end == self._furthest

    def _replace(self, dump: Dump) -> list[str]:
        """It leads no further than what was there before: only what the cover has between its ends can leave it."""
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
    """The serials of the full dumps that are not committed yet: the ranges that follow these begin there."""
    return {dump.serials.end for dump in dumps if dump.kind == DumpKind.FULL and dump.state != DumpState.COMMITTED}


def _is_at_an_end(dump: Dump, serials: SerialRange) -> bool:
    """Whether it has what was learnt late up to the first or the last serial: no compaction of `serials` joins that."""
    return dump.is_late and dump.serials.end in {serials.start, serials.end}


def still_covered(compaction: Dump, dumps: Sequence[Dump]) -> bool:
    """Whether a compaction may be committed, of all `dumps` that are not dropped: all its leaves are in the cover and
    not joined into one there, and it does not cross the end of an open full dump.
    """
    serials = compaction.serials
    ranges = cover_of(dump for dump in dumps if dump.state == DumpState.COMMITTED).dumps[1:]
    joined = [dump for dump in ranges if serials.holds(dump.serials) and not _is_at_an_end(dump, serials)]
    crossed = any(serials.start < end < serials.end for end in open_ends(dumps))
    return len(joined) > 1 and all_leaves(dump.leaves for dump in joined) == compaction.leaves and not crossed
