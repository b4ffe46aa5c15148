"""Patterns of build backends match like git's ignore patterns and like globs."""

import fnmatch
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.distributions import path_patterns
from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.members import by_folder, paths_of
from pypi_assets.distributions.path_patterns import (
    MAX_STEPS,
    Effort,
    Patterns,
    matches_glob,
    matching,
    matching_paths,
    without,
)


def test_patterns(subtests: pytest.Subtests):
    cases = [
        ("demo", ["demo"], ["Demo", "demo.x", "xdemo", ""]),
        ("*", ["", "a", "a/b", "a\nb"], []),
        ("demo.*", ["demo.", "demo.a.b"], ["demo"]),
        ("*.test?", ["a.tests", ".test\n"], ["a.test", "test1"]),
        ("a*b*c", ["abc", "aXbXbXc"], ["ab", "acb"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "x", "-x"]),
        ("[!a-c]x", ["dx", "!x"], ["ax"]),
        ("[]]", ["]"], ["[]]", ""]),
        ("[!]]", ["a"], ["]"]),
        ("[!]", ["[!]"], ["!", "a"]),
        ("[", ["["], ["a"]),
        ("[]", ["[]"], ["]"]),
        ("[a", ["[a"], ["a"]),
        ("[c-a]", [], ["a", "b", "c", "-"]),
        ("[!c-a]", ["a", "\n"], [""]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[^a]", ["^", "a"], ["b"]),
        ("[\\]", ["\\"], ["]"]),
        ("a.b+(c)", ["a.b+(c)"], ["aXb+(c)"]),
        ("**", ["", "a"], []),
    ]
    for pattern, names, others in cases:
        with subtests.test(pattern=pattern):
            assert [name for name in (*names, *others) if matches_glob(name, pattern)] == names


@given(st.text("ab*?[]!^\\.&|~\n", max_size=8), st.text("ab]![^.\\\n", max_size=6))
def test_patterns_without_ranges_match_like_fnmatch(pattern, name):
    assert matches_glob(name, pattern) == fnmatch.fnmatchcase(name, pattern)


def test_many_stars_are_fast():
    started = time.process_time()
    assert not matches_glob("a" * 4000, "*a" * 60 + "b")
    assert time.process_time() - started < 2


PATHS = ["a.py", "a/b.py", "a/c/b.py", "a/c/d.txt", "x/a/b.py"]


def test_gitignore(subtests: pytest.Subtests):
    cases = [
        (["*.py"], ["a.py", "a/b.py", "a/c/b.py", "x/a/b.py"]),
        (["/*.py"], ["a.py"]),
        (["a"], ["a/b.py", "a/c/b.py", "a/c/d.txt", "x/a/b.py"]),
        (["/a"], ["a/b.py", "a/c/b.py", "a/c/d.txt"]),
        (["a.py/"], []),
        (["a/b.py"], ["a/b.py"]),
        (["**/a/b.py"], ["a/b.py", "x/a/b.py"]),
        (["a/**"], ["a/b.py", "a/c/b.py", "a/c/d.txt"]),
        (["a/**/b.py"], ["a/b.py", "a/c/b.py"]),
        (["/a", "!d.txt"], ["a/b.py", "a/c/b.py"]),
        (["?/[bc]*"], ["a/b.py", "a/c/b.py", "a/c/d.txt"]),
        (["", "/", "./a.py", "a//b.py", "# a"], []),
        (["a/**/"], ["a/b.py", "a/c/b.py", "a/c/d.txt"]),
        (["**/"], ["a/b.py", "a/c/b.py", "a/c/d.txt", "x/a/b.py"]),
        (["*.py", "!a/"], ["a.py", "a/b.py", "a/c/b.py", "x/a/b.py"]),
        (["!a/b.py", "a/"], ["a/c/b.py", "a/c/d.txt", "x/a/b.py"]),
        (["a/", "!a/", "d.*"], ["a/c/d.txt"]),
        (["\\a.py  ", "\\#", "\\!x"], ["a.py"]),
        (["a/c/\\*", "[!a].py"], ["a/b.py", "a/c/b.py", "x/a/b.py"]),
    ]
    for patterns, expected in cases:
        with subtests.test(patterns=patterns):
            assert matching_paths(PATHS, patterns, Patterns.GITIGNORE, Effort()) == expected


@pytest.mark.parametrize(
    ("pattern", "below_folders", "files_alone"),
    [
        ("a", ["a/b.py", "a/c/b.py", "a/c/d.txt"], []),
        ("a/*", ["a/b.py", "a/c/b.py", "a/c/d.txt"], ["a/b.py"]),
        ("**/*.py", ["a.py", "a/b.py", "a/c/b.py", "x/a/b.py"], ["a.py", "a/b.py", "a/c/b.py", "x/a/b.py"]),
        ("a/**", ["a/b.py", "a/c/b.py", "a/c/d.txt"], ["a/b.py", "a/c/b.py", "a/c/d.txt"]),
        ("./a//b.py", ["a/b.py"], ["a/b.py"]),
        ("!a", [], []),
    ],
)
def test_globs(pattern, below_folders, files_alone):
    assert matching_paths(PATHS, [pattern], Patterns.GLOB, Effort()) == below_folders
    assert matching_paths(PATHS, [pattern], Patterns.FILE_GLOB, Effort()) == files_alone


def test_without_keeps_the_order():
    files = by_folder(PATHS)
    assert paths_of(without(files, ["a"], Patterns.GLOB, Effort())) == ["a.py", "x/a/b.py"]
    assert without(files, [], Patterns.GLOB, Effort()) == files


def test_many_stars_take_bounded_time():
    path = "/".join(["a"] * 300)
    assert matching_paths([path], ["**/a/" * 300 + "b"], Patterns.GITIGNORE, Effort()) == []


def test_too_many_patterns_are_rejected():
    with pytest.raises(LimitExceededError):
        matching_paths(["a"] * 10_000, ["a*"] * (MAX_STEPS // 10_000 + 1), Patterns.GLOB, Effort())


def test_patterns_with_many_possible_matches_are_rejected():
    with pytest.raises(LimitExceededError):
        matching_paths(["a/" * 1000 + "b"] * 20, ["**/a*/" * 600 + "c"], Patterns.GITIGNORE, Effort())
    with pytest.raises(LimitExceededError):
        matching_paths(["a"], ["a" * 5000], Patterns.GLOB, Effort())


def test_effort_limit_is_shared_by_matchings():
    effort = Effort()
    matching_paths(["a", "b"] * 500, ["a*b"] * (MAX_STEPS // 4000), Patterns.GLOB, effort)
    with pytest.raises(LimitExceededError):
        matching_paths(["a", "b"] * 500, ["a*b"] * (MAX_STEPS // 4000), Patterns.GLOB, effort)


def test_preparing_patterns_costs_effort():
    with pytest.raises(LimitExceededError):
        matching_paths(["a"], [f"b{number}" for number in range(20_000)], Patterns.GLOB, Effort())


def test_longer_patterns_cost_more_effort():
    with pytest.raises(LimitExceededError):
        matching_paths(["a/" * 2000 + "b"] * 100, ["**/" + "a*/" * 300 + "b"], Patterns.GLOB, Effort())


PARTS = st.sampled_from(["a", "b", "a.b", ".", "a\nb", "[a]"])
PATTERN_PARTS = st.one_of(PARTS, st.sampled_from(["**", "*", "a*", "*b", "a*b", "!a", "*.b", "(a", "?", ""]))


PATTERNS = st.lists(PATTERN_PARTS, min_size=1, max_size=5).map("/".join)
SOME_PATHS = st.lists(PARTS, min_size=1, max_size=5).map("/".join)


@given(PATTERNS, SOME_PATHS, st.sampled_from(Patterns))
def test_simple_patterns_match_like_the_general_case(pattern: str, path: str, kind: Patterns):
    compiled = path_patterns._compiled_pattern(pattern, kind)
    if compiled.segments:
        matches = path.startswith(compiled.start) and path_patterns._matches(compiled, path, Effort())
        assert path_patterns._matched(compiled, [path], Effort()) == ({path} if matches else set())


@given(st.lists(PATTERNS, max_size=3), st.lists(SOME_PATHS, unique=True), st.sampled_from(Patterns))
def test_files_in_folders_match_like_their_paths(patterns: list[str], paths: list[str], kind: Patterns):
    files = by_folder(paths)
    paths = paths_of(files)
    named = matching_paths(paths, patterns, kind, Effort())
    assert paths_of(matching(files, patterns, kind, Effort())) == named
    assert paths_of(without(files, patterns, kind, Effort())) == [path for path in paths if path not in named]
