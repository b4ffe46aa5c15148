"""Positions and ranges are the order and the specifiers of `packaging`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from pypi_assets.resolve.positions import Positions

_NUMBERS = st.sampled_from(["0", "1", "2", "10"])
_VERSIONS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "", "", "1!"]),
        st.lists(_NUMBERS, min_size=1, max_size=3).map(".".join),
        st.sampled_from(["", "", "a1", "b1", "rc2"]),
        st.sampled_from(["", "", ".post0", ".post1"]),
        st.sampled_from(["", "", ".dev0", ".dev1"]),
        st.sampled_from(["", "", "+a", "+1.b"]),
    ),
)
_NAMES = st.lists(_VERSIONS | st.sampled_from(["nothing", "1.x", "1.0.0"]), max_size=12, unique=True)
_COMPARISONS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["<", "<=", ">", ">=", "==", "!=", "~=", "==="]),
    _VERSIONS,
    st.sampled_from(["", "", ".*"]),
)


def _parsed(name: str) -> Version | None:
    try:
        return Version(name)
    except InvalidVersion:
        return None


def _is_specifier(text: str) -> bool:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True


_SPECIFIERS = st.lists(_COMPARISONS.filter(_is_specifier), max_size=3).map(",".join)


def _by_version(names: list[str]) -> list[tuple[Version, list[str]]]:
    found: dict[Version, list[str]] = {}
    for name in names:
        if (version := _parsed(name)) is not None:
            found.setdefault(version, []).append(name)
    spelled = [sorted(spellings, key=lambda text: (len(text), text)) for _, spellings in sorted(found.items())]
    return [(Version(spellings[0]), spellings) for spellings in spelled]


@given(names=_NAMES)
def test_positions_are_in_the_order_of_pep_440(names: list[str]) -> None:
    positions, ordered = Positions(names), _by_version(names)
    assert positions.names == [tuple(spellings) for _, spellings in ordered]
    numbers = range(positions.count)
    assert [str(positions.version(number)) for number in numbers] == [str(version) for version, _ in ordered]
    assert positions.known == (1 << len(ordered)) - 1
    stable = [not version.is_prerelease for version, _ in ordered]
    assert [bool(positions.stable >> number & 1) for number in numbers] == stable
    assert positions.newest_first() == [name for _, spellings in reversed(ordered) for name in spellings]


@given(names=_NAMES, version=_VERSIONS)
def test_version_is_found_in_any_spelling(names: list[str], version: str) -> None:
    versions = [known for known, _ in _by_version(names)]
    expected = versions.index(Version(version)) if Version(version) in versions else None
    assert Positions(names).number_of(version) == expected
    assert Positions(names).number_of("nothing") is None


@given(names=_NAMES, text=_SPECIFIERS)
def test_specifier_allows_the_versions_that_packaging_allows(names: list[str], text: str) -> None:
    specifier, positions = SpecifierSet(text), Positions(names)
    versions = [version for version, _ in _by_version(names)]
    allowed = set(specifier.filter(versions, prereleases=True))
    expected = [number for number, version in enumerate(versions) if version in allowed]
    for _ in range(2):  # the second answer comes from the cache
        bits = positions.allowed(specifier)
        assert [number for number in range(bits.bit_length()) if bits >> number & 1] == expected


@given(names=_NAMES, version=_VERSIONS)
def test_exact_version_is_compared_as_version_on_request(names: list[str], version: str) -> None:
    positions, specifier = Positions(names), SpecifierSet(f"==={version}")
    number = positions.number_of(version)
    assert positions.allowed(specifier, exact_as_text=False) == (0 if number is None else 1 << number)
    assert not positions.allowed(specifier) & ~positions.allowed(specifier, exact_as_text=False)


def test_each_kind_of_comparison_allows_one_range_of_thousands_of_versions() -> None:
    positions = Positions(f"{number}.{local}" for number in range(1_000) for local in ("0", "0+a", "0.post1", "0rc1"))
    cases = {
        ">=500": 500 * 4 - 1 - 4 * 0,
        "<500": 500 * 4,
        "==500.*": 4,
        "==500": 2,
        "<=500": 500 * 4 + 3,
        ">500": 499 * 4,
        "~=500.0": 3,
        "!=500": 3_998,
    }
    for text, count in cases.items():
        assert positions.allowed(SpecifierSet(text)).bit_count() == count, text


def test_comparisons_of_a_specifier_grow_with_the_logarithm_of_the_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    allows = Positions._allows

    def count(positions: Positions, one: Specifier, number: int) -> bool:
        compared.append(number)
        return allows(positions, one, number)

    monkeypatch.setattr(Positions, "_allows", count)
    for text in (">=1.5", "<1.700,!=1.3", ">1.5,<=1.700", "==1.*", "~=1.5", "==1.7"):
        for versions in (1_000, 4_000):
            positions = Positions(f"1.{number}" for number in range(versions))
            compared.clear()
            for _ in range(3):
                positions.allowed(SpecifierSet(text))
            assert len(compared) <= 2 * versions.bit_length(), text
