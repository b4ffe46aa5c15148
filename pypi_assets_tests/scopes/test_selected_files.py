"""Only the files of the newest stable release at each serial are selected, and their requirements count."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import InvalidVersion, Version

from pypi_assets.scopes.closure import EVER, OPEN_END, union
from pypi_assets.scopes.ruleset import RequirementRules, ScopeFile, selected_spans

LAST = 12
SPANS = st.lists(st.tuples(st.integers(0, LAST), st.integers(0, LAST)), max_size=3).map(union)
VERSIONS = ("1.0", "1.0.0", "1.1", "2.0rc1", "2.0.dev1", "2!0.1", "2.0", "odd version")
FILES = st.lists(
    st.builds(ScopeFile, st.sampled_from(VERSIONS), st.sampled_from(("wheel", "sdist", "egg")), SPANS, SPANS),
    max_size=8,
)


def wheel(version: str, since: int, yanked: tuple[tuple[int, int], ...] = ()) -> ScopeFile:
    return ScopeFile(version, "wheel", ((since, OPEN_END),), yanked)


def test_release_is_selected_until_a_newer_release() -> None:
    files = [wheel("1.0", 3), wheel("2.0", 7), wheel("0.9", 9), wheel("2.1rc1", 8)]
    assert selected_spans(files, RequirementRules()) == [((3, 7),), ((7, OPEN_END),), (), ()]


def test_yank_selects_the_previous_release() -> None:
    files = [wheel("1.0", 3), wheel("2.0", 5, ((6, 8),))]
    assert selected_spans(files, RequirementRules()) == [((3, 5), (6, 8)), ((5, 6), (8, OPEN_END))]


def test_pre_release_is_selected_without_a_stable_release() -> None:
    assert selected_spans([wheel("1.0a1", 1), wheel("1.0", 4)], RequirementRules()) == [((1, 4),), ((4, OPEN_END),)]


def test_two_spellings_are_one_release() -> None:
    assert selected_spans([wheel("1.0", 1), wheel("1.0.0", 4)], RequirementRules()) == [
        ((1, OPEN_END),),
        ((4, OPEN_END),),
    ]


def test_files_of_other_kinds_select_nothing() -> None:
    files = [wheel("1.0", 1), ScopeFile("2.0", "sdist", EVER)]
    assert selected_spans(files, RequirementRules(kinds=("wheel",))) == [((1, OPEN_END),), ()]


def test_all_releases_can_be_selected() -> None:
    files = [wheel("1.0", 3), wheel("2.0", 7, ((9, OPEN_END),)), wheel("2.0rc1", 1)]
    assert selected_spans(files, RequirementRules(releases="all")) == [((3, OPEN_END),), ((7, 9),), ((1, OPEN_END),)]


def expected(files: Sequence[ScopeFile], rules: RequirementRules, serial: int) -> list[bool]:
    """Return the files selected at one serial, by the literal rule."""

    def rank(version: str) -> tuple[int, Version | str]:
        try:
            return 2 - Version(version).is_prerelease, Version(version)
        except InvalidVersion:
            return 0, version

    def holds(spans: tuple[tuple[int, int], ...]) -> bool:
        return any(start <= serial < end for start, end in spans)

    usable = [file.kind in rules.kinds and holds(file.live) and not holds(file.yanked) for file in files]
    ranks = [rank(file.version) for file, is_usable in zip(files, usable, strict=True) if is_usable]
    newest = max(ranks) if ranks else None  # type: ignore[type-var]
    return [
        is_usable and (rules.releases == "all" or rank(file.version) == newest)
        for file, is_usable in zip(files, usable, strict=True)
    ]


@pytest.mark.parametrize("releases", ["latest", "all"])
@given(FILES, st.sets(st.sampled_from(("wheel", "sdist", "egg")), min_size=1))
def test_selection_is_the_newest_release_at_each_serial(releases: str, files: list[ScopeFile], kinds: set[str]) -> None:
    rules = RequirementRules(releases=releases, kinds=tuple(kinds))  # type: ignore[arg-type]
    found = selected_spans(files, rules)
    for serial in range(LAST + 1):
        is_selected = [any(start <= serial < end for start, end in spans) for spans in found]
        assert is_selected == expected(files, rules, serial)
