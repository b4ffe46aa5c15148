"""pip's order of decisions and its rules. `test_truth.py` compares with real pip."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resolvelib.resolvers import Criterion
from resolvelib.structs import RequirementInformation, State

from pypi_assets.resolve import pip_solver
from pypi_assets.resolve.resolving import ResolutionLimitError, UnsolvableError, resolve
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import naming
from pypi_assets_tests.resolve.made_index import MadeIndex, question
from pypi_assets_tests.resolve.test_resolving import PROJECTS, REQUIREMENTS

Projects = dict[str, dict[str, Any]]
YANKED = {"yanked": True, "requires_dist": []}


def pins(projects: Projects, *requirements: str, **options: Any) -> dict[str, str]:
    return resolve(MadeIndex(projects), question(*requirements, **options)).pins


def test_bounded_projects_are_decided_first() -> None:
    projects: Projects = {"a": {"1": [], "2": ["b<2"]}, "b": {"1": [], "2": ["a<2"]}}
    assert pins(projects, "a", "b") == {"a": "2", "b": "1"}
    assert pins(projects, "b", "a") == {"a": "1", "b": "2"}
    assert pins(projects, "a", "b<9") == {"a": "1", "b": "2"}
    assert pins(projects, "a==2", "b<9") == {"a": "2", "b": "1"}


def test_extra_requirements_are_decided_with_their_project() -> None:
    projects: Projects = {
        "app": {"1": ["lib; extra == 'more'"], "2": ["lib>=3; extra == 'more'"]},
        "lib": {"1": [], "2": []},
    }
    assert pins(projects, "app[more,never]") == {"app": "1", "lib": "2"}
    assert pins(projects, "app[more]", "app>=1", "lib<2") == {"app": "1", "lib": "1"}
    assert pins(projects, "app") == {"app": "2"}
    with pytest.raises(UnsolvableError, match=naming("app[more]>=2")):
        pins(projects, "app[more]>=2")


def test_constraints_act_like_requirements() -> None:
    projects: Projects = {"demo": {"1": [], "2": YANKED, "3rc1": []}}
    assert pins(projects, "demo", constraints=["demo<9", "demo>=3rc1"]) == {"demo": "3rc1"}
    assert pins(projects, "demo", constraints=["demo==2"]) == {"demo": "2"}
    assert pins(projects, "demo", constraints=["demo==2; sys_platform == 'win32'"]) == {"demo": "1"}


def test_pre_release_does_not_replace_a_yanked_final_release() -> None:
    projects: Projects = {"demo": {"1": [], "2": YANKED, "3rc1": []}}
    with pytest.raises(UnsolvableError):
        pins(projects, "demo>1")
    assert pins(projects, "demo>2") == {"demo": "3rc1"}


def test_versions_with_unusable_requirements_are_not_chosen() -> None:
    odd = {"2": ["b @ https://example.org/b.whl"], "3": ["no requirement!"], "4": ["a<4"]}
    projects: Projects = {"a": {"1": [], **odd}}
    assert pins(projects, "a") == {"a": "1"}


def test_last_conflict_is_shown_if_pip_gives_up() -> None:
    projects: Projects = {"app": {"1": ["demo>=1"], "2": ["demo==2"]}, "demo": {"1": [], "2": ["app<2"]}}
    with pytest.raises(UnsolvableError, match=naming("app>=2")):
        pins(projects, "app>=2")


def test_rounds_are_limited() -> None:
    projects: Projects = {name: {"1": []} for name in "abcdef"}
    with pytest.raises(ResolutionLimitError, match=naming(3)):
        resolve(MadeIndex(projects), question(*projects), most_steps=3)


def test_missing_solution_is_detected_without_trying_all_choices() -> None:
    names = [f"p{number:02}" for number in range(12)]
    projects: Projects = {name: {str(version): [] for version in range(1, 9)} for name in names}
    projects["app"] = {str(version): [f"lib=={version}"] for version in range(1, 9)}
    projects["lib"] = {str(version): [*names, "none>1"] for version in range(1, 9)}
    projects["none"] = {"1": []}
    with pytest.raises(UnsolvableError, match=naming("none>1")):
        resolve(MadeIndex(projects), question(*names, "app"), most_steps=400)


@settings(max_examples=examples(300), deadline=None)
@given(projects=PROJECTS, roots=st.lists(REQUIREMENTS, min_size=1, max_size=3))
def test_early_solvability_check_does_not_change_outcomes(projects: Projects, roots: list[str]) -> None:
    def outcome(conflicts: int) -> dict[str, str] | str:
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(pip_solver, "CONFLICTS_IN_DOUBT", conflicts)
                return pins(projects, *roots)
        except UnsolvableError as error:
            return str(error)

    assert outcome(1) == outcome(1_000_000)


def test_isolated_cycle_of_candidates_is_not_connected() -> None:
    """Use a cycle in which resolvelib's own search for connections to the question recurses forever."""
    chosen = {name: pip_solver._Candidate(name, (), 1) for name in ("app", "lib", "left", "over")}
    parents = {"app": None, "lib": chosen["app"], "left": chosen["over"], "over": chosen["left"]}
    criteria: dict[str, Criterion[Any, Any]] = {
        name: Criterion([], [RequirementInformation(pip_solver._Requirement(name), parent)], [])
        for name, parent in parents.items()
    }
    assert pip_solver._connected(State(chosen, criteria, [])) == ["app", "lib"]
