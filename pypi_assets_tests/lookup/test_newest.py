"""The newest version is the one that an installer would choose, by `packaging`."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import canonicalize_version
from packaging.version import InvalidVersion, Version

from pypi_assets.leveldbs.format.version_order import newest_version
from pypi_assets.lookup.newest_requirements import newest_dependents, newest_distributions, newest_providers

_VERSIONS = st.sampled_from(
    ["1.0", "1.0.0", "1", "2.0rc1", "2.0", "2.0.post1", "10.0", "1!0.1", "3.0.dev1", "2.0+local", "unknown", "0-beta-x"]
)


def chosen(versions: dict[str, bool]) -> set[str]:
    """The canonical version that is newest, where `versions` says of each whether it is yanked."""
    parsed = {}
    for version in versions:
        try:
            parsed[version] = Version(version)
        except InvalidVersion:
            continue
    good = [one for one in parsed if not versions[one]]
    for candidates in ([one for one in good if not parsed[one].is_prerelease], good):
        if candidates:
            newest = max(parsed[one] for one in candidates)
            return {one for one in parsed if parsed[one] == newest}
    no_versions = {one for one in versions if one not in parsed and not versions[one]}
    if no_versions:
        return {max(no_versions)}
    if parsed:
        newest = max(parsed.values())
        return {one for one in parsed if parsed[one] == newest}
    return {max(versions)}


@given(st.lists(_VERSIONS, min_size=1, unique=True))
def test_the_newest_version_is_that_of_a_filter_by_packaging(versions: list[str]) -> None:
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
def test_the_newest_distributions_are_those_of_a_filter_by_packaging(files: list[tuple[str, str, bool, int]]) -> None:
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


def test_a_dependent_is_kept_with_the_list_in_which_its_newest_version_is() -> None:
    row = {"required": "base", "normalized": "demo", "always": ["1.0"], "marker": ["10.0"], "extra": ["9.0", "10"]}
    kept = {**row, "always": [], "marker": ["10.0"], "extra": ["10"]}
    assert list(newest_dependents([row], {"demo": "10"}.__getitem__)) == [kept]
    assert list(newest_dependents([row], {"demo": "11"}.__getitem__)) == []
    assert list(newest_dependents([], {}.__getitem__)) == list(newest_providers([])) == []
