"""What a version holds is compared by its leaves, as if their names were listed, and takes two texts for ever."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.catalog.ledger.serial_range import RangeError, SerialRange
from pypi_assets.catalog.publications.dump_facts import DumpKind, Leaves
from pypi_assets.catalog.publications.dump_registry import Dump, DumpState
from pypi_assets.leveldbs.versions.held_dumps import HeldDumps


def dump(serials: SerialRange, directory: str, joined: Sequence[str] = ()) -> Dump:
    kind = DumpKind.FULL if serials.start == 0 else DumpKind.COMPACTED if joined else DumpKind.INCREMENTAL
    leaves = Leaves.of(joined) if joined else None
    return Dump(1, kind, serials, directory, 1, 1, DumpState.COMMITTED, joined=leaves)


@st.composite
def covers(draw: st.DrawFn) -> tuple[list[Dump], list[str]]:
    """A cover, and the directories of its leaves, the full dump's first."""
    full = draw(st.sampled_from(["0-10", "0-10.2"]))
    dumps, leaves, end = [dump(SerialRange(0, 10), full)], [full], 10
    for _ in range(draw(st.integers(0, 4))):
        start, names = end, []
        for _ in range(draw(st.integers(1, 3))):
            names.append(f"{end}-{end + 10}{draw(st.sampled_from(['', '.2']))}")
            end += 10
        directory = names[0] if len(names) == 1 else f"{start}-{end}"
        dumps.append(dump(SerialRange(start, end), directory, names if len(names) > 1 else ()))
        leaves += names
    return dumps, leaves


def follows(held: list[str], cover: list[Dump], leaves: list[str]) -> tuple[Dump, ...] | None:
    """What the rule demands of a list of names: the dumps after the leaves `held`, if the cover begins with these."""
    if leaves[: len(held)] != held:
        return None
    left = len(held)
    for position, one in enumerate(cover):
        if left == 0:
            return tuple(cover[position:])
        left -= one.leaves.count
    return () if left == 0 else None


@given(covers(), covers())
def test_a_cover_goes_on_from_what_is_held_as_if_names_were_compared(
    held: tuple[list[Dump], list[str]], later: tuple[list[Dump], list[str]]
) -> None:
    dumps, leaves = held
    found = HeldDumps.of(dumps)
    assert found.following(dumps) == ()
    for one in (found, HeldDumps.decode(found.encode())):
        assert one == found
        assert one.following(later[0]) == follows(leaves, *later)
    assert len(found.encode()) <= 2


def test_a_year_of_ranges_takes_two_texts() -> None:
    names = [f"{start}-{start + 10}" for start in range(10, 525_610, 10)]
    cover = [dump(SerialRange(0, 10), "0-10"), dump(SerialRange(10, 525_610), "10-525610", names)]
    full, ranges = HeldDumps.of(cover).encode()
    assert (full, ranges[:-64]) == ("0-10", "10-525610:52560:")


@pytest.mark.parametrize("texts", [[], ["0-10", "nothing"], ["0-10", "10-20:x:y"], ["0-10", "10-20"]])
def test_what_is_no_list_of_dumps_is_refused(texts: list[str]) -> None:
    with pytest.raises((ValueError, RangeError)):
        HeldDumps.decode(texts)


def test_without_dumps_nothing_follows() -> None:
    assert HeldDumps("0-10").following(()) is None
