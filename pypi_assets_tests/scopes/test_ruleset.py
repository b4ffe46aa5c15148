"""Rules: the last match wins, each wrong key is named, and the same files lead to the same decisions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.scopes.ruleset import RuledFile, RulesError, Ruleset, parse_ruleset, refused_roots

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


def test_requirements_are_of_the_newest_release_unless_a_rule_widens_them() -> None:
    assert parse_ruleset("").requirements.releases == "latest"
    assert not parse_ruleset("").requirements.extras
    widened = parse_ruleset(RULES).requirements
    assert (widened.releases, widened.extras, widened.kinds) == ("all", True, ("wheel",))


@pytest.mark.parametrize(
    ("project", "is_accepted"),
    [("demo", True), ("demo-nightly", False), ("tf-nightly", False), ("tf-keras", True), ("tensorflow", True)],
)
def test_the_last_rule_that_matches_decides_whether_a_project_enters(project: str, is_accepted: bool) -> None:
    assert parse_ruleset(RULES).accepts(project) is is_accepted


def test_a_setting_is_decided_by_a_rule_that_has_it() -> None:
    rules = parse_ruleset(RULES)
    assert rules.deciding_rule("tf-keras", "accept") == (2, True)
    assert [rules.nice(name) for name in ("demo", "tf-keras", "torch", "torchvision")] == [0, 5, 1000, 1000]
    assert (rules.max_files("torch"), rules.max_files("demo")) == (2, None)


def test_files_are_skipped_by_their_kind_and_age() -> None:
    old, new = START_OF_2018 - 1, START_OF_2018
    files = [
        RuledFile("a-1.tar.gz", "sdist", old),
        RuledFile("a-2.tar.gz", "sdist", new),
        RuledFile("a-3.tar.gz", "sdist", None),
        RuledFile("a-1-py3-none-any.whl", "wheel", old),
    ]
    assert parse_ruleset(RULES).skipped("a", files) == {"a-1.tar.gz": "rule 4 skips it"}


def test_only_the_newest_files_are_read() -> None:
    files = [wheel("b", 1), wheel("d", None), wheel("a", 3), wheel("c", 2)]
    assert parse_ruleset(RULES).skipped("torch", files) == {
        "b": "rule 3 reads the newest 2 files",
        "d": "rule 3 reads the newest 2 files",
    }
    assert parse_ruleset(RULES).skipped("demo", files) == {}


def test_a_later_rule_lifts_what_an_earlier_one_skips() -> None:
    text = '[[rule]]\nskip = true\n[[rule]]\nprojects = ["demo"]\nkinds = ["wheel"]\nskip = false\n'
    files = [wheel("a", 1), RuledFile("b", "sdist", 0.0)]
    assert parse_ruleset(text).skipped("demo", files) == {"b": "rule 1 skips it"}


@given(st.permutations([wheel(name, day) for name, day in zip("abcdef", (3, 3, None, 1, None, 2), strict=True)]))
def test_the_order_of_files_makes_no_difference(files: list[RuledFile]) -> None:
    assert set(parse_ruleset(RULES).skipped("torch", files)) == set("cdef")


def test_what_is_wrong_is_named_with_its_rule_and_key(subtests: pytest.Subtests) -> None:
    cases = [
        ("[[rule]]\nfoo = 1", "rule 1: ", "projects, kinds, uploaded_before, accept, skip, nice, max_files"),
        ("[[rule]]\nskip = true\n[[rule]]\nnice = 'x'", "rule 2, nice: ", "a whole number"),
        ("[[rule]]\nnice = 1.5", "rule 1, nice: ", "a whole number"),
        ("[[rule]]\naccept = 'no'", "rule 1, accept: ", "true or false"),
        ("[[rule]]\nkinds = ['whl']\nskip = true", "rule 1, kinds: ", '"wheel"'),
        ("[[rule]]\nprojects = 'torch'\nskip = true", "rule 1, projects: ", "a list of patterns"),
        ("[[rule]]\nprojects = ['torch', 1]\nskip = true", "rule 1, projects: ", "a list of patterns"),
        ("[[rule]]\nuploaded_before = 'May'\nskip = true", "rule 1, uploaded_before: ", "a day such as"),
        ("[[rule]]\nuploaded_before = 2018-01-01T10:00:00Z\nskip = true", "rule 1, uploaded_before: ", "a day such as"),
        ("[rule]\nskip = true", "rule: ", "tables that begin with [[rule]]"),
        ("rules = 1", "the rules: ", "requirements, rule"),
        ("requirements = { releases = 'newest' }", "requirements.releases: ", '"latest" or "all"'),
        ("requirements = { kinds = ['exe'] }", "requirements.kinds", '"wheel"'),
        ("requirements = { extra = true }", "requirements: ", "releases, extras, kinds"),
        ("requirements = 1", "requirements: ", "releases, extras, kinds"),
        ("requirements = { kinds = [] }", "requirements.kinds: ", "wheel, sdist or egg"),
        ("[[rule]]\nprojects = ['a']", "rule 1: ", "accept, skip, nice or max_files"),
        ("[[rule]]\nprojects = []\nskip = true", "rule 1, projects: ", "never match"),
        ("[[rule]]\nkinds = []\nskip = true", "rule 1, kinds: ", "never match"),
        ("[[rule]]\nkinds = ['egg']\nnice = 1", "rule 1, nice: ", "a rule of its own"),
        ("[[rule]]\nuploaded_before = 2018-01-01\naccept = false", "rule 1, accept: ", "a rule of its own"),
        ("[[rule]]\naccept = false\nnice = 1", "rule 1, nice: ", "makes no difference"),
        ("[[rule]]\nnice = 100000", "rule 1, nice: ", "-10000 to 10000"),
        ("[[rule]]\nmax_files = 0", "rule 1, max_files: ", "1 or more"),
        ("[[rule]\n", "the rules are no TOML: ", "line 1"),
    ]
    for text, where, accepted in cases:
        with subtests.test(text=text):
            with pytest.raises(RulesError) as caught:
                parse_ruleset(text)
            assert str(caught.value).startswith(where)
            assert accepted in str(caught.value)


def test_rules_that_refuse_a_root_contradict_each_other() -> None:
    rules = parse_ruleset(RULES)
    assert refused_roots(rules, ["demo", "tf-nightly"]) == ["rule 1 does not accept tf-nightly, which is a root"]
    assert refused_roots(Ruleset(), ["demo"]) == []
