from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from pypi_assets.lookup.answers import Answer
from pypi_assets.lookup.depgraph_reader import Distribution
from pypi_assets.lookup.requirement_tree import MOST_NODES, Required, Tree, requirement_tree


@dataclass
class Known:
    """Requirements by project and version, None if unreadable. A `!` at the end marks a yanked version."""

    requires: dict[str, dict[str, list[str] | None]]
    reads: list[str] = field(default_factory=list)

    def versions(self, project: str) -> Sequence[tuple[str, bool]]:
        return [(version.rstrip("!"), version.endswith("!")) for version in self.requires.get(project, {})]

    def distributions(self, project: str, version: str | None) -> Answer[Distribution]:
        self.reads.append(project)
        known = self.requires.get(project, {})
        requires_dist = known.get(str(version), known.get(f"{version}!"))
        file = cast("Distribution", {"requires_dist": requires_dist, "refusals": None})
        return Answer(None, 1, (file,), Distribution)


def tree(requires: dict[str, dict[str, list[str] | None]], **options: int) -> Tree:
    return requirement_tree(Known(requires), "root", "1", **options)


def shape(nodes: Sequence[Required]) -> list[object]:
    """Return the project, version, state and children of each node."""
    return [
        (node["project"], node["version"], node["state"], *([shape(node["requires"])] if node["requires"] else []))
        for node in nodes
    ]


def test_requirements_take_the_newest_fitting_version():
    shown = tree(
        {
            "root": {"1": ["a>=2,<3", "b", "c==1.0", "d>5", "e"]},
            "a": {"1": [], "2.1": ["b<2"], "2.5!": [], "3": []},
            "b": {"1": [], "2": [], "3rc1": []},
            "c": {"1.0!": [], "2.0": []},
            "d": {"5": []},
        }
    )
    assert shape(shown["requires"]) == [
        ("a", "2.1", "open", [("b", None, "above")]),
        ("b", "2", "open"),
        ("c", "1.0", "open"),
        ("d", None, "none fits"),
        ("e", None, "unknown"),
    ]
    assert not shown["is_cut"]


def test_extras_are_shown_for_the_root_and_if_required():
    shown = tree(
        {
            "root": {"1": ["x; extra == 'all'", "a[Fast_one]", "m; python_version < '3'"]},
            "a": {"1": ["f; extra == 'fast-one'", "g; 'slow' == extra", "h"]},
            "f": {"1": []},
            "h": {"1": None},
            "m": {"1": []},
        }
    )
    assert shape(shown["requires"]) == [
        ("a", "1", "open", [("h", "1", "not read"), ("f", "1", "open")]),
        ("m", "1", "open"),
        ("x", None, "extra"),
    ]
    assert [node["condition"] for node in shown["requires"]] == ["always", "marker", "extra"]


def test_cycles_end_and_each_project_is_read_once():
    known = Known({"root": {"1": ["a"]}, "a": {"1": ["b", "root"]}, "b": {"1": ["a"]}})
    shown = requirement_tree(known, "root", "1")
    assert shape(shown["requires"]) == [
        ("a", "1", "open", [("b", "1", "open", [("a", None, "above")]), ("root", None, "above")])
    ]
    assert sorted(known.reads) == ["a", "b", "root"]


def test_large_tree_is_truncated_far_from_the_root():
    chain: dict[str, dict[str, list[str] | None]] = {f"p{n}": {"1": [f"p{n + 1}"]} for n in range(100)}
    shown = tree({"root": {"1": ["p0", "other"]}, "other": {"1": []}, **chain}, most_opened=3)
    assert shown["is_cut"]
    assert shape(shown["requires"]) == [
        ("other", "1", "open"),
        ("p0", "1", "open", [("p1", "1", "open", [("p2", None, "cut")])]),
    ]
    wide = tree({"root": {"1": [f"q{n}; extra == 'x'" for n in range(3 * MOST_NODES)]}})
    assert (len(wide["requires"]), wide["is_cut"]) == (MOST_NODES, True)


def test_requirement_without_a_project_is_shown():
    texts = ["!", "a ++", "b == 1.*.2", f"c=={'9' * 5000}", "d @ http://x.invalid/d.whl"]
    shown = tree({"root": {"1": texts}, "c": {"1": []}})
    assert {node["requirement"][:1]: node["state"] for node in shown["requires"]} == {
        "!": "unreadable",
        "a": "unreadable",
        "b": "unreadable",
        "c": "none fits",
        "d": "unknown",
    }


def test_unreadable_root_is_reported():
    assert tree({"root": {"1": None}}) == {
        "project": "root",
        "version": "1",
        "state": "not read",
        "is_cut": False,
        "requires": [],
    }
