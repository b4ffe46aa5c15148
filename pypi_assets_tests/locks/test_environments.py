"""Markers and wheels are evaluated like installers do. Unknown values decide nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker

from pypi_assets.locks.environments import (
    ANY_ENVIRONMENT,
    PLATFORMS,
    EnvironmentNameError,
    named_environment,
)

WHOLE = named_environment("3.12", "linux")
comparisons = st.sampled_from(
    [
        *("python_version < '3.9'", "python_version >= '3.12'", "'3.12' == python_version", "os_name == 'nt'"),
        *("sys_platform != 'win32'", "'lin' in sys_platform", "platform_machine not in 'arm64 x86_64'"),
        *("python_full_version > '3.12.0'", "implementation_name == 'pypy'", "platform_system == 'Linux'"),
    ]
)
markers = st.recursive(
    comparisons,
    lambda inner: st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda parts: f"({' '.join(parts)})"),
    max_leaves=8,
)


@given(markers)
def test_marker_of_known_values_agrees_with_packaging(marker: str) -> None:
    assert WHOLE.holds(marker) == Marker(marker).evaluate(dict(WHOLE.variables))


@given(markers)
def test_partial_knowledge_never_contradicts_full_knowledge(marker: str) -> None:
    for partly in (ANY_ENVIRONMENT, named_environment("3.12"), named_environment(platform="linux")):
        assert partly.holds(marker) in {None, WHOLE.holds(marker)}


@pytest.mark.parametrize(
    ("marker", "expected"),
    [(None, True), ("extra == 'x'", None), ("extra == 'x' and os_name == 'nt'", False), ("'a' in extras", None)],
)
def test_extras_are_unknown(marker: str | None, expected: bool | None) -> None:
    assert WHOLE.holds(marker) is expected


WHEELS = [
    "a-1-py3-none-any.whl",
    "a-1-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "a-1-7-cp312-cp312-manylinux_2_17_x86_64.whl",
    "a-1-cp311-abi3-manylinux1_x86_64.whl",
    "a-1-cp312-cp312-musllinux_1_1_x86_64.whl",
    "a-1-cp312-cp312-win_amd64.whl",
    "a-1-cp312-cp312-macosx_11_0_arm64.whl",
    "a-1-cp311-cp311-win_amd64.whl",
    "a-1-py2-none-any.whl",
    "no wheel.whl",
]


@pytest.mark.parametrize(
    ("python", "platform", "fitting"),
    [
        ("3.12", "linux", [2, 1, 3, 0]),
        ("3.12.4", "windows", [5, 0]),
        ("3.12", "macos", [6, 0]),
        ("3.12", "musllinux_1_2_x86_64", [4, 0]),
        ("3.12", "manylinux1_x86_64", [3, 0]),
        ("3.9", "linux", [0]),
    ],
)
def test_wheel_of_least_rank_is_installed(python: str, platform: str, fitting: list[int]) -> None:
    ranks = named_environment(python, platform).ranks(WHEELS)
    assert sorted(ranks, key=ranks.__getitem__) == [WHEELS[number] for number in fitting]


def test_newest_build_has_the_least_rank() -> None:
    builds = ["10", "2b1", "2b", "2ab", "2a", "2", "1"]
    wheels = [*(f"a-1-{build}-py3-none-any.whl" for build in builds), "a-1-py3-none-any.whl"]
    ranks = named_environment("3.12", "linux").ranks(reversed(wheels))
    assert sorted(ranks, key=ranks.__getitem__) == wheels


@pytest.mark.parametrize(
    ("python", "platform", "fitting"),
    [("3.12", None, [0, 1, 2, 3, 4, 5, 6]), (None, "windows", [0, 5, 7, 8]), (None, None, list(range(9)))],
)
def test_unknown_values_exclude_no_wheel(python: str | None, platform: str | None, fitting: list[int]) -> None:
    assert sorted(named_environment(python, platform).ranks(WHEELS)) == sorted(WHEELS[number] for number in fitting)


def test_requires_python_excludes_known_versions() -> None:
    assert not WHOLE.allows("<3.12")
    assert all(WHOLE.allows(text) for text in (">=3.8", None, "no specifier"))
    assert ANY_ENVIRONMENT.allows("<3")


def test_invalid_environment_is_rejected(subtests: pytest.Subtests) -> None:
    cases = [
        ("3", None),
        ("2.7", None),
        ("3.x", None),
        ("³.12", None),
        ("3.1234", None),
        (None, "solaris"),
        (None, "win"),
        (None, "macosx_11_0_vax"),
        (None, "manylinux_2_17"),
        (None, "x" * 10_000),
        (None, "linux_\0"),
    ]
    for python, platform in cases:
        with subtests.test(python=python, platform=platform):
            with pytest.raises(EnvironmentNameError) as caught:
                named_environment(python, platform)
            assert (platform or python or "")[:5] in str(caught.value)


def test_platform_aliases(subtests: pytest.Subtests) -> None:
    for platform in PLATFORMS:
        with subtests.test(platform=platform):
            environment = named_environment("3.12", platform)
            assert environment.is_whole
            assert environment.variables["platform_system"] in {"Linux", "Darwin", "Windows"}
