"""Versions are ordered as in `packaging`, which follows PEP 440."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from pypi_assets.version_order import newest_release, newest_version, version_key


@pytest.mark.parametrize(
    ("versions", "yanked", "newest"),
    [
        (["1.0", "2.0", "3.0rc1"], [], "2.0"),
        (["1.0", "2.0", "3.0rc1"], ["2.0"], "1.0"),
        (["1.0", "2.0rc1", "2.0.dev1"], ["1.0"], "2.0rc1"),
        (["1.0", "2.0rc1"], ["1.0", "2.0rc1"], "2.0rc1"),
        (["1.9", "1.10"], ["1.9", "1.10"], "1.10"),
        (["1.0", "1.0.post1"], [], "1.0.post1"),
        (["no version", "0.1"], [], "0.1"),
    ],
)
def test_stable_and_unyanked_versions_come_first(versions: list[str], yanked: list[str], newest: str) -> None:
    assert newest_version(versions, yanked) == newest


def test_release_is_yanked_if_all_its_files_are() -> None:
    assert newest_release([("1.0", False), ("2.0", True)]) == "1"
    assert newest_release([("1.0", False), ("2.0", True), ("2", False)]) == "2"
    assert newest_release([("1.0", True), ("2.0", True)]) == "2"


_NUMBERS = st.integers(0, 3)
_LOCAL = st.lists(st.sampled_from(["a", "b", "2", "10"]), min_size=1, max_size=3)
_VERSIONS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "1!"]),
        st.lists(_NUMBERS.map(str), min_size=1, max_size=3).map(".".join),
        st.just("") | st.builds("{}{}".format, st.sampled_from(["a", "b", "rc"]), _NUMBERS),
        st.just("") | st.builds(".post{}".format, _NUMBERS),
        st.just("") | st.builds(".dev{}".format, _NUMBERS),
        st.just("") | _LOCAL.map(lambda parts: "+" + ".".join(parts)),
    ),
)


@given(one=_VERSIONS, other=_VERSIONS)
def test_versions_compare_as_in_pep_440(one: str, other: str) -> None:
    parsed = (Version(one), one), (Version(other), other)
    assert (version_key(one) < version_key(other)) == (parsed[0] < parsed[1])


@given(one=st.text(), other=_VERSIONS)
def test_invalid_versions_come_first(one: str, other: str) -> None:
    assert version_key(f"no version {one}") < version_key(other)
