"""One answer for several environments: they share versions if possible, and markers separate the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.resolve.resolving import UnsolvableError, resolve
from pypi_assets.resolve.targets import target, universal_targets
from pypi_assets.resolve.universal import JoinedResolution, UnsolvableTargetError, resolve_for
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.resolve.made_index import MadeIndex, question

TARGETS = universal_targets(["3.11", "3.12"], ["linux-x86_64", "macos-arm64", "windows-x86_64"])


def resolved(projects: dict[str, dict[str, object]], *requirements: str, **options: object) -> JoinedResolution:
    return resolve_for(MadeIndex(projects), question(*requirements, **options), TARGETS)


def entries(answer: JoinedResolution) -> list[tuple[str, str, str | None]]:
    return [(release.normalized, release.version, release.marker) for release in answer.releases]


def test_common_pins_have_no_marker_unless_needed_in_some_environments():
    answer = resolved(
        {
            "app": {"1": ["six", "colorama; sys_platform == 'win32'", "tomli; python_version < '3.12'"]},
            "six": {"1": []},
            "colorama": {"1": ["six"]},
            "tomli": {"1": []},
        },
        "app",
    )
    assert entries(answer) == [
        ("app", "1", None),
        ("colorama", "1", "sys_platform == 'win32'"),
        ("six", "1", None),
        ("tomli", "1", "python_version < '3.12'"),
    ]
    app, colorama, six, _ = answer.releases
    assert app.requires == (("colorama", "1"), ("six", "1"), ("tomli", "1"))
    assert six.required_by == (("app", "six"), ("colorama", "six"))
    assert [str(environment) for environment in colorama.pins] == [
        "CPython 3.11 on windows-x86_64",
        "CPython 3.12 on windows-x86_64",
    ]
    assert answer.roots == ("app",)


def test_environments_agree_on_a_version_if_possible():
    projects = {
        "lib": {"1": [], "2": {"requires_python": ">=3.12"}, "3": {"requires_python": ">=3.12"}},
        "fast": {"1": [], "2": {"filenames": ["fast-2-py3-none-win_amd64.whl"]}},
    }
    assert entries(resolved(projects, "lib", "fast")) == [
        ("fast", "1", None),
        ("lib", "1", None),
    ]
    assert entries(resolved(projects, "lib; python_version < '3.12'", "lib>1; python_version >= '3.12'")) == [
        ("lib", "1", "python_version < '3.12'"),
        ("lib", "3", "python_version >= '3.12'"),
    ]


def test_one_environment_has_no_markers():
    index = MadeIndex({"app": {"1": ["six; sys_platform == 'linux'"]}, "six": {"1": []}})
    given = question("app")
    answer = resolve_for(index, given, [target("3.12", "linux")])
    assert entries(answer) == [("app", "1", None), ("six", "1", None)]
    assert {release.normalized: release.version for release in answer.releases} == resolve(index, given).pins


def test_extras_of_all_environments_are_joined():
    projects = {
        "app": {"1": ["lib[a]; sys_platform == 'linux'", "lib[b]; sys_platform != 'linux'"]},
        "lib": {"1": ["six; extra == 'a'"]},
        "six": {"1": []},
    }
    _, lib, six = resolved(projects, "app").releases
    assert (lib.extras, lib.marker) == (("a", "b"), None)
    assert six.marker == "sys_platform == 'linux'"


def test_environment_without_a_solution_is_named():
    projects = {"fast": {"1": {"filenames": ["fast-1-py3-none-win_amd64.whl"]}}}
    with pytest.raises(UnsolvableTargetError) as caught:
        resolved(projects, "fast")
    assert mentions(str(caught.value), "CPython 3.11 on linux-x86_64", "fast 1")
    assert str(caught.value.target) == "CPython 3.11 on linux-x86_64"
    with pytest.raises(UnsolvableTargetError) as caught:
        resolve_for(MadeIndex(projects), question("fast"), TARGETS[:1])
    assert str(caught.value) == str(caught.value.proof)


def test_files_usable_in_any_environment_are_listed():
    names = [
        "fast-1-cp311-cp311-manylinux_2_17_x86_64.whl",
        "fast-1-cp312-cp312-manylinux_2_17_x86_64.whl",
        "fast-1-cp310-cp310-manylinux_2_17_x86_64.whl",
        "fast-1-cp312-cp312-win_amd64.whl",
        "fast-1-cp312-cp312-win32.whl",
        "fast-1.tar.gz",
        "fast-1-py3.11.egg",
    ]
    projects = {"fast": {"1": {"filenames": names[:-1]}, "0": {"filenames": names[-1:], "kind": "egg"}}}
    answer = resolved(projects, "fast")
    [release] = answer.releases
    assert sorted(file["filename"] for file in answer.installable_files(release)) == sorted(
        [*names[:2], names[3], names[5]]
    )
    assert sorted(file["filename"] for file in answer.allowed_files(release)) == sorted(names[:-1])
    binary = resolve_for(MadeIndex(projects), question("fast", only_binary=True), TARGETS[:1])
    [release] = binary.releases
    assert [file["filename"] for file in binary.installable_files(release)] == names[:1]
    assert sorted(file["filename"] for file in binary.allowed_files(release)) == sorted(names[:5])


def test_yanked_file_is_used_only_if_all_are_yanked():
    half = {"filenames": ["demo-1.tar.gz"], "yanked": True}
    projects = {"demo": {"1": {"yanked": True}}, "lib": {"1": half}}
    answer = resolved(projects, "demo==1", "lib==1")
    assert [release.is_yanked for release in answer.releases] == [True, True]
    assert [len(answer.installable_files(release)) for release in answer.releases] == [1, 1]


NAMES = ("a", "b", "c", "d")
MARKERS = ("", "; sys_platform == 'win32'", "; python_version < '3.12'", "; platform_machine == 'arm64'")
REQUIREMENTS = st.builds(
    "{}{}{}".format, st.sampled_from(NAMES), st.sampled_from(["", "<2", ">1", "==1", "==3"]), st.sampled_from(MARKERS)
)
COLUMNS = st.builds(
    lambda requires, python, files: {"requires_dist": requires, "requires_python": python, **files},
    st.lists(REQUIREMENTS, max_size=2),
    st.sampled_from([None, None, ">=3.12", "<3.12"]),
    st.sampled_from([{}, {}, {"filenames": ["x-1-py3-none-win_amd64.whl"]}]),
)
PROJECTS = st.fixed_dictionaries(
    {name: st.dictionaries(st.sampled_from(["1", "2", "3"]), COLUMNS, min_size=1) for name in NAMES}
)


@given(projects=PROJECTS, roots=st.lists(REQUIREMENTS, min_size=1, max_size=3))
def test_markers_select_a_solution_in_each_environment(projects, roots):
    try:
        answer = resolved(projects, *roots)
    except UnsolvableTargetError as error:
        with pytest.raises(UnsolvableError):
            resolve(MadeIndex(projects), question(*roots, environment=error.target.environment))
        return
    for place in TARGETS:
        selected = [
            (release.normalized, release.version)
            for release in answer.releases
            if place.environment.holds(release.marker)
        ]
        names = [name for name, _ in selected]
        assert len(names) == len(set(names))
        pinned = question(
            *roots, environment=place.environment, constraints=[f"{name}=={text}" for name, text in selected]
        )
        assert resolve(MadeIndex(projects), pinned).pins == dict(selected)
