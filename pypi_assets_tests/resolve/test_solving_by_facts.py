"""Solutions of small cases. test_resolving.py compares with all choices."""

import time
from collections.abc import Mapping

import pytest

from pypi_assets.resolve.pubgrub import NoSolutionError
from pypi_assets.resolve.pubgrub_solver import solve_by_facts
from pypi_assets.resolve.solver_data import ResolutionLimitError, SolverProvider, Watch
from pypi_assets_tests.naming import naming
from pypi_assets_tests.resolve.made_index import MadeIndex, Release, question


def solved(projects: Mapping[str, Mapping[str, Release]], *requirements: str, **options: object) -> dict[str, str]:
    provider = SolverProvider(MadeIndex(projects), question(*requirements, **options), {})
    solution = solve_by_facts(provider, Watch(60), 100_000)
    assert provider.reachable({name: number for name, number in solution.items() if "[" not in name}) == solution
    return {name: provider.candidate(name, number).text for name, number in solution.items()}


def test_newest_version_allowed_by_all_is_chosen():
    projects: dict[str, dict[str, Release]] = {
        "app": {"1": ["lib[fast]"], "2": ["lib[fast]<2", "other"]},
        "lib": {"1": ["speed; extra == 'fast'"], "1.5": [], "2": []},
        "other": {"1": [], "2": ["lib<1.5"], "3": ["lib>=2"]},
        "speed": {"1": []},
    }
    assert solved(projects, "app") == {"app": "2", "lib": "1.5", "lib[fast]": "1.5", "other": "1"}
    assert solved(projects, "app", "other>1")["lib"] == "1"
    assert solved(projects, "app", constraints=["lib<1.5"])["speed"] == "1"
    assert solved(projects, "app", preferred={"app": "1", "lib": "9"})["app"] == "1"


def test_pre_release_is_allowed_while_a_chosen_version_names_it():
    projects: dict[str, dict[str, Release]] = {
        "app": {"1": ["lib"], "2": ["lib>=2a1", "gone"]},
        "lib": {"1": [], "2a1": []},
    }
    assert solved(projects, "app") == {"app": "1", "lib": "1"}
    assert solved(projects, "app", "lib>=1a1") == {"app": "1", "lib": "2a1"}


def test_thousands_of_requirements_take_seconds():
    projects = {f"p{number}": {"1": [], "2": [f"p{number - number % 7}>=2"]} for number in range(3_000)}
    began = time.process_time()
    assert set(solved(projects, *projects).values()) == {"2"}
    assert time.process_time() - began < 20


def pigeons(count: int) -> dict[str, dict[str, Release]]:
    """Return one more pigeon than there are holes: every placement fails."""
    holes = {f"hole{hole}": {str(pigeon): [] for pigeon in range(count + 1)} for hole in range(count)}
    birds = {
        f"pigeon{pigeon}": {str(hole): [f"hole{hole}=={pigeon}"] for hole in range(count)}
        for pigeon in range(count + 1)
    }
    return holes | birds


def test_exponential_graphs_end_with_a_proof_or_at_the_limit():
    small = pigeons(3)
    with pytest.raises(NoSolutionError):
        solved(small, *(name for name in small if name.startswith("pigeon")))
    large = pigeons(12)
    provider = SolverProvider(MadeIndex(large), question(*(name for name in large if name.startswith("pigeon"))), {})
    with pytest.raises(ResolutionLimitError, match=r"0\.5\b.*\d"):
        solve_by_facts(provider, Watch(0.5), 1_000_000)
    with pytest.raises(ResolutionLimitError, match=naming(50)):
        solve_by_facts(provider, Watch(60), 50)
