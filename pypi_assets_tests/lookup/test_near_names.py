"""Near names match a comparison with every name, and cost a bounded number of seeks."""

from bisect import bisect_left
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.lookup import near_names as module
from pypi_assets.lookup.near_names import MOST_NAMES, Seek, first_names, near_names

_CHARACTERS = "abcAB12-_.é"
_NAMES = st.lists(st.text(_CHARACTERS, min_size=1, max_size=8), max_size=40)


def seek_in(names: Sequence[str]) -> Seek:
    ordered = sorted(set(names))

    def seek(least: str) -> str | None:
        place = bisect_left(ordered, least)
        return ordered[place] if place < len(ordered) else None

    return seek


def fold(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def edits(one: str, other: str) -> int:
    """Return the optimal string alignment distance, computed with the textbook table."""
    table = [[max(i, j) if not (i and j) else 0 for j in range(len(other) + 1)] for i in range(len(one) + 1)]
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            substituted = table[i - 1][j - 1] + (one[i - 1] != other[j - 1])
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, substituted)
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


@given(names=_NAMES, wanted=st.text(_CHARACTERS, min_size=1, max_size=8))
def test_near_names_match_a_comparison_with_all_names(names: list[str], wanted: str) -> None:
    distances = {name: edits(fold(name), fold(wanted)) for name in names if name != wanted}
    for most_edits in range((len(wanted) >= 3) + (len(wanted) >= 5) + 1):
        expected = {
            name
            for name, distance in distances.items()
            if distance <= most_edits and (most_edits < 2 or fold(name[0]) == fold(wanted[0]))
        }
        if expected:
            break
    if not expected and len(wanted) >= 3:
        expected = {name for name in names if name.startswith(wanted) and name != wanted}
    near = near_names(seek_in(names), wanted, most=len(names) + 1)
    assert set(near) == expected
    assert len(near) == len(expected)
    assert near_names(seek_in(names), wanted) == near[:MOST_NAMES]


MISTYPED = [
    ("yamll", ("yaml",)),
    ("Yaml", ("yaml",)),
    ("YAML", ("yaml",)),
    ("reqeusts", ("requests",)),
    ("resquests-oauthlib", ("requests-oauthlib",)),
    ("google_cloud.storage", ("google.cloud.storage",)),
    ("pil", ("PIL",)),
    ("yaml", ("yarl",)),
    ("io", ()),
    ("requests-oa", ("requests-oauthlib",)),
    ("half \udc80", ()),
    ("something else", ()),
    ("", ()),
    ("y" * 500, ()),
]


def test_typical_typos_are_found(subtests: pytest.Subtests) -> None:
    for wanted, found in MISTYPED:
        with subtests.test(wanted=wanted, found=found):
            names = [
                "PIL",
                "google.cloud.storage",
                "os",
                "requests",
                "requests-oauthlib",
                "toml",
                "yaml",
                "yarl",
                "größe",
            ]
            assert (
                near_names(seek_in([name for name in names if name != wanted]), wanted)[: len(found) or None] == found
            )


@pytest.mark.parametrize("wanted", ["abcdef", "aaaaaaaaaa", "x" * 90])
def test_search_makes_a_bounded_number_of_seeks(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{first}{second}{third}{rest}" for first in "abcdefgh" for second in "abcdefgh" for third in "abcdefgh"
             for rest in ("", "a", "bcd", "defg", "aaaaaaa")]  # fmt: skip
    monkeypatch.setattr(module, "_MOST_SEEKS", 50)
    every_name, seeks = seek_in(names), 0

    def seek(least: str) -> str | None:
        nonlocal seeks
        seeks += 1
        return every_name(least)

    assert set(near_names(seek, wanted)) <= set(names)
    assert seeks <= 3 * 50 + MOST_NAMES


def test_most_of_a_large_set_is_never_read() -> None:
    beginnings = [first + second for first in "abcdefghijklmnop" for second in "qrstuvw"]
    names = ["package-name", *(f"{beginning}{number}" for beginning in beginnings for number in range(300))]
    every_name, read = seek_in(names), list[str | None]()

    def seek(least: str) -> str | None:
        read.append(every_name(least))
        return read[-1]

    assert near_names(seek, "pakage-name") == ("package-name",)
    assert len(read) < len(names) / 50


@given(names=_NAMES, beginning=st.text(_CHARACTERS, max_size=2), most=st.integers(0, 5))
def test_first_names_are_the_first_with_the_prefix(names: list[str], beginning: str, most: int) -> None:
    expected = [name for name in sorted(set(names)) if name.startswith(beginning)]
    assert first_names(seek_in(names), beginning, most) == expected[:most]


@given(names=_NAMES, beginning=st.text(_CHARACTERS, max_size=2), most=st.integers(1, 5))
def test_first_names_are_cut_at_the_separator(names: list[str], beginning: str, most: int) -> None:
    seeks: list[str] = []
    seek = seek_in(names)

    def counted(least: str) -> str | None:
        seeks.append(least)
        return seek(least)

    found = first_names(counted, beginning, most, ".")
    cut = {beginning + name.removeprefix(beginning).partition(".")[0] for name in names if name.startswith(beginning)}
    assert set(found) <= cut
    assert len(found) == len(set(found)) == min(most, len(cut)) or len(cut) > len(found) == most
    assert len(seeks) <= 2 * most + 1
