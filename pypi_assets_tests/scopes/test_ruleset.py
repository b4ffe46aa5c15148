"""Rules: the last match wins, each invalid key is reported, and the same files lead to the same decisions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.scopes.ruleset import RuledFile, RulesError, Ruleset, parse_ruleset, refused_roots
from pypi_assets_tests.naming import mentions, naming

RULES = """
requirements = { releases = "all", extras = true, kinds = ["wheel"] }
[[rule]]
projects = ["*-Nightly", "tf_*"]
accept = false
[[rule]]
projects = ["tf-keras"]
accept = true
nice = 5
[[rule]]
projects = ["torch*"]
nice = 1000
max_files = 2
[[rule]]
kinds = ["sdist"]
uploaded_before = "2018-01-01"
skip = true
"""
DAY_S = 86_400.0
START_OF_2018 = 1_514_764_800.0


def wheel(name: str, day: float | None) -> RuledFile:
    return RuledFile(name, "wheel", None if day is None else START_OF_2018 + day * DAY_S)


def test_requirements_come_from_the_newest_release_unless_widened() -> None:
    assert parse_ruleset("").requirements.releases == "latest"
    assert not parse_ruleset("").requirements.extras
    widened = parse_ruleset(RULES).requirements
    assert (widened.releases, widened.extras, widened.kinds) == ("all", True, ("wheel",))


@pytest.mark.parametrize(
    ("project", "is_accepted"),
    [("demo", True), ("demo-nightly", False), ("tf-nightly", False), ("tf-keras", True), ("tensorflow", True)],
)
def test_last_matching_rule_decides_whether_a_project_enters(project: str, is_accepted: bool) -> None:
    assert parse_ruleset(RULES).accepts(project) is is_accepted


def test_setting_comes_from_the_last_rule_that_has_it() -> None:
    rules = parse_ruleset(RULES)
    assert rules.deciding_rule("tf-keras", "accept") == (2, True)
    assert [rules.nice(name) for name in ("demo", "tf-keras", "torch", "torchvision")] == [0, 5, 1000, 1000]
    assert (rules.max_files("torch"), rules.max_files("demo")) == (2, None)


def test_files_are_skipped_by_kind_and_age() -> None:
    old, new = START_OF_2018 - 1, START_OF_2018
    files = [
        RuledFile("a-1.tar.gz", "sdist", old),
        RuledFile("a-2.tar.gz", "sdist", new),
        RuledFile("a-3.tar.gz", "sdist", None),
        RuledFile("a-1-py3-none-any.whl", "wheel", old),
    ]
    [(filename, reason)] = parse_ruleset(RULES).skipped("a", files).items()
    assert filename == "a-1.tar.gz"
    assert mentions(reason, "rule 4")


def test_only_the_newest_files_are_read() -> None:
    files = [wheel("b", 1), wheel("d", None), wheel("a", 3), wheel("c", 2)]
    skipped = parse_ruleset(RULES).skipped("torch", files)
    assert skipped.keys() == {"b", "d"}
    assert all(mentions(reason, "rule 3", 2) for reason in skipped.values())
    assert parse_ruleset(RULES).skipped("demo", files) == {}


def test_later_rule_unskips_files() -> None:
    text = '[[rule]]\nskip = true\n[[rule]]\nprojects = ["demo"]\nkinds = ["wheel"]\nskip = false\n'
    files = [wheel("a", 1), RuledFile("b", "sdist", 0.0)]
    [(filename, reason)] = parse_ruleset(text).skipped("demo", files).items()
    assert filename == "b"
    assert mentions(reason, "rule 1")


@given(st.permutations([wheel(name, day) for name, day in zip("abcdef", (3, 3, None, 1, None, 2), strict=True)]))
def test_order_of_files_does_not_matter(files: list[RuledFile]) -> None:
    assert set(parse_ruleset(RULES).skipped("torch", files)) == set("cdef")


def test_invalid_value_is_reported_with_its_rule_and_key(subtests: pytest.Subtests) -> None:
    cases = [
        (
            "[[rule]]\nfoo = 1",
            ["rule 1", "projects", "kinds", "uploaded_before", "accept", "skip", "nice", "max_files"],
        ),
        ("[[rule]]\nskip = true\n[[rule]]\nnice = 'x'", ["rule 2", "nice"]),
        ("[[rule]]\nnice = 1.5", ["rule 1", "nice"]),
        ("[[rule]]\naccept = 'no'", ["rule 1", "accept", "true", "false"]),
        ("[[rule]]\nkinds = ['whl']\nskip = true", ["rule 1", "kinds", "wheel"]),
        ("[[rule]]\nprojects = 'torch'\nskip = true", ["rule 1", "projects"]),
        ("[[rule]]\nprojects = ['torch', 1]\nskip = true", ["rule 1", "projects"]),
        ("[[rule]]\nuploaded_before = 'May'\nskip = true", ["rule 1", "uploaded_before"]),
        ("[[rule]]\nuploaded_before = 2018-01-01T10:00:00Z\nskip = true", ["rule 1", "uploaded_before"]),
        ("[rule]\nskip = true", ["rule", "[[rule]]"]),
        ("rules = 1", ["requirements", "rule"]),
        ("requirements = { releases = 'newest' }", ["requirements.releases", "latest", "all"]),
        ("requirements = { kinds = ['exe'] }", ["requirements.kinds", "wheel"]),
        ("requirements = { extra = true }", ["requirements", "releases", "extras", "kinds"]),
        ("requirements = 1", ["requirements", "releases", "extras", "kinds"]),
        ("requirements = { kinds = [] }", ["requirements.kinds", "wheel", "sdist", "egg"]),
        ("[[rule]]\nprojects = ['a']", ["rule 1", "accept", "skip", "nice", "max_files"]),
        ("[[rule]]\nprojects = []\nskip = true", ["rule 1", "projects"]),
        ("[[rule]]\nkinds = []\nskip = true", ["rule 1", "kinds"]),
        ("[[rule]]\nkinds = ['egg']\nnice = 1", ["rule 1", "nice"]),
        ("[[rule]]\nuploaded_before = 2018-01-01\naccept = false", ["rule 1", "accept"]),
        ("[[rule]]\naccept = false\nnice = 1", ["rule 1", "nice"]),
        ("[[rule]]\nnice = 100000", ["rule 1", "nice", -10000, 10000]),
        ("[[rule]]\nmax_files = 0", ["rule 1", "max_files", 1]),
        ("[[rule]\n", ["TOML", "line 1"]),
    ]
    for text, values in cases:
        with subtests.test(text=text), pytest.raises(RulesError, match=naming(*values)):
            parse_ruleset(text)


def test_rules_that_reject_a_root_are_invalid() -> None:
    rules = parse_ruleset(RULES)
    [sentence] = refused_roots(rules, ["demo", "tf-nightly"])
    assert mentions(sentence, "rule 1", "tf-nightly")
    assert refused_roots(Ruleset(), ["demo"]) == []
