"""The newest version is the one that an installer would choose by `packaging`."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import canonicalize_version
from packaging.version import InvalidVersion, Version

from pypi_assets.lookup.newest_requirements import newest_dependents, newest_distributions, newest_providers
from pypi_assets.lookup.release_comparison import compare_releases, form_of, is_same
from pypi_assets.version_order import newest_version

_VERSIONS = st.sampled_from(
    ["1.0", "1.0.0", "1", "2.0rc1", "2.0", "2.0.post1", "10.0", "1!0.1", "3.0.dev1", "2.0+local", "unknown", "0-beta-x"]
)


def chosen(versions: dict[str, bool]) -> set[str]:
    """Return the newest canonical version. `versions` maps each version to its yank status."""
    parsed = {}
    for version in versions:
        try:
            parsed[version] = Version(version)
        except InvalidVersion:
            continue
    good = [release for release in parsed if not versions[release]]
    for candidates in ([release for release in good if not parsed[release].is_prerelease], good):
        if candidates:
            newest = max(parsed[candidate] for candidate in candidates)
            return {release for release in parsed if parsed[release] == newest}
    no_versions = {release for release in versions if release not in parsed and not versions[release]}
    if no_versions:
        return {max(no_versions)}
    if parsed:
        newest = max(parsed.values())
        return {release for release in parsed if parsed[release] == newest}
    return {max(versions)}


@given(st.lists(_VERSIONS, min_size=1, unique=True))
def test_newest_version_matches_a_filter_with_packaging(versions: list[str]) -> None:
    assert newest_version(versions) in chosen(dict.fromkeys(versions, False))
    [row] = newest_providers([{"project": "demo", "versions": versions}])
    assert row == {"project": "demo", "versions": [newest_version(versions)]}


_REFUSALS = {0: [], 1: ["uv skips: odd"], 2: ["pip skips: odd", "uv skips: odd"]}


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c"]), _VERSIONS, st.booleans(), st.sampled_from(list(_REFUSALS))),
        max_size=12,
    )
)
def test_newest_distributions_match_a_filter_with_packaging(files: list[tuple[str, str, bool, int]]) -> None:
    rows: list[dict[str, Any]] = [
        {
            "normalized": project,
            "version": version,
            "yanked": yanked,
            "filename": str(number),
            "refusals": _REFUSALS[refused],
        }
        for number, (project, version, yanked, refused) in enumerate(sorted(files))
    ]
    expected = []
    for project in ("a", "b", "c"):
        of_project = [row for row in rows if row["normalized"] == project]
        releases: dict[str, bool] = {}
        for row in [row for row in of_project if len(row["refusals"]) < 2] or of_project:
            canonical = canonicalize_version(row["version"])
            releases[canonical] = releases.get(canonical, True) and row["yanked"]
        if releases:
            [newest] = {canonicalize_version(one) for one in chosen(releases)}
            expected += [row for row in of_project if canonicalize_version(row["version"]) == newest]
    assert list(newest_distributions(rows)) == expected


def test_dependent_keeps_only_lists_with_its_newest_version() -> None:
    row = {"required": "base", "normalized": "demo", "always": ["1.0"], "marker": ["10.0"], "extra": ["9.0", "10"]}
    kept = {**row, "always": [], "marker": ["10.0"], "extra": ["10"]}
    assert list(newest_dependents([row], {"demo": "10"}.__getitem__)) == [kept]
    assert list(newest_dependents([row], {"demo": "11"}.__getitem__)) == []
    assert list(newest_dependents([], {}.__getitem__)) == list(newest_providers([])) == []


def version(text: str, **fields: Any) -> dict[str, Any]:
    empty = {"requires_dist": [], "extras": [], "modules": [], "commands": [], "files": []}
    return {"project": "Demo", "normalized": "demo", "version": text, **empty, **fields}


def file(filename: str, kind: str = "wheel", requires_python: str | None = None) -> dict[str, Any]:
    return {"filename": filename, "kind": kind, "requires_python": requires_python}


def test_equal_versions_have_no_differences():
    before = version("1.0", requires_dist=["a"], modules=["demo"], files=[file("demo-1.0-py3-none-any.whl")])
    after = before | {"version": "2.0", "files": [file("demo-2.0-py3-none-any.whl")]}
    comparison = compare_releases(before, after)
    assert (comparison["before"], comparison["after"]) == ("1.0", "2.0")
    nothing = {"added": [], "removed": []}
    assert [comparison[name] for name in ("requires_python", "extras", "modules", "commands", "files")] == [nothing] * 5
    assert comparison["requirements"] == {"is_known": True, "added": [], "removed": [], "changed": []}
    assert is_same(comparison)


def test_comparison_has_added_removed_and_changed_values():
    before = version(
        "1.0",
        requires_dist=["six>=1", "idna<3", "gone", "a; extra=='x'"],
        modules=["demo", "demo.old"],
        extras=["x"],
        files=[file("demo-1.0.tar.gz", "sdist", ">=3.6")],
    )
    after = version(
        "2.0",
        requires_dist=["six>=1", "Idna<4", "new"],
        modules=["demo", "demo.new"],
        commands=["demo"],
        files=[file("demo-2.0-cp312-cp312-win_amd64.whl", requires_python=">=3.9")],
    )
    comparison = compare_releases(before, after)
    assert not is_same(comparison)
    assert comparison == {
        "project": "Demo",
        "normalized": "demo",
        "before": "1.0",
        "after": "2.0",
        "requires_python": {"added": [">=3.9"], "removed": [">=3.6"]},
        "requirements": {
            "is_known": True,
            "added": ["new"],
            "removed": ["gone", "a; extra=='x'"],
            "changed": [{"project": "idna", "before": ["idna<3"], "after": ["Idna<4"]}],
        },
        "extras": {"added": [], "removed": ["x"]},
        "modules": {"added": ["demo.new"], "removed": ["demo.old"]},
        "commands": {"added": ["demo"], "removed": []},
        "files": {"added": ["wheel cp312-cp312-win_amd64"], "removed": ["sdist"]},
    }


def test_other_spellings_of_requirements_and_extras_are_the_same():
    before = version("1.0", requires_dist=["certifi (>=2017.4.17)", "A_b<4,>=2 ; extra == 'use_x'"], extras=["use_x"])
    after = version("2.0", requires_dist=["certifi>=2017.4.17", 'a-b>=2,<4; extra == "use-x"'], extras=["use-x"])
    assert is_same(compare_releases(before, after))
    assert not is_same(compare_releases(before, after | {"requires_dist": ["certifi>=2018", *after["requires_dist"]]}))


def test_unreadable_requirements_are_not_compared():
    comparison = compare_releases(version("1.0", requires_dist=None), version("2.0", requires_dist=["a"]))
    assert comparison["requirements"] == {"is_known": False, "added": [], "removed": [], "changed": []}
    assert not is_same(comparison)


def test_requirements_that_name_no_project_are_not_paired():
    comparison = compare_releases(version("1.0", requires_dist=["!a"]), version("2.0", requires_dist=["!b"]))
    assert comparison["requirements"] == {"is_known": True, "added": ["!b"], "removed": ["!a"], "changed": []}


def test_invalid_wheel_filename_has_no_tags():
    assert form_of("odd.whl", "wheel") == "wheel"
    assert form_of("demo-1.0.egg", "egg") == "egg"
