"""uv's order of decisions, and its packages. `test_truth.py` compares with real uv."""

import random
from itertools import product
from typing import Any

import pytest
from packaging.requirements import Requirement

from pypi_assets.resolve import pubgrub_solver
from pypi_assets.resolve.questions import Semantics
from pypi_assets.resolve.resolving import ResolutionLimitError, UnsolvableError, resolve
from pypi_assets_tests.naming import naming
from pypi_assets_tests.resolve.made_index import MadeIndex, question
from pypi_assets_tests.slices import slices

Projects = dict[str, dict[str, Any]]


def pins(projects: Projects, *requirements: str, **options: Any) -> dict[str, str]:
    return resolve(MadeIndex(projects), question(*requirements, **{"semantics": Semantics.UV} | options)).pins


def pins_within(seconds: float, projects: Projects, *requirements: str, **options: Any) -> dict[str, str]:
    return resolve(MadeIndex(projects), question(*requirements, **options), most_seconds=seconds).pins


def test_projects_are_decided_in_order_of_appearance() -> None:
    projects: Projects = {"a": {"1": [], "2": ["b<2"]}, "b": {"1": [], "2": ["a<2"]}}
    assert pins(projects, "a", "b") == {"a": "2", "b": "1"}
    assert pins(projects, "b", "a") == {"a": "1", "b": "2"}


def test_pinned_projects_are_decided_first() -> None:
    projects: Projects = {"a": {"1": [], "2": ["c<2"]}, "b": {"1": []}, "c": {"1": [], "2": []}}
    projects["b"]["1"] = ["c==2"]
    assert pins(projects, "a", "b") == {"a": "1", "b": "1", "c": "2"}


def test_extra_and_marker_requirements_are_decided_with_their_project() -> None:
    projects: Projects = {
        "app": {"1": ["lib; extra == 'more'"], "2": ["lib>=2; extra == 'more'"]},
        "lib": {"1": [], "2": ["gone"]},
        "all": {"1": ["one; extra == 'a'", "all[a]; extra == 'b'", "all[b]>=1; extra == 'c'"]},
        "one": {"1": []},
    }
    assert pins(projects, "app[more]") == {"app": "1", "lib": "1"}
    assert pins(projects, "app[never]") == {"app": "2"}
    assert pins(projects, "app; python_version > '3'", "app[more]; sys_platform == 'linux'")["app"] == "1"
    assert pins(projects, "all[c]") == {"all": "1", "one": "1"}
    assert pins(projects, "all [ never, B ]") == {"all": "1", "one": "1"}


def test_extras_that_require_each_other_under_markers_are_resolved() -> None:
    markers = ["python_version >= '3'", "sys_platform != 'x'", "os_name != 'x' or sys_platform == 'linux'"]
    itself = [f"all[all]>0; extra == 'all' and {marker}" for marker in markers]
    circle = [
        *(f"all[b]; extra == 'a' and ({marker})" for marker in markers),
        *(f"all[a]; extra == 'b' and ({marker})" for marker in markers[:2]),
        *("one; extra == 'a'", "all[all]; extra == 'b'"),
    ]
    projects: Projects = {"all": {"1": [], "2": [*itself, *circle]}, "one": {"1": [], "2": []}, "last": {"1": ["two"]}}
    for semantics in Semantics:
        assert pins_within(5, projects, "all[all]", semantics=semantics) == {"all": "2"}
        assert pins_within(5, projects, "all[b]", "one<2", semantics=semantics) == {"all": "2", "one": "1"}
        with pytest.raises(UnsolvableError):
            pins_within(5, projects, "all[a]>1", "last", semantics=semantics)


def test_constraints_apply_to_required_projects() -> None:
    projects: Projects = {"app": {"1": ["lib; extra == 'more'"]}, "lib": {"1": [], "2": []}}
    assert pins(projects, "app", constraints=["lib<2"]) == {"app": "1"}
    assert pins(projects, "app[more]", constraints=["lib<2"]) == {"app": "1", "lib": "1"}
    assert pins(projects, "app[more]", constraints=["lib<2; sys_platform == 'win32'"]) == {"app": "1", "lib": "2"}


def test_versions_with_unusable_requirements_are_not_chosen() -> None:
    projects: Projects = {
        "a": {"1": [], "2": ["b @ https://example.org/b.whl"], "3": ["no requirement!"], "4": ["a<4"]}
    }
    assert pins(projects, "a") == {"a": "1"}


def test_steps_are_limited() -> None:
    projects: Projects = {"a": {str(number): ["gone"] for number in range(100)}}
    with pytest.raises(ResolutionLimitError, match=naming(20, "a")):
        resolve(MadeIndex(projects), question("a", semantics=Semantics.UV), most_steps=20)


def _has_solution(projects: Projects, roots: list[str]) -> bool:
    """Check whether there is a solution by trying all choices."""
    names = list(projects)
    for versions in product(*([None, *projects[name]] for name in names)):
        chosen = dict(zip(names, versions, strict=True))
        texts = [*roots, *(text for name, version in chosen.items() if version for text in projects[name][version])]
        if all(_is_met(Requirement(text), chosen) for text in texts):
            return True
    return False


def _is_met(requirement: Requirement, chosen: dict[str, str | None]) -> bool:
    version = chosen.get(requirement.name)
    return version is not None and requirement.specifier.contains(version)


def _drawn(seed: int) -> tuple[Projects, list[str]]:
    """Return five projects of three versions, with the requirements of each version, and the roots to solve for."""
    drawn = random.Random(seed)
    names = ["a", "b", "c", "d", "e"]

    def requirement(others: list[str]) -> str:
        specifier = drawn.choice(["", "<3", ">1", "==2", "!=3", "==1", ">=3", "<2"])
        return f"{drawn.choice(others)}{specifier}"

    projects: Projects = {
        name: {
            str(version): [requirement([one for one in names if one != name]) for _ in range(drawn.choice([0, 1, 2]))]
            for version in (1, 2, 3)
        }
        for name in names
    }
    return projects, [requirement(names), requirement(names)]


@pytest.mark.nightly
@pytest.mark.parametrize("seeds", slices(range(150), 5))
@pytest.mark.parametrize("semantics", Semantics)
def test_every_existing_solution_is_found(seeds: list[int], semantics: Semantics, subtests: pytest.Subtests) -> None:
    for seed in seeds:
        with subtests.test(seed=seed):
            projects, roots = _drawn(seed)
            try:
                solution = pins(projects, *roots, semantics=semantics)
            except UnsolvableError:
                assert not _has_solution(projects, roots)
            else:
                texts = [*roots, *(text for name, version in solution.items() for text in projects[name][version])]
                assert all(_is_met(Requirement(text), dict(solution)) for text in texts)


def test_decision_cost_is_independent_of_undecided_projects(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked = 0
    rank = pubgrub_solver._Order._rank

    def counting(*values: Any) -> Any:
        nonlocal ranked
        ranked += 1
        return rank(*values)

    monkeypatch.setattr(pubgrub_solver._Order, "_rank", counting)

    def ranks(count: int) -> float:
        nonlocal ranked
        ranked = 0
        projects: Projects = {f"p{number}": {"1": [], "2": [f"p{number * 7 % count}"]} for number in range(count)}
        assert len(pins(projects, *(f"{name}>=1" for name in projects))) == count
        return ranked / count

    assert ranks(200) <= ranks(50) * 1.1
