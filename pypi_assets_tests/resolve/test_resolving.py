from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement

from pypi_assets.resolve.questions import Control, ResolutionQuestion, parse_wanted
from pypi_assets.resolve.resolving import (
    ResolutionLimitError,
    ResolveError,
    Semantics,
    Unknown,
    UnknownRequirementsError,
    UnsolvableError,
    resolve,
)
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import naming
from pypi_assets_tests.resolve.made_index import LINUX, MadeIndex, Release, question

BOTH = pytest.mark.parametrize("semantics", list(Semantics))


def pins(projects: dict[str, dict[str, Release]], *requirements: str, **options: object) -> dict[str, str] | None:
    """Return the chosen versions, or None if unsolvable."""
    try:
        return resolve(MadeIndex(projects), question(*requirements, **options)).pins
    except UnsolvableError:
        return None


@BOTH
def test_newest_compatible_versions_are_chosen(semantics):
    projects = {
        "app": {"1": ["lib<2"], "2": ["lib>=2", "tool"]},
        "lib": {"1.9": [], "2.0": ["six<1"], "2.1": ["six>=2"]},
        "tool": {"1": ["six"], "2": ["six>=1"]},
        "six": {"0.9": [], "1.16": []},
    }
    assert pins(projects, "app", semantics=semantics) == {"app": "2", "lib": "2.0", "tool": "1", "six": "0.9"}
    assert pins(projects, "app", "six>1", semantics=semantics) == {"app": "1", "lib": "1.9", "six": "1.16"}
    assert pins(projects, "app>1", "six>1", semantics=semantics) is None
    assert pins(projects, "app", constraints=["lib<2", "other<1"], semantics=semantics) == {"app": "1", "lib": "1.9"}
    assert pins(projects, semantics=semantics) == {}


@BOTH
def test_markers_and_self_referencing_extras(semantics):
    projects = {
        "app": {
            "1": [
                "a; extra == 'A_1'",
                "b; extra == 'b' and sys_platform == 'linux'",
                "c; extra == 'b' and sys_platform == 'win32'",
                "app[a-1,b]; extra == 'all'",
                "d; python_version < '3'",
                "e; python_version >= '3.12' or extra == 'x'",
            ]
        },
        **{name: {"1": []} for name in "abcde"},
    }
    assert pins(projects, "app", semantics=semantics) == {"app": "1", "e": "1"}
    assert pins(projects, "app[all]", semantics=semantics) == dict.fromkeys(["a", "app", "b", "e"], "1")
    assert pins(projects, "app[nothing]", semantics=semantics) == {"app": "1", "e": "1"}
    assert pins(projects, "app; sys_platform == 'win32'", semantics=semantics) == {}
    release = resolve(MadeIndex(projects), question("App[All]", semantics=semantics)).releases["app"]
    assert release.extras == ("a-1", "all", "b")
    assert release.required_by == (("", "App[All]"),)


@BOTH
def test_url_is_required_only_if_its_marker_holds(semantics):
    url = "lib @ https://files.example/lib.zip"
    requires = [f"{url} ; python_version < '3'", f"{url} ; extra == 'e'", "app[e]; extra == 'all'", "six; extra == 'f'"]
    projects: dict[str, dict[str, Release]] = {"app": {"1": requires}, "six": {"1": []}}
    assert pins(projects, "app[f]", semantics=semantics) == {"app": "1", "six": "1"}
    assert pins(projects, "app[e]", semantics=semantics) is None
    assert pins(projects, "app[all]", semantics=semantics) is None


@BOTH
@pytest.mark.parametrize("variable", ["extras", "dependency_groups"])
def test_variables_of_lock_files_are_empty_in_requirements(semantics, variable):
    projects: dict[str, dict[str, Release]] = {"app": {"1": [f"six; 'x' in {variable}", f"lib; 'x' not in {variable}"]}}
    projects |= {"six": {"1": []}, "lib": {"1": []}}
    assert pins(projects, "app", semantics=semantics) == {"app": "1", "lib": "1"}
    assert pins(projects, f"six; 'x' in {variable}", semantics=semantics) == {}


@BOTH
def test_cycles(semantics):
    projects = {"a": {"1": ["b"], "2": ["b>=2"]}, "b": {"1": ["a"], "2": ["a<2", "b"]}}
    assert pins(projects, "a", semantics=semantics) in ({"a": "1", "b": "2"}, {"a": "1", "b": "1"})
    assert pins({"a": {"1": ["a>1"], "0": []}}, "a", semantics=semantics) == {"a": "0"}


@BOTH
def test_yanked_version_is_chosen_only_if_pinned(semantics):
    projects = {"demo": {"1": [], "2": {"yanked": True, "requires_dist": []}}, "app": {"1": ["demo==2"]}}
    assert pins(projects, "demo", semantics=semantics) == {"demo": "1"}
    assert pins(projects, "demo>1", semantics=semantics) is None
    assert pins(projects, "demo==2", semantics=semantics) == {"demo": "2"}
    assert pins(projects, "demo", constraints=["demo==2"], semantics=semantics) == {"demo": "2"}
    both = {"demo": "2"} if semantics is Semantics.PIP else None  # uv requires the pin without other comparisons
    assert pins(projects, "demo==2,>1", semantics=semantics) == both
    transitive = {"app": "1", "demo": "2"} if semantics is Semantics.PIP else None  # uv considers the question only
    assert pins(projects, "app", semantics=semantics) == transitive


def test_uv_rejects_yanked_local_version_for_public_pin():
    projects = {"demo": {"2": {"yanked": True, "requires_dist": []}, "2+x": {"yanked": True, "requires_dist": []}}}
    assert pins(projects, "demo==2") == {"demo": "2+x"}
    assert pins(projects, "demo==2", semantics=Semantics.UV) == {"demo": "2"}


def test_uv_uses_only_the_lower_bound_of_requires_python():
    releases = {"1": ">=3.8", "2": ">=3.9,<3.12", "3": "!=3.12.*", "4": ">=3.12.1"}
    columns = {version: {"requires_python": python, "requires_dist": []} for version, python in releases.items()}
    assert pins({"demo": columns}, "demo") == {"demo": "1"}
    assert pins({"demo": columns}, "demo", semantics=Semantics.UV) == {"demo": "3"}
    assert pins({"demo": columns}, "demo<3", semantics=Semantics.UV) == {"demo": "2"}


def test_pre_releases_by_pip_rules():
    projects = {"demo": {"1": [], "2rc1": []}, "early": {"1a1": []}, "app": {"1": ["demo>=2rc1"], "2": ["demo>1"]}}
    assert pins(projects, "demo", "early") == {"demo": "1", "early": "1a1"}
    assert pins(projects, "demo", prereleases=Control.for_all(True)) == {"demo": "2rc1"}
    assert pins(projects, "demo>=1.5rc1") == {"demo": "2rc1"}
    assert pins(projects, "demo>1") == {"demo": "2rc1"}  # the only version left
    assert pins(projects, "demo", "app<2") == {"app": "1", "demo": "2rc1"}
    assert pins(projects, "app<2", "demo") == {"app": "1", "demo": "2rc1"}


def test_pre_releases_by_uv_rules():
    projects = {"demo": {"1": [], "2rc1": []}, "early": {"1a1": []}, "app": {"1": ["demo>=2rc1"], "2": ["demo>1"]}}
    assert pins(projects, "demo", "early", semantics=Semantics.UV) == {"demo": "1", "early": "1a1"}
    assert pins(projects, "demo", prereleases=Control.for_all(True), semantics=Semantics.UV) == {"demo": "2rc1"}
    assert pins(projects, "demo>=1.5rc1", semantics=Semantics.UV) == {"demo": "2rc1"}
    assert pins(projects, "demo>1", semantics=Semantics.UV) == {"demo": "2rc1"}  # the only version left
    assert pins(projects, "app<2", semantics=Semantics.UV) == {"app": "1", "demo": "2rc1"}
    assert pins(projects, "demo>=0a1", semantics=Semantics.UV) == {"demo": "1"}  # a final release is preferred


@BOTH
def test_direct_references_are_rejected_or_avoided(semantics):
    projects = {"app": {"1": [], "2": ["demo @ https://example.org/demo.whl"], "3": ["not a requirement!"]}}
    with pytest.raises(ResolveError, match=naming("demo")):
        resolve(MadeIndex(projects), question("demo @ https://example.org/demo.whl", semantics=semantics))
    assert pins(projects, "app", semantics=semantics) == {"app": "1"}
    with pytest.raises(UnsolvableError, match=naming("app==2", "demo")):
        resolve(MadeIndex(projects), question("app==2", semantics=semantics))


def test_unknown_requirements_end_the_resolution_or_are_reported():
    index = MadeIndex({"app": {"1": {"filenames": ["app-1.tar.gz"], "requires_dist": None, "outcome": "failed"}}})
    with pytest.raises(UnknownRequirementsError, match=naming("app-1.tar.gz", "failed")):
        resolve(index, question("app"))
    resolution = resolve(index, question("app", unknown=Unknown.ASSUME_NONE))
    assert resolution.pins == {"app": "1"}
    assert resolution.releases["app"].is_unknown


def test_requiring_projects_are_recorded():
    index = MadeIndex({"app": {"1": ["Lib[x]>=1", "six"]}, "lib": {"1": ["six>1; extra == 'x'"]}, "six": {"2": []}})
    resolution = resolve(index, question("app", "six"))
    assert resolution.roots == ("app", "six")
    assert resolution.serial == 100
    assert {name: release.requires for name, release in resolution.releases.items()} == {
        "app": ("lib", "six"),
        "lib": ("six",),
        "six": (),
    }
    assert resolution.releases["six"].required_by == (("", "six"), ("app", "six"), ("lib", "six>1; extra == 'x'"))


def test_limit_errors_name_the_last_attempt():
    everything = {
        f"p{number}": {str(version): [f"p{number + 1}=={version}"] for version in range(1, 30)} for number in range(8)
    }
    everything["p8"] = {"99": []}
    with pytest.raises(ResolutionLimitError, match=naming(20)):
        resolve(MadeIndex(everything), question("p0"), most_steps=20)
    with pytest.raises(ResolutionLimitError, match=naming(0)):
        resolve(MadeIndex(everything), question("p0"), most_seconds=0)


def test_files_are_read_once_for_many_questions():
    index = MadeIndex({"app": {"1": ["lib"]}, "lib": {"1": []}})
    for _ in range(3):
        resolve(index, question("app"))
    assert sorted(index.reads) == ["app", "lib"]


NAMES = "abcd"
VERSIONS = ("1", "2", "3")
SPECIFIERS = st.sampled_from(["", ">=2", "<2", "<3", "==1", "==2", "!=2", ">3"])
REQUIREMENTS = st.builds("{}{}".format, st.sampled_from([*NAMES, "b[x]", "c[y]", "nothing"]), SPECIFIERS)
EXTRAS = st.sampled_from(["", "", "; extra == 'x'", "; extra == 'y'", "; sys_platform == 'win32'"])
RELEASES = st.lists(st.builds("{}{}".format, REQUIREMENTS, EXTRAS), max_size=3)
PROJECTS = st.dictionaries(
    st.sampled_from(NAMES), st.dictionaries(st.sampled_from(VERSIONS), RELEASES, min_size=1), min_size=2
)


def is_solution(projects: dict[str, dict[str, list[str]]], roots: list[str], chosen: dict[str, str]) -> bool:
    """Check that the choice satisfies all requirements and has nothing else."""
    waiting = [(Requirement(text), None) for text in roots]
    met: set[tuple[str, frozenset[str]]] = set()
    reached = set()
    while waiting:
        wanted, extras = waiting.pop()
        variables = [{"sys_platform": "linux", "extra": extra} for extra in ("", *(extras or ()))]
        if wanted.marker is not None and not any(map(wanted.marker.evaluate, variables)):
            continue
        version = chosen.get(wanted.name)
        if version is None or not wanted.specifier.contains(version):
            return False
        reached.add(wanted.name)
        now = wanted.name, frozenset(wanted.extras)
        if now not in met:
            met.add(now)
            waiting += [(Requirement(text), wanted.extras) for text in projects[wanted.name][version]]
    return reached == set(chosen)


def has_solution(projects: dict[str, dict[str, list[str]]], roots: list[str]) -> bool:
    """Check whether any choice of versions is a solution."""
    names = sorted(projects)
    choices = product(*([None, *projects[name]] for name in names))
    return any(
        is_solution(
            projects, roots, {name: version for name, version in zip(names, choice, strict=True) if version is not None}
        )
        for choice in choices
    )


@pytest.mark.nightly
@BOTH
@settings(max_examples=examples(300), deadline=None)
@given(projects=PROJECTS, roots=st.lists(REQUIREMENTS, min_size=1, max_size=3))
def test_every_existing_solution_is_found(semantics, projects, roots):
    solution = pins(projects, *roots, semantics=semantics)
    if solution is None:
        assert not has_solution(projects, roots)
    else:
        assert is_solution(projects, roots, solution)


def test_pre_releases_can_be_disabled_by_project():
    projects = {"demo": {"1": [], "2rc1": []}, "lib": {"1rc1": []}, "app": {"1": ["demo>=2rc1"]}}
    for semantics in Semantics:
        final = {"semantics": semantics, "prereleases": Control().with_yes([":all:"]).with_no(["demo"])}
        assert pins(projects, "demo", "lib", **final) == {"demo": "1", "lib": "1rc1"}
        assert pins(projects, "demo==2rc1", **final) is None
        assert pins(projects, "app", **final) is None
        assert pins(projects, "lib", semantics=semantics, prereleases=Control().with_no([":all:"])) is None
        assert pins(projects, "demo", semantics=semantics, prereleases=Control().with_yes(["demo"])) == {"demo": "2rc1"}


def test_arbitrary_equality_compares_texts_in_pip_and_versions_in_uv():
    projects = {"demo": {"1.0": [], "1.0+local": [], "2": []}, "app": {"1": ["demo===1.0.0"]}}
    for wanted, as_pip, as_uv in [
        ("demo===1.0.0", None, {"demo": "1.0"}),
        ("demo===1.0", {"demo": "1.0"}, {"demo": "1.0"}),
        ("demo===1.0+LOCAL", {"demo": "1.0+local"}, {"demo": "1.0+local"}),
        ("app", None, {"app": "1", "demo": "1.0"}),
        ("demo===3", None, None),
        ("demo===1.0,<1", None, None),
    ]:
        assert pins(projects, wanted) == as_pip
        assert pins(projects, wanted, semantics=Semantics.UV) == as_uv


def test_pip_rejects_constraints_with_extras_and_uv_ignores_the_extras():
    index = MadeIndex({"demo": {"1": {"requires_dist": []}, "2": {"requires_dist": []}}})
    for text in ("demo[x]<2", "demo[x]<2; python_version < '3'"):
        with pytest.raises(ResolveError, match=naming("demo<2")):
            resolve(index, question("demo", constraints=[text]))
    as_uv = question("demo", constraints=["demo[x]<2"], semantics=Semantics.UV)
    assert resolve(index, as_uv).pins == {"demo": "1"}


def test_file_rejected_by_the_installer_is_skipped_or_an_error():
    def demo(*refusals: str) -> dict[str, Any]:
        return {"requires_dist": [], "refusals": list(refusals)}

    projects = {"demo": {"1": [], "2": demo("pip skips: x", "uv fails: x")}, "app": {"1": ["demo>=2"]}}
    assert pins(projects, "demo") == {"demo": "1"}
    assert pins(projects, "app") is None
    with pytest.raises(UnknownRequirementsError):
        pins(projects, "demo", semantics=Semantics.UV)
    assume = {"semantics": Semantics.UV, "unknown": Unknown.ASSUME_NONE}
    assert pins(projects, "demo", **assume) == {"demo": "2"}
    assert pins({"demo": {"1": [], "2": demo("uv skips: x")}}, "demo") == {"demo": "2"}
    assert pins({"demo": {"1": [], "2": demo("pip fails to install: x")}}, "demo") == {"demo": "2"}


def test_sdist_is_resolved_with_the_metadata_its_installer_reads():
    """Check that pip reads the served metadata and uv the sdist's own metadata."""

    def demo(*installed: str) -> dict[str, Any]:
        served = {"requires_dist": ["served"], "requires_python": ">=3.9", "filenames": ["demo-2.tar.gz"]}
        return served | {"installed_metadata": list(installed)}

    def answers(*installed: str) -> list[dict[str, str] | None]:
        projects = {"demo": {"1": [], "2": demo(*installed)}, "served": {"1": []}, "own": {"1": []}}
        return [pins(projects, "demo", semantics=semantics) for semantics in (Semantics.PIP, Semantics.UV)]

    by_pip = {"demo": "2", "served": "1"}
    assert answers("Name: demo", "Requires-Dist: own") == [by_pip, {"demo": "2", "own": "1"}]
    assert answers("Name: demo") == [by_pip, {"demo": "2"}]
    assert answers("Requires-Python: >=99") == [by_pip, {"demo": "1"}]
    assert answers() == [by_pip, by_pip]
    with pytest.raises(UnknownRequirementsError):
        answers("Name: demo", "Dynamic: Requires-Dist")


def test_format_and_hash_options_exclude_files():
    both = ["app-1-py3-none-any.whl", "app-1.tar.gz"]
    index = MadeIndex(
        {
            "app": {
                "1": {"requires_dist": [], "filenames": both},
                "2": {"requires_dist": [], "filenames": ["app-2.tar.gz"]},
            },
            "lib": {"1": {"requires_dist": [], "sha256": "1" * 64}, "2": {"requires_dist": [], "sha256": "2" * 64}},
        }
    )

    def taken(**options: object) -> str:
        file = resolve(index, question("app", **options)).releases["app"].candidate.file
        assert file is not None
        return str(file["filename"])

    assert taken() == "app-2.tar.gz"
    assert taken(formats=Control().with_yes(["app"])) == "app-1-py3-none-any.whl"
    assert taken(formats=Control().with_no([":all:"])) == "app-2.tar.gz"
    with pytest.raises(UnsolvableError, match=naming("lib", 2)):
        resolve(index, question("lib", formats=Control().with_no([":all:"])))
    hashed = replace(parse_wanted("lib"), hashes=frozenset({"1" * 64}))
    assert resolve(index, ResolutionQuestion((hashed,), LINUX)).pins == {"lib": "1"}
    with pytest.raises(UnsolvableError, match=naming("lib", 2)):
        resolve(index, ResolutionQuestion((replace(hashed, hashes=frozenset({"0" * 64})),), LINUX))
