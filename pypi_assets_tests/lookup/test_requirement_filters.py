"""Which releases of dependents accept a version, and which exclude it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from pypi_assets.lookup.lookup_command import LookupNameError
from pypi_assets.lookup.requirement_filters import kept_by_version, parse_version

SPECIFIERS = ("", ">=1", "<2", "==1.5", "!=1.5", ">=1,<2", "~=1.4", ">3")


def kept(which: str, version: str, files: list[dict[str, object]], always: list[str]) -> list[str]:
    row = {"normalized": "demo", "always": always, "marker": [], "extra": []}
    found = kept_by_version([row], "base", Version(version), which, lambda _: files)  # type: ignore[arg-type]
    return [release for one in found for release in one["always"]]


def test_a_release_excludes_what_one_of_its_files_excludes():
    files = [
        {"version": "1.0", "requires_dist": ["Base>=1", "other<1"]},
        {"version": "1.0", "requires_dist": ["base<2"]},
        {"version": "2", "requires_dist": None},
        {"version": "3", "requires_dist": ["base @ https://example.org/base.zip"]},
        {"version": "4", "requires_dist": ["base is not parsed"]},
    ]
    releases = ["1.0", "2", "3", "4"]
    assert kept("accepts", "1.5", files, releases) == ["1.0", "3"]
    assert kept("excludes", "1.5", files, releases) == []
    assert kept("excludes", "2.0", files, releases) == ["1.0"]
    assert kept("accepts", "2.0", files, releases) == ["3"]
    assert kept("accepts", "1.5rc1", files, releases) == ["1.0", "3"]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from(SPECIFIERS)), max_size=6), st.sampled_from(["1", "1.5", "4"])
)
def test_each_release_that_requires_it_accepts_or_excludes_a_version(files: list[tuple[int, str]], version: str):
    rows = [{"version": str(release), "requires_dist": [f"base{specifier}"]} for release, specifier in files]
    releases = sorted({row["version"] for row in rows})
    accepting, excluding = (kept(which, version, rows, releases) for which in ("accepts", "excludes"))  # type: ignore[arg-type]
    assert sorted(accepting + excluding) == releases


def test_what_is_no_version_is_refused():
    assert parse_version("1.0") == Version("1.0")
    with pytest.raises(LookupNameError):
        parse_version("latest")
