import pytest
from hypothesis import given, settings

from pypi_assets.resolve.questions import Semantics
from pypi_assets.resolve.resolving import UnsolvableError, resolve
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.resolve.made_index import MadeIndex, Release, question
from pypi_assets_tests.resolve.test_resolving import PROJECTS, REQUIREMENTS, st


def proof(projects: dict[str, dict[str, Release]], *requirements: str, **options: object) -> list[str]:
    """Return the steps of the proof of unsolvability."""
    with pytest.raises(UnsolvableError) as raised:
        resolve(MadeIndex(projects, {"hidden": "hidden is not followed"}), question(*requirements, **options))
    assert str(raised.value) == "\n".join(raised.value.proof.steps)
    return list(raised.value.proof.steps)


@pytest.mark.parametrize(
    ("requirement", "values"),
    [
        ("demo>=9", ["demo", ">=9", 5]),
        ("demo==3", ["demo==3", ">=3.13"]),
        ("demo>2,<5", ["demo<5,>2", ">=3.13", "yanked"]),
        ("demo==5", ["demo==5", "wheel"]),
        ("nothing>1", ["nothing"]),
        ("hidden", ["hidden is not followed"]),
    ],
)
def test_proof_explains_why_no_version_is_left(requirement, values):
    projects: dict[str, dict[str, Release]] = {
        "demo": {
            "1": [],
            "2": [],
            "3": {"requires_python": ">=3.13"},
            "4": {"yanked": True, "requires_dist": []},
            "5": {"filenames": ["demo-5-cp312-cp312-win32.whl"]},
        }
    }
    [step] = proof(projects, requirement)
    assert mentions(step, requirement, *values)
    assert resolve(MadeIndex(projects), question("demo==4")).pins == {"demo": "4"}  # a pin allows a yanked version


def test_contradicting_requirements():
    projects: dict[str, dict[str, Release]] = {
        "web": {"1": ["http<2"], "2": ["http<2"], "3": []},
        "api": {"1": ["http>=2"]},
        "http": {"1": [], "2": [], "3": []},
    }
    together, first, second = proof(projects, "api", "web<3")
    assert mentions(together, "web<3", "http<2", "api", "http>=2")
    assert mentions(first, "api", "web<3")
    assert mentions(second, "web<3")
    assert not mentions(second, "api")


def test_constraint_is_named():
    projects: dict[str, dict[str, Release]] = {"app": {"1": ["lib>=2"]}, "lib": {"1": [], "2": []}}
    steps = proof(projects, "app", constraints=["lib<2"])
    assert len(steps) == 2
    assert mentions(steps[0], "app", "lib>=2", "lib<2")
    assert mentions(steps[1], "app")


def test_reused_conclusion_has_a_number():
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
    assert mentions(steps[-1], "app")


@pytest.mark.parametrize(
    ("requires", "values"),
    [
        ("lib @ https://files.example/lib.zip", ["lib"]),
        ("-e .", ["-e ."]),
        ("app>2", []),
    ],
)
def test_requirement_outside_the_index_is_one_step_for_all_versions(requires, values):
    projects: dict[str, dict[str, Release]] = {"app": {version: [requires] for version in ("1", "1.1", "2")}}
    [step] = proof(projects, "app")
    assert mentions(step, "app", *values)
    assert not mentions(step, "1.1")


@pytest.mark.parametrize("semantics", Semantics)
def test_extra_that_requires_another_version_of_its_project(semantics):
    projects: dict[str, dict[str, Release]] = {
        "app": {"1": ["app>=2; extra == 'new'"], "2": ["app[old]==1; extra == 'new'"]}
    }
    assert mentions(proof(projects, "app[new]<2", semantics=semantics)[-1], "app[new]<2")
    for steps in (proof(projects, "app[new]<2"), proof(projects, "app[new]==2")):
        assert not any("(no version)" in step for step in steps)


@settings(max_examples=examples(200), deadline=None)
@given(projects=PROJECTS, roots=st.lists(REQUIREMENTS, min_size=1, max_size=3), semantics=st.sampled_from(Semantics))
def test_proof_ends_with_no_solution_and_names_the_question(projects, roots, semantics):
    try:
        resolve(MadeIndex(projects), question(*roots, semantics=semantics))
    except UnsolvableError as error:
        shown = error.proof
    else:
        return
    assert any(mentions(step, root) for step in shown.steps for root in roots)
    assert not any("  " in step or "VersionSet" in step for step in shown.steps)
    assert set(shown.projects) <= {*projects, "nothing", "a", "b", "c", "d"}
