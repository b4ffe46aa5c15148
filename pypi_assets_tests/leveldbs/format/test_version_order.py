"""The order of versions is that of `packaging`, which is PEP 440's."""

from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from pypi_assets.leveldbs.format.version_order import version_key

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
def test_what_is_no_version_comes_first(one: str, other: str) -> None:
    assert version_key(f"no version {one}") < version_key(other)
