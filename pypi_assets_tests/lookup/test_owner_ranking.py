"""Candidates are ranked by known facts, and the score is computed from the answered values."""

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pypi_assets.lookup.owner_ranking import (
    JUNK_ROOTS,
    WEIGHTS,
    Found,
    OwnerReasons,
    in_words,
    is_declared,
    is_junk_root,
    is_name_like,
    name_matches,
    ranked,
)

SERIAL = 100


def reasons(**some: object) -> OwnerReasons:
    usual = OwnerReasons(
        name_matches=False,
        dependents=0,
        first_live_serial=5,
        releases_providing=1,
        releases=1,
        newest_provides=True,
        declared=None,
        junk_root=False,
        quarantined=False,
        stub_only=False,
    )
    return {**usual, **some}  # type: ignore[typeddict-item]


@dataclass
class Candidates:
    """Candidates for a module and their ranking."""

    module: str
    found: list[Found] = field(default_factory=list)

    def add(self, normalized: str, **some: object) -> "Candidates":
        self.found.append(Found(normalized.title(), normalized, reasons(**some), ["1.0"]))
        return self

    @property
    def order(self) -> list[str]:
        return [one["normalized"] for one in ranked(self.module, self.found, SERIAL)]


@pytest.mark.parametrize(
    ("module", "better", "worse"),
    [
        ("yaml", {"dependents": 40}, {"dependents": 4}),
        ("yaml", {"newest_provides": True}, {"newest_provides": False}),
        ("yaml", {"releases": 10, "releases_providing": 10}, {"releases": 10, "releases_providing": 1}),
        ("yaml", {"first_live_serial": 1}, {"first_live_serial": 9}),
        ("yaml", {"declared": True}, {"declared": None}),
        ("yaml", {"declared": None}, {"declared": False}),
        ("yaml", {}, {"quarantined": True, "dependents": 100}),
        ("yaml", {}, {"stub_only": True, "dependents": 100}),
    ],
)
def test_each_reason_counts(module: str, better: dict[str, object], worse: dict[str, object]) -> None:
    candidates = Candidates(module).add("a-worse", **worse).add("b-better", **better)
    assert candidates.order == ["b-better", "a-worse"]


def test_an_owner_outweighs_a_squat_of_the_name() -> None:
    assert Candidates("yaml").add("yaml", name_matches=True, dependents=2).add("pyyaml", dependents=9_000).order == [
        "pyyaml",
        "yaml",
    ]


def test_seniority_counts_in_proportion() -> None:
    candidates = Candidates("yaml")
    for since in (1, 51, 100, None):
        candidates.add(f"since-{since}", first_live_serial=since)
    scores = {one["normalized"]: one["score"] for one in ranked("yaml", candidates.found, SERIAL)}
    gained = [round((scores[f"since-{since}"] - scores["since-None"]) / WEIGHTS.seniority, 2) for since in (1, 51, 100)]
    assert gained == [1.0, 0.5, 0.01]
    assert len({one["score"] for one in ranked("yaml", Candidates("yaml").add("a").add("b").found, SERIAL)}) == 1


def test_equal_candidates_are_ordered_by_name() -> None:
    candidates = Candidates("demo").add("zz-other").add("demo", name_matches=True).add("python-demo").add("aa-other")
    assert candidates.order == ["demo", "python-demo", "aa-other", "zz-other"]
    assert [one["rank"] for one in ranked("demo", candidates.found, SERIAL)] == [1, 2, 3, 4]
    assert ranked("demo", reversed(candidates.found), SERIAL) == ranked("demo", candidates.found, SERIAL)


def test_candidate_has_all_fields() -> None:
    [one] = ranked("demo", Candidates("demo").add("demo").found, SERIAL)
    assert one == {
        "project": "Demo",
        "normalized": "demo",
        "rank": 1,
        "score": round(
            WEIGHTS.like + WEIGHTS.share + WEIGHTS.newest + WEIGHTS.releases * math.log10(2) + WEIGHTS.seniority, 3
        ),
        "reasons": reasons(),
        "versions": ["1.0"],
    }
    assert ranked("demo", [], SERIAL) == []


@pytest.mark.parametrize(
    ("module", "project", "matches", "is_like"),
    [
        ("yaml", "yaml", True, True),
        ("yaml", "pyyaml", False, True),
        ("dateutil", "python-dateutil", False, True),
        ("google.cloud.storage.blob", "google-cloud-storage", True, True),
        ("google.cloud.storage", "google", True, True),
        ("ruamel_yaml", "ruamel-yaml", True, True),
        ("bs4", "beautifulsoup4", False, False),
        ("a.b", "b", False, False),
        ("_", "demo", False, False),
    ],
)
def test_names_match_or_are_similar(module: str, project: str, matches: bool, is_like: bool) -> None:
    assert name_matches(module, project) == matches
    assert is_name_like(module, project) == is_like


def test_declared_name_covers_its_submodules() -> None:
    assert is_declared("demo.a", None) is None
    assert is_declared("demo.a", ["demo"]) is True
    assert is_declared("demo", ["demo.a"]) is False
    assert is_declared("demos", ["demo"]) is False
    assert is_declared("demo", ["demo ; private"]) is False
    assert is_declared("demo", []) is False
    assert is_declared("demo", [" demo "]) is True


def test_junk_roots_are_top_level_names() -> None:
    assert is_junk_root("tests")
    assert is_junk_root("docs.conf")
    assert not is_junk_root("requests.tests")
    assert all(name.isidentifier() and name == name.lower() for name in JUNK_ROOTS)


def test_reasons_are_described_in_words() -> None:
    few = reasons(dependents=1, releases=3, releases_providing=2)
    assert [re.findall(r"\d+", words) for words in in_words(few)] == [["1"], ["2", "3"], ["5"]]
    everything = reasons(
        name_matches=True,
        dependents=1_234,
        first_live_serial=None,
        releases=2,
        releases_providing=1,
        newest_provides=False,
        declared=False,
        junk_root=True,
        quarantined=True,
        stub_only=True,
    )
    assert [re.findall(r"[\d,]*\d", words) for words in in_words(everything)] == [
        *([], [], [], []),  # whether it is a stub, quarantined, a junk name, the name itself
        ["1,234"],
        ["1", "2"],
        [],  # whether it is declared
    ]
    assert ["7"] in [re.findall(r"\d+", words) for words in in_words(reasons(releases=7, releases_providing=7))]
    assert len(in_words(reasons(declared=True))) == len(in_words(reasons())) + 1


def test_docs_have_the_weights() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "ask.md").read_text()
    [table] = re.findall(r"\| reason \| points \|\n(.*?)\n\n", page, re.DOTALL)
    shown = re.findall(r"(?<![\w.])-?[0-9]+(?:\.[0-9]+)?(?=[ ,.|])", table.replace("log10(1 + count)", ""))
    for name, weight in WEIGHTS._asdict().items():
        assert f"{weight:g}" in shown, name
