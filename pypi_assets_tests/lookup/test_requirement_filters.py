"""Releases of dependents that accept or exclude a version."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.version import Version

from pypi_assets.lookup.answers import LookupNameError
from pypi_assets.lookup.requirement_filters import (
    accepting,
    excluding,
    kept_by_version,
    naming,
    parse_version,
    requirements_of,
    specifier_of,
    specifier_text,
)

SPECIFIERS = ("", ">=1", "<2", "==1.5", "!=1.5", ">=1,<2", "~=1.4", ">3", "===1.5", "==1.*")
MARKERS = ("", "; os_name == 'nt'", "; os_name != 'nt'", "; extra == 'x'")


def kept(which: str, version: str, files: list[dict[str, object]], always: list[str]) -> list[str]:
    row = {"normalized": "demo", "always": always, "marker": [], "extra": []}
    kept_rows = kept_by_version([row], "base", Version(version), which, lambda _: files)  # type: ignore[arg-type]
    return [release for one in kept_rows for release in one["always"]]


def test_release_accepts_or_excludes_if_one_of_its_files_does():
    requirements = [
        ("1.0", ["Base>=1", "other<1"]),
        ("1.0", ["base<2"]),
        ("2", None),
        ("3", ["base @ https://example.org/base.zip"]),
        ("4", ["base is not parsed"]),
        ("5", ["base"]),
    ]
    files = [{"version": version, "requires_dist": some, "refusals": []} for version, some in requirements]
    rejected = {"version": "2", "requires_dist": ["base"], "refusals": ["pip fails: odd", "uv fails: odd"]}
    files.append(rejected)
    releases = ["1.0", "2", "3", "4", "5"]
    assert kept("accepts", "1.5", files, releases) == ["1.0", "5"]
    assert kept("excludes", "1.5", files, releases) == []
    assert kept("excludes", "2.0", files, releases) == ["1.0"]
    assert kept("accepts", "2.0", files, releases) == ["1.0", "5"]
    assert kept("accepts", "1.5rc1", files, releases) == ["1.0", "5"]


def test_requirements_with_different_markers_are_alternatives():
    divided = (("base<2; os_name == 'nt'", "base>=2; os_name != 'nt'"),)
    assert accepting(divided, Version("3")) == (("base>=2; os_name != 'nt'",), 1)
    assert excluding(divided, Version("3")) == (("base<2; os_name == 'nt'",), 1)
    narrowed = (("base>=1", "base<2; os_name == 'nt'", "base[all]; extra == 'x'"),)
    assert accepting(narrowed, Version("3")) == (("base>=1", "base[all]; extra == 'x'"), 0)
    assert excluding(narrowed, Version("3")) == (("base<2; os_name == 'nt'",), 1)
    assert excluding(narrowed, Version("0.5")) == (("base>=1",), 0)
    assert accepting(narrowed, Version("0.5")) is None
    both = (("base>=1", "base<2"),)
    assert (accepting(both, Version("3")), excluding(both, Version("3"))) == (None, (("base<2",), 0))
    assert naming(narrowed) == (narrowed[0], 0)
    assert naming((("base @ https://example.org/base.zip ; extra == 'x'",),)) == (
        ("base @ https://example.org/base.zip ; extra == 'x'",),
        2,
    )
    assert naming(()) is None


def environments(requirements: list[str]) -> list[list[Requirement]]:
    """Return the requirements that apply together: without a marker, and with each marker."""
    parsed = [Requirement(requirement) for requirement in requirements]
    markers = {None, *(str(requirement.marker) for requirement in parsed if requirement.marker)}
    return [
        [requirement for requirement in parsed if requirement.marker is None or str(requirement.marker) == marker]
        for marker in sorted(markers, key=str)
    ]


@given(
    st.lists(st.tuples(st.sampled_from(SPECIFIERS), st.sampled_from(MARKERS)), min_size=1, max_size=4),
    st.sampled_from(["1", "1.5", "4", "1.5rc1"]),
)
def test_filters_match_a_search_over_environments(drawn: list[tuple[str, str]], version: str):
    requirements = [f"base{specifier}{marker}" for specifier, marker in drawn]
    lists = requirements_of("base", [["other<1", *requirements], ["base-2"]])
    applied = [environment for environment in environments(requirements) if environment]
    verdicts = {all(one.specifier.contains(version, prereleases=True) for one in some) for some in applied}
    assert (accepting(lists, Version(version)) is not None) == (True in verdicts)
    assert (excluding(lists, Version(version)) is not None) == (False in verdicts)


def test_invalid_version_is_rejected():
    assert parse_version("1.0") == Version("1.0")
    for text in ("latest", "", "9" * 5_000):
        with pytest.raises(LookupNameError, match=re.escape(repr(text)[:20])):
            parse_version(text)


def test_requirement_with_a_huge_number_neither_accepts_nor_excludes():
    lists = ((f"base>={'9' * 5_000}",),)
    assert accepting(lists, Version("1")) is excluding(lists, Version("1")) is None


def test_specifiers_exclude_url_requirements():
    assert [specifier_text(one) for one in ("base", "base >=1 ; os_name == 'nt'", "base @ https://x.example/")] == [
        "",
        ">=1",
        None,
    ]
    assert specifier_of("base is not parsed") is None
    assert str(specifier_of("base<2")) == "<2"
