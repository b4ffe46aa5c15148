"""Markers hold in the environments that they are chosen for, and are simple."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker

from pypi_assets.resolve.universal import Variables, simplest_marker

LINUX, ARM, MAC, WINDOWS = ("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"), ("win32", "AMD64")
PYTHONS = ("3.9", "3.10", "3.11", "3.12")
ALL = tuple((python, *platform) for python in PYTHONS for platform in (LINUX, ARM, MAC, WINDOWS))
OLD, NEW = "python_version < '3.10'", "python_version >= '3.12'"
ON_WINDOWS, ON_MAC = "sys_platform == 'win32'", "sys_platform == 'darwin'"
VARIABLES = ("python_version", "sys_platform", "platform_machine")


def of(pythons: tuple[str, ...] = PYTHONS, *platforms: tuple[str, str]) -> frozenset[Variables]:
    some = platforms or (LINUX, ARM, MAC, WINDOWS)
    return frozenset((python, *platform) for python in pythons for platform in some)


def test_the_marker_is_the_simplest(subtests: pytest.Subtests):
    cases = [
        (of(), None),
        (of(PYTHONS, WINDOWS), "sys_platform == 'win32'"),
        (of(PYTHONS, LINUX, ARM), "sys_platform == 'linux'"),
        (of(PYTHONS, LINUX, ARM, MAC), "sys_platform != 'win32'"),
        (of(PYTHONS, ARM), "platform_machine == 'aarch64'"),
        (of(PYTHONS, LINUX, MAC, WINDOWS), "platform_machine != 'aarch64'"),
        (of(("3.9",)), "python_version < '3.10'"),
        (of(("3.10",)), "python_version == '3.10'"),
        (of(("3.10", "3.11")), "python_version >= '3.10' and python_version < '3.12'"),
        (of(("3.11", "3.12")), "python_version >= '3.11'"),
        (of(("3.12",), WINDOWS), "python_version >= '3.12' and sys_platform == 'win32'"),
        (of(PYTHONS, MAC, WINDOWS), "sys_platform != 'linux'"),
        (of(PYTHONS, ARM, MAC), "sys_platform != 'win32' and platform_machine != 'x86_64'"),
        (of(("3.9",)) | of(PYTHONS, WINDOWS), "python_version < '3.10' or sys_platform == 'win32'"),
        (of(("3.9",), WINDOWS) | of(("3.12",), MAC), f"({OLD} and {ON_WINDOWS}) or ({NEW} and {ON_MAC})"),
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
def test_it_holds_where_it_should_and_nowhere_else(environments, drawn):
    chosen = drawn.draw(st.sets(st.sampled_from(environments), min_size=1))
    marker = simplest_marker(frozenset(chosen), tuple(environments))
    for one in environments:
        holds = marker is None or Marker(marker).evaluate(dict(zip(VARIABLES, one, strict=True)))
        assert holds == (one in chosen)
