"""The cover meets its definition, checked by trying every chain."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_columns import DumpKind
from pypi_assets.catalog.publications.dump_registry import Dump, DumpState
from pypi_assets.dumps import cover as cover_module
from pypi_assets.dumps.cover import Cover, cover_of, covered_since
from pypi_assets_tests.examples import examples


def dump(number: int, kind: DumpKind, start: int, end: int, sequence: int | None = None) -> Dump:
    return Dump(
        number,
        kind,
        SerialRange(start, end),
        f"{start}-{end}.{number}",
        number if sequence is None else sequence,
        1,
        DumpState.COMMITTED,
    )


def all_chains(chain: list[Dump], ranges: Sequence[Dump]) -> Iterator[list[Dump]]:
    yield chain
    for following in ranges:
        if following.serials.start == chain[-1].serials.end:
            yield from all_chains([*chain, following], ranges)


def slow_cover(dumps: Sequence[Dump]) -> tuple[Dump, ...]:
    """Return the best chain, with the late dumps of each of its dumps' serials after it."""
    late = sorted((one for one in dumps if one.is_late), key=lambda one: (one.sequence, one.id))
    return tuple(
        found
        for one in slow_chain([one for one in dumps if not one.is_late])
        for found in [
            one,
            *(each for each in late if each.serials.end == one.serials.end and each.sequence > one.sequence),
        ]
    )


def slow_chain(dumps: Sequence[Dump]) -> tuple[Dump, ...]:
    ranges = [one for one in dumps if one.kind != DumpKind.FULL]
    chains = [chain for full in dumps if full.kind == DumpKind.FULL for chain in all_chains([full], ranges)]
    if not chains:
        return ()
    furthest = max(chain[-1].serials.end for chain in chains)
    reaching = [chain for chain in chains if chain[-1].serials.end == furthest]
    return tuple(
        max(
            reaching,
            key=lambda chain: (
                (chain[0].sequence, chain[0].id),
                [(one.serials.end, one.sequence, one.id) for one in chain[1:]],
            ),
        )
    )


@st.composite
def dump_sets(draw: st.DrawFn) -> list[Dump]:
    dumps = []
    for number in range(draw(st.integers(0, 9))):
        kind = draw(st.sampled_from(DumpKind))
        start = 0 if kind == DumpKind.FULL else draw(st.integers(0, 6))
        least = start if kind == DumpKind.INCREMENTAL else start + 1
        dumps.append(dump(number, kind, start, draw(st.integers(least, 7)), draw(st.integers(1, 9))))
    return dumps


@settings(max_examples=examples(400), deadline=None)
@given(dump_sets(), st.randoms())
def test_cover_is_the_best_of_all_chains(dumps: list[Dump], random: object) -> None:
    expected = slow_cover(dumps)
    found = cover_of(dumps)
    assert found.dumps == expected
    assert found.serial == (expected[-1].serials.end if expected else 0)
    random.shuffle(dumps)  # type: ignore[attr-defined]
    assert cover_of(dumps) == found


def slowly_covered_since(dumps: Sequence[Dump], since: float) -> set[str]:
    moments = {since, *(one.committed_at or 0.0 for one in dumps)}
    covers = [
        cover_of([one for one in dumps if (one.committed_at or 0.0) <= moment]) for moment in moments if moment >= since
    ]
    return {directory for cover in covers for directory in cover.directories}


@settings(max_examples=examples(400), deadline=None)
@given(dump_sets(), st.data())
def test_covered_since_equals_the_covers_of_all_moments(dumps: list[Dump], data: st.DataObject) -> None:
    committed = [replace(one, committed_at=float(data.draw(st.integers(0, 9)))) for one in dumps]
    since = float(data.draw(st.integers(-1, 9)))
    assert covered_since(committed, since) == slowly_covered_since(committed, since)


@settings(max_examples=examples(100), deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 9))
def test_covered_since_is_exact_while_ranges_are_joined(random: Random, count: int) -> None:
    """Consecutive ranges are joined and rewritten in any order, with full dumps in between."""
    committed, end = [dump(0, DumpKind.FULL, 0, 1)], 1
    for number in range(1, count + 8):
        if end > 2 and random.random() < 0.4:
            start, stop = sorted(random.sample(range(1, end + 1), 2))
            committed.append(dump(number, DumpKind.COMPACTED, start, stop))
        elif random.random() < 0.2:
            committed.append(dump(number, DumpKind.FULL, 0, random.randint(1, end)))
        elif random.random() < 0.2:
            committed.append(dump(number, DumpKind.INCREMENTAL, end, end))
        else:
            committed.append(dump(number, DumpKind.INCREMENTAL, end, end + 1))
            end += 1
    if random.random() < 0.5:
        random.shuffle(committed)
    committed = [replace(one, committed_at=float(at)) for at, one in enumerate(committed)]
    since = float(random.randint(-1, len(committed)))
    assert covered_since(committed, since) == slowly_covered_since(committed, since)


def test_day_of_ranges_and_compactions_searches_all_dumps_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the next range nor a compaction triggers a new search of the cover among all dumps."""
    found = 0

    class Counted(cover_module._Chains):
        def __init__(self, dumps: Iterable[Dump]) -> None:
            nonlocal found
            found += 1
            super().__init__(dumps)

    monkeypatch.setattr(cover_module, "_Chains", Counted)
    committed = [dump(0, DumpKind.FULL, 0, 1)]
    for number in range(1, 301):
        committed.append(dump(number, DumpKind.INCREMENTAL, number, number + 1))
        if number % 10 == 0:
            committed.append(dump(1000 + number, DumpKind.COMPACTED, number - 9, number + 1, number - 9))
    committed = [replace(one, committed_at=float(at)) for at, one in enumerate(committed)]
    since = covered_since(committed, 100.0)
    assert found == 2  # one search without dumps, and one for the earlier dumps
    assert len(since) == 10 + 231  # the earlier compactions, and all later dumps


def test_no_cover_exists_without_a_full_dump() -> None:
    assert cover_of([dump(1, DumpKind.INCREMENTAL, 0, 5)]) == Cover()
    assert (Cover().serial, Cover().directories) == (0, ())


def test_newer_full_dump_and_compaction_supersede() -> None:
    old, a, b = (
        dump(1, DumpKind.FULL, 0, 10),
        dump(2, DumpKind.INCREMENTAL, 10, 20),
        dump(3, DumpKind.INCREMENTAL, 20, 30),
    )
    assert cover_of([old, a, b]).dumps == (old, a, b)
    joined = dump(4, DumpKind.COMPACTED, 10, 30, sequence=2)
    assert cover_of([old, a, b, joined]).dumps == (old, joined)
    new = dump(5, DumpKind.FULL, 0, 20)
    assert cover_of([old, a, b, joined, new]).dumps == (new, b)


def test_newer_full_dump_with_lower_end_is_not_used() -> None:
    old, a = dump(1, DumpKind.FULL, 0, 10), dump(2, DumpKind.INCREMENTAL, 10, 30)
    assert cover_of([old, a, dump(3, DumpKind.FULL, 0, 20)]).dumps == (old, a)
