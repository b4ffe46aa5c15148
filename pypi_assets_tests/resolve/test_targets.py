"""Environments by name, and the markers that distinguish them."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker

from pypi_assets.locks.environments import PLATFORMS, EnvironmentNameError
from pypi_assets.resolve.questions import ResolveError
from pypi_assets.resolve.targets import (
    PYTHONS,
    UNIVERSAL_PLATFORMS,
    running_platform,
    running_python,
    target,
    universal_targets,
)
from pypi_assets.resolve.universal import Variables, simplest_marker
from pypi_assets_tests.naming import naming

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_default_is_the_running_python_and_platform():
    default = target()
    assert str(default) == f"CPython {running_python()} on {running_platform()}"
    assert default.environment.python == sys.version_info[:3]
    if sys.implementation.name == "cpython":
        assert Marker(default.marker).evaluate()


def test_running_platform_is_recognized_by_its_first_tag(monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests):
    cases = [
        ("manylinux_2_41_x86_64", "linux-x86_64"),
        ("manylinux_2_31_aarch64", "linux-aarch64"),
        ("musllinux_1_2_x86_64", "musllinux-x86_64"),
        ("musllinux_1_1_aarch64", "musllinux-aarch64"),
        ("macosx_15_0_arm64", "macos-arm64"),
        ("macosx_10_15_x86_64", "macos-x86_64"),
        ("win_amd64", "windows-x86_64"),
        ("win_arm64", "windows-arm64"),
        ("manylinux_2_31_riscv64", "linux-x86_64"),
        ("freebsd_14", "linux-x86_64"),
    ]
    for tag, name in cases:
        with subtests.test(tag=tag):
            monkeypatch.setattr("pypi_assets.resolve.targets.platform_tags", [tag, "linux_x86_64"].__iter__)
            assert running_platform() == name


def test_several_environments_are_ordered_by_python():
    targets = universal_targets(["3.13", "3.11.4"], ["macos", "windows-arm64"])
    assert [str(environment) for environment in targets] == [
        "CPython 3.11.4 on macos",
        "CPython 3.11.4 on windows-arm64",
        "CPython 3.13 on macos",
        "CPython 3.13 on windows-arm64",
    ]
    assert targets[1].variables == ("3.11", "win32", "ARM64")


def test_default_range_starts_at_the_running_python(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pypi_assets.resolve.targets.sys.version_info", (3, 13, 2))
    targets = universal_targets()
    assert list(dict.fromkeys(environment.python for environment in targets)) == ["3.13", "3.14"]
    assert [environment.platform for environment in targets[:4]] == list(UNIVERSAL_PLATFORMS)
    assert len(targets) == 8
    monkeypatch.setattr("pypi_assets.resolve.targets.sys.version_info", (3, 15, 0))
    assert {environment.python for environment in universal_targets()} == {"3.15"}


def test_pythons_follow_requires_python():
    classifiers = [f'"Programming Language :: Python :: {python}"' for python in PYTHONS]
    assert [line.strip(" ,") for line in PROJECT.read_text().splitlines() if "Python :: 3." in line] == classifiers


@pytest.mark.parametrize(
    ("pythons", "platforms"),
    [(["3.12", "3.12.4"], []), ([], ["linux", "linux-x86_64"]), (["3.12"], ["musllinux-x86_64", "linux"])],
)
def test_environments_that_markers_cannot_distinguish_are_rejected(
    pythons: list[str], platforms: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pypi_assets.resolve.targets.sys.version_info", (3, 12, 1))
    with pytest.raises(ResolveError, match=naming("CPython 3.12", "linux")):
        universal_targets(pythons, platforms)


def test_unknown_names_are_rejected():
    with pytest.raises(EnvironmentNameError, match=naming("beos")):
        universal_targets([], ["beos"])
    with pytest.raises(EnvironmentNameError, match=naming("2.7")):
        target("2.7")


def test_marker_of_a_target_holds_only_there():
    names = [name for name in PLATFORMS if "-" in name and not name.startswith("musl")]
    targets = universal_targets(PYTHONS, names)
    for place in targets:
        assert [str(other) for other in targets if other.environment.holds(place.marker)] == [str(place)]


LINUX, ARM, MAC, WINDOWS = ("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"), ("win32", "AMD64")
SOME_PYTHONS = ("3.9", "3.10", "3.11", "3.12")
ALL = tuple((python, *platform) for python in SOME_PYTHONS for platform in (LINUX, ARM, MAC, WINDOWS))
OLD, NEW = "python_version < '3.10'", "python_version >= '3.12'"
ON_WINDOWS, ON_MAC = "sys_platform == 'win32'", "sys_platform == 'darwin'"
VARIABLES = ("python_version", "sys_platform", "platform_machine")


def places(pythons: tuple[str, ...] = SOME_PYTHONS, *platforms: tuple[str, str]) -> frozenset[Variables]:
    chosen = platforms or (LINUX, ARM, MAC, WINDOWS)
    return frozenset((python, *platform) for python in pythons for platform in chosen)


def test_simplest_marker_is_used(subtests: pytest.Subtests):
    cases = [
        (places(), None),
        (places(SOME_PYTHONS, WINDOWS), "sys_platform == 'win32'"),
        (places(SOME_PYTHONS, LINUX, ARM), "sys_platform == 'linux'"),
        (places(SOME_PYTHONS, LINUX, ARM, MAC), "sys_platform != 'win32'"),
        (places(SOME_PYTHONS, ARM), "platform_machine == 'aarch64'"),
        (places(SOME_PYTHONS, LINUX, MAC, WINDOWS), "platform_machine != 'aarch64'"),
        (places(("3.9",)), "python_version < '3.10'"),
        (places(("3.10",)), "python_version == '3.10'"),
        (places(("3.10", "3.11")), "python_version >= '3.10' and python_version < '3.12'"),
        (places(("3.11", "3.12")), "python_version >= '3.11'"),
        (places(("3.12",), WINDOWS), "python_version >= '3.12' and sys_platform == 'win32'"),
        (places(SOME_PYTHONS, MAC, WINDOWS), "sys_platform != 'linux'"),
        (places(SOME_PYTHONS, ARM, MAC), "sys_platform != 'win32' and platform_machine != 'x86_64'"),
        (
            places(("3.9",)) | places(SOME_PYTHONS, WINDOWS),
            "python_version < '3.10' or sys_platform == 'win32'",
        ),
        (
            places(("3.9",), WINDOWS) | places(("3.12",), MAC),
            f"({OLD} and {ON_WINDOWS}) or ({NEW} and {ON_MAC})",
        ),
    ]
    for chosen, expected in cases:
        with subtests.test(chosen=chosen):
            assert simplest_marker(chosen, ALL) == expected


def test_one_environment_needs_no_marker():
    assert simplest_marker(frozenset(ALL[:1]), ALL[:1]) is None


ENVIRONMENTS = st.lists(
    st.tuples(
        st.sampled_from(["3.8", "3.9", "3.10", "3.11", "3.12", "3.13"]),
        st.sampled_from(["linux", "darwin", "win32"]),
        st.sampled_from(["x86_64", "aarch64", "arm64", "AMD64"]),
    ),
    min_size=1,
    max_size=24,
    unique=True,
)


@given(environments=ENVIRONMENTS, drawn=st.data())
def test_marker_holds_exactly_for_its_targets(environments, drawn):
    chosen = drawn.draw(st.sets(st.sampled_from(environments), min_size=1))
    marker = simplest_marker(frozenset(chosen), tuple(environments))
    for environment in environments:
        holds = marker is None or Marker(marker).evaluate(dict(zip(VARIABLES, environment, strict=True)))
        assert holds == (environment in chosen)
