"""Compares 40 requirement sets with real uv and pip. `python -m pypi_assets_tests.resolve.truth` runs many more."""

from collections.abc import Iterator

import pytest

from pypi_assets.resolve.questions import Semantics
from pypi_assets_tests.resolve.graph_index import ENVIRONMENTS, GraphIndex, Place, graph_index
from pypi_assets_tests.resolve.requirement_graphs import RequirementSet
from pypi_assets_tests.resolve.truth import LEAST_EQUAL, Seen, resolve_sets, table


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphIndex]:
    with graph_index(tmp_path_factory.mktemp("truth"), 60, seed=1) as found:
        yield found


@pytest.fixture(scope="module")
def sets(index: GraphIndex) -> list[RequirementSet]:
    return index.draw(40, seed=1)


@pytest.mark.nightly
def test_solutions_match_uv(index: GraphIndex, sets: list[RequirementSet]) -> None:
    names = ENVIRONMENTS[Semantics.UV]
    seen: dict[str, Seen] = {}
    for number, name in enumerate(names):
        seen |= resolve_sets(index, Semantics.UV, sets[number : 32 : len(names)], [Place.named(name)])
    assert [wrong for outcome in seen.values() for wrong in outcome.wrong] == []
    assert sum(outcome.counts["solved"] for outcome in seen.values()) >= 16
    assert [differing for outcome in seen.values() for differing in outcome.differing] == []
    assert all(outcome.is_good for outcome in seen.values())


@pytest.mark.nightly
def test_solutions_match_pip(index: GraphIndex, sets: list[RequirementSet]) -> None:
    [name] = ENVIRONMENTS[Semantics.PIP]
    seen = resolve_sets(index, Semantics.PIP, sets[32:], [Place.named(name)])[name]
    assert seen.wrong == []
    assert seen.counts["solved"] >= 4
    assert seen.differing == []


@pytest.mark.nightly
def test_is_good_requires_equal_share_and_no_wrong_sets() -> None:
    seen = Seen()
    seen.counts.update(sets=100, solved=100, equal=97)
    assert seen.equal_share == LEAST_EQUAL
    assert seen.is_good
    seen.counts["equal"] = 96
    assert not seen.is_good
    seen.counts["equal"] = 100
    seen.wrong.append("a set")
    assert not seen.is_good
    assert [line.split() for line in table({"here": seen})][1] == ["here", "100", "100", "1", "100.0%", "0", "0"]
