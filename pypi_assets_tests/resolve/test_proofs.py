import pytest
from hypothesis import given, settings

from pypi_assets.resolve.questions import Semantics
from pypi_assets.resolve.resolving import UnsolvableError, resolve
from pypi_assets_tests.examples import examples
from pypi_assets_tests.resolve.made_index import MadeIndex, Release, question
from pypi_assets_tests.resolve.test_resolving import PROJECTS, REQUIREMENTS, st


def proof(projects: dict[str, dict[str, Release]], *requirements: str, **options: object) -> list[str]:
    """The steps of the proof that there is no solution."""
    with pytest.raises(UnsolvableError) as raised:
        resolve(MadeIndex(projects, {"hidden": "hidden is not followed"}), question(*requirements, **options))
    assert str(raised.value) == "\n".join(raised.value.proof.steps)
    return list(raised.value.proof.steps)


@pytest.mark.parametrize(
    ("requirement", "why"),
    [
        ("demo>=9", "no version of demo is >=9 (the newest is 5)"),
        ("demo==4", "demo==4 cannot be installed (it is yanked as needed)"),
        ("demo==3", "demo==3 cannot be installed (it is for Python >=3.13)"),
        ("demo>2,<5", "demo<5,>2 cannot be installed (1 is for Python >=3.13, 1 is yanked)"),
        ("demo==5", "demo==5 cannot be installed (it is without a wheel for this environment)"),
        ("nothing>1", "there is no project nothing with files"),
        ("hidden", "hidden is not followed"),
    ],
)
def test_there_is_a_reason_why_no_version_is_left(requirement, why):
    projects: dict[str, dict[str, Release]] = {
        "demo": {
            "1": [],
            "2": [],
            "3": {"requires_python": ">=3.13"},
            "4": {"yanked": True, "requires_dist": []},
            "5": {"filenames": ["demo-5-cp312-cp312-win32.whl"]},
        }
    }
    if "yanked as needed" in why:  # a pin takes a yanked version
        assert resolve(MadeIndex(projects), question(requirement)).pins == {"demo": "4"}
        return
    [step] = proof(projects, requirement)
    assert step in {
        f"Because {why} and you require {requirement}, there is no solution.",
        f"Because you require {requirement} and {why}, there is no solution.",
    }


def test_two_requirements_that_contradict_each_other():
    projects: dict[str, dict[str, Release]] = {
        "web": {"1": ["http<2"], "2": ["http<2"], "3": []},
        "api": {"1": ["http>=2"]},
        "http": {"1": [], "2": [], "3": []},
    }
    assert proof(projects, "api", "web<3") == [
        "Because web<3 requires http<2 and api requires http>=2, web<3 and api cannot be installed together.",
        "And because you require api, web<3 cannot be installed.",
        "And because you require web<3, there is no solution.",
    ]


def test_the_constraint_is_named():
    projects: dict[str, dict[str, Release]] = {"app": {"1": ["lib>=2"]}, "lib": {"1": [], "2": []}}
    steps = proof(projects, "app", constraints=["lib<2"])
    assert steps == [
        "Because app requires lib>=2 and a constraint is lib<2, app cannot be installed.",
        "And because you require app, there is no solution.",
    ]


def test_a_conclusion_that_is_needed_again_has_a_number():
    projects: dict[str, dict[str, Release]] = {
        "app": {"2": ["lib>=2", "tool[fast]"], "3": ["lib>=9"]},
        "lib": {"2.0": ["six>=2"], "2.1": ["six>=2"]},
        "six": {"1.0": [], "1.16": [], "2": []},
        "tool": {"1": ["six<2; extra=='fast'"], "2": ["six<1"]},
    }
    steps = proof(projects, "app", semantics=Semantics.UV)
    numbers = {number for number in "123456789" for step in steps if step.endswith(f"({number})")}
    for number in numbers:
        assert sum(f"({number})" in step for step in steps) >= 2
    assert steps[-1].endswith("there is no solution.")


@pytest.mark.parametrize(
    ("requires", "why"),
    [
        ("lib @ https://files.example/lib.zip", "it requires lib from a URL"),
        ("-e .", "'-e .' is no requirement: Expected package name at the start of dependency specifier"),
        ("app>2", "it requires another version of itself"),
    ],
)
def test_what_no_index_can_meet_is_one_fact_of_all_versions(requires, why):
    projects: dict[str, dict[str, Release]] = {"app": {version: [requires] for version in ("1", "1.1", "2")}}
    assert proof(projects, "app") == [
        f"Because you require app and app cannot be installed ({why}), there is no solution.",
    ]


@pytest.mark.parametrize("semantics", Semantics)
def test_an_extra_that_wants_another_version_of_its_project(semantics):
    projects: dict[str, dict[str, Release]] = {
        "app": {"1": ["app>=2; extra == 'new'"], "2": ["app[old]==1; extra == 'new'"]}
    }
    assert proof(projects, "app[new]<2", semantics=semantics)[-1].endswith("there is no solution.")
    for steps in (proof(projects, "app[new]<2"), proof(projects, "app[new]==2")):
        assert not any("(no version)" in step for step in steps)


@settings(max_examples=examples(200), deadline=None)
@given(projects=PROJECTS, roots=st.lists(REQUIREMENTS, min_size=1, max_size=3), semantics=st.sampled_from(Semantics))
def test_each_proof_ends_with_no_solution_and_names_the_question(projects, roots, semantics):
    try:
        resolve(MadeIndex(projects), question(*roots, semantics=semantics))
    except UnsolvableError as error:
        found = error.proof
    else:
        return
    assert found.steps[-1].endswith("there is no solution.")
    assert any(f"you require {root}" in step for step in found.steps for root in roots)
    assert not any("  " in step or "VersionSet" in step for step in found.steps)
    assert set(found.projects) <= {*projects, "nothing", "a", "b", "c", "d"}
