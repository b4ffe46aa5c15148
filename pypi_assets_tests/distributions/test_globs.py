"""Names are matched as by fnmatch, but for what its versions disagree on."""

import fnmatch
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.distributions.globs import matches_glob


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
def test_without_ranges_it_is_fnmatch(pattern, name):
    assert matches_glob(name, pattern) == fnmatch.fnmatchcase(name, pattern)


def test_many_stars_take_no_time():
    started = time.process_time()
    assert not matches_glob("a" * 4000, "*a" * 60 + "b")
    assert time.process_time() - started < 2
