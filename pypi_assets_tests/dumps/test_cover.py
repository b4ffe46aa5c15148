"""The cover is what its definition requires, found here the slow way, by trying every chain."""

from collections.abc import Iterator, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_files import DumpKind
from pypi_assets.catalog.publications.dump_registry import Dump, DumpState
from pypi_assets.dumps.cover import Cover, cover_of


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
        dumps.append(dump(number, kind, start, draw(st.integers(start + 1, 7)), draw(st.integers(1, 9))))
    return dumps


@settings(max_examples=400, deadline=None)
@given(dump_sets(), st.randoms())
def test_the_cover_is_the_best_of_all_chains(dumps: list[Dump], random: object) -> None:
    expected = slow_cover(dumps)
    found = cover_of(dumps)
    assert found.dumps == expected
    assert found.serial == (expected[-1].serials.end if expected else 0)
    random.shuffle(dumps)  # type: ignore[attr-defined]
    assert cover_of(dumps) == found


def test_without_a_full_dump_there_is_no_cover() -> None:
    assert cover_of([dump(1, DumpKind.INCREMENTAL, 0, 5)]) == Cover()
    assert (Cover().serial, Cover().directories) == (0, ())


def test_a_newer_full_dump_and_a_compaction_supersede() -> None:
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


def test_a_newer_full_dump_that_reaches_less_far_is_not_used() -> None:
    old, a = dump(1, DumpKind.FULL, 0, 10), dump(2, DumpKind.INCREMENTAL, 10, 30)
    assert cover_of([old, a, dump(3, DumpKind.FULL, 0, 20)]).dumps == (old, a)
