"""Names of environments, and which of them markers can tell apart."""

import sys
from pathlib import Path

import pytest
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
from pypi_assets_tests.naming import naming

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_by_default_it_is_the_running_python_on_the_running_platform():
    found = target()
    assert str(found) == f"CPython {running_python()} on {running_platform()}"
    assert found.environment.python == sys.version_info[:3]
    if sys.implementation.name == "cpython":
        assert Marker(found.marker).evaluate()


def test_the_running_platform_is_known_by_its_first_tag(monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests):
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
    found = universal_targets(["3.13", "3.11.4"], ["macos", "windows-arm64"])
    assert [str(one) for one in found] == [
        "CPython 3.11.4 on macos",
        "CPython 3.11.4 on windows-arm64",
        "CPython 3.13 on macos",
        "CPython 3.13 on windows-arm64",
    ]
    assert found[1].variables == ("3.11", "win32", "ARM64")


def test_by_default_they_are_from_the_running_python_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pypi_assets.resolve.targets.sys.version_info", (3, 13, 2))
    found = universal_targets()
    assert list(dict.fromkeys(one.python for one in found)) == ["3.13", "3.14"]
    assert [one.platform for one in found[:4]] == list(UNIVERSAL_PLATFORMS)
    assert len(found) == 8
    monkeypatch.setattr("pypi_assets.resolve.targets.sys.version_info", (3, 15, 0))
    assert {one.python for one in universal_targets()} == {"3.15"}


def test_the_pythons_are_those_that_the_project_is_for():
    classifiers = [f'"Programming Language :: Python :: {one}"' for one in PYTHONS]
    assert [line.strip(" ,") for line in PROJECT.read_text().splitlines() if "Python :: 3." in line] == classifiers


@pytest.mark.parametrize(
    ("pythons", "platforms"),
    [(["3.12", "3.12.4"], []), ([], ["linux", "linux-x86_64"]), (["3.12"], ["musllinux-x86_64", "linux"])],
)
def test_environments_that_no_marker_divides_are_refused(
    pythons: list[str], platforms: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pypi_assets.resolve.targets.sys.version_info", (3, 12, 1))
    with pytest.raises(ResolveError, match=naming("CPython 3.12", "linux")):
        universal_targets(pythons, platforms)


def test_unknown_names_are_refused():
    with pytest.raises(EnvironmentNameError, match=naming("beos")):
        universal_targets([], ["beos"])
    with pytest.raises(EnvironmentNameError, match=naming("2.7")):
        target("2.7")


def test_the_marker_of_a_target_holds_there_alone():
    names = [name for name in PLATFORMS if "-" in name and not name.startswith("musl")]
    found = universal_targets(PYTHONS, names)
    for one in found:
        assert [str(other) for other in found if other.environment.holds(one.marker)] == [str(one)]
