"""Dependency confusion: compare the names on several indexes, their age, and what each installer would choose."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from sqlalchemy import update

from pypi_assets.catalog.reports.live_files import skeleton
from pypi_assets.catalog.tables import distributions
from pypi_assets.confusion import (
    ALIKE,
    SAME,
    Confusion,
    HadFirst,
    OpenIndex,
    confusions,
    had_first,
    installed_version,
    open_indexes,
    public_names,
    require_indexes,
)
from pypi_assets.errors import SettingsError
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


def index(name: str, small: SmallCatalog, *, is_private: bool = False) -> OpenIndex:
    return OpenIndex(name, is_private, small.catalog, 1_000)


@pytest.fixture
def smalls(tmp_path: Path) -> Iterator[list[SmallCatalog]]:
    found = []
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        found.append(small_catalog(tmp_path / name))
    yield found
    for one in found:
        one.catalog.close()


def fill(small: SmallCatalog, files: Sequence[tuple[str, str]]) -> None:
    """Add files, given as (project, version), at serials 1, 2, ..."""
    for serial, (project, version) in enumerate(files, 1):
        small.add(serial, project, version, f"{project}-{version}.tar.gz")


def shown(found: Sequence[Confusion]) -> list[tuple[str, list[tuple[str, str]]]]:
    return [(one.kind, [(offer.index, offer.project.normalized) for offer in one.offers]) for one in found]


INSTALLED = [
    ({}, None),
    ({"1.0": False, "2.0": False, "10.0": False}, "10.0"),
    ({"1.0": False, "2.0rc1": False}, "1.0"),
    ({"1.0rc1": False, "2.0.dev1": False}, "2.0.dev1"),
    ({"1.0": False, "2.0": True}, "1.0"),
    ({"1.0": True}, None),
    ({"1.0": True, "2.0rc1": False}, None),
    ({"nonsense": False, "1.0": False}, "1.0"),
    ({"nonsense": False}, None),
    ({"1.0+company.1": False, "1.0": False}, "1.0+company.1"),
]


def test_installed_version_of_releases(subtests: pytest.Subtests) -> None:
    for releases, version in INSTALLED:
        with subtests.test(releases=releases, version=version):
            assert installed_version(releases) == version


VERSIONS = st.sampled_from(["1.0", "1.1", "2.0", "2.0rc1", "3.0.dev1", "1.0.post1", "1!0.5", "2.0+local"])


@given(st.dictionaries(VERSIONS, st.booleans()))
def test_installed_version_matches_packaging_and_pip(releases: dict[str, bool]) -> None:
    """pip applies PEP 440's rule for pre-releases to all versions, then removes yanked ones, and takes the highest."""
    allowed = [version for version in SpecifierSet().filter(releases) if not releases[version]]
    assert installed_version(releases) == max(allowed, key=Version, default=None)


def test_name_on_two_indexes_has_the_choice_of_each_installer(smalls: list[SmallCatalog]) -> None:
    company, public, other = smalls
    fill(company, [("acme-tools", "1.0"), ("only-here", "1.0"), ("both", "2.0")])
    fill(public, [("unrelated", "1.0"), ("Acme.Tools", "99.0"), ("both", "2.0.0"), ("both", "3.0rc1")])
    fill(other, [("something", "1.0")])
    indexes = [index("company", company), index("public", public), index("other", other)]
    acme, both = confusions(indexes)
    assert shown([acme]) == [(SAME, [("company", "acme-tools"), ("public", "acme-tools")])]
    assert (acme.pip, acme.pip_indexes, acme.uv, acme.uv_index) == ("99.0", ("public",), "1.0", "company")
    assert [offer.newest for offer in acme.offers] == ["1.0", "99.0"]
    assert [offer.project.since_serial for offer in acme.offers] == [1, 2]
    assert (both.pip_indexes, both.uv_index) == (("company", "public"), "company")
    [reordered, _] = confusions(list(reversed(indexes)))
    assert (reordered.uv, reordered.uv_index) == ("99.0", "public")


def test_removed_files_cause_no_confusion(smalls: list[SmallCatalog]) -> None:
    company, public, _ = smalls
    fill(company, [("demo", "1.0")])
    fill(public, [("demo", "2.0")])
    indexes = [index("company", company), index("public", public)]
    assert len(list(confusions(indexes))) == 1
    public.remove(7, "demo-2.0.tar.gz")
    assert list(confusions(indexes)) == []


def test_similar_names_across_indexes_are_found_and_do_not_compete(smalls: list[SmallCatalog]) -> None:
    company, public, _ = smalls
    fill(company, [("pillow", "1.0"), ("foo-bar", "1.0"), ("twice", "1.0"), ("tw1ce", "1.0")])
    fill(public, [("pi1low", "1.0"), ("foobar", "1.0"), ("foo_bar", "2.0"), ("p-illow", "1.0")])
    found = list(confusions([index("company", company), index("public", public)]))
    assert shown(found) == [
        (SAME, [("company", "foo-bar"), ("public", "foo-bar")]),
        (ALIKE, [("company", "foo-bar"), ("public", "foo-bar"), ("public", "foobar")]),
        (ALIKE, [("company", "pillow"), ("public", "p-illow"), ("public", "pi1low")]),
    ]
    assert {(one.pip, one.uv) for one in found if one.kind == ALIKE} == {(None, None)}
    assert shown(list(confusions([index("company", company), index("public", public)], "nope"))) == []


def test_confusions_can_be_limited_to_one_index(smalls: list[SmallCatalog]) -> None:
    for small in smalls:
        fill(small, [("everywhere", "1.0")])
    fill(smalls[0], [("two", "1.0")])
    fill(smalls[1], [("two", "1.0")])
    indexes = [index(name, small) for name, small in zip(("a", "b", "c"), smalls, strict=True)]
    assert len(list(confusions(indexes))) == 2
    assert shown(list(confusions(indexes, "c"))) == [
        (SAME, [("a", "everywhere"), ("b", "everywhere"), ("c", "everywhere")])
    ]


def test_confusions_of_many_names_match_pairwise_comparison(smalls: list[SmallCatalog]) -> None:
    names = [
        "".join(letters) for letters in itertools.product("1l0o5s-ab", repeat=3) if letters[0] != "-" != letters[2]
    ]
    has: list[set[str]] = []
    for number, small in enumerate(smalls[:2]):
        some = [name for place, name in enumerate(names) if place % 7 in {number, 3}]
        has.append(set(some))
        fill(small, [(name, "1.0") for name in some[:120]])
        has[-1] = set(some[:120])
    found = list(confusions([index("a", smalls[0]), index("b", smalls[1])]))
    assert {one.offers[0].project.normalized for one in found if one.kind == SAME} == has[0] & has[1]
    pairs = {(x, y) for x in has[0] for y in has[1] if x != y and skeleton(x) == skeleton(y)}
    in_groups = {
        (x.project.normalized, y.project.normalized)
        for one in found
        if one.kind == ALIKE
        for x in one.offers
        for y in one.offers
        if x.index == "a" and y.index == "b" and x.project.normalized != y.project.normalized
    }
    assert in_groups == pairs
    assert pairs


def test_had_first_compares_whole_seconds_and_ignores_unknown_times() -> None:
    yes, no, unknown = HadFirst.YES, HadFirst.NO, HadFirst.UNKNOWN
    for times, expected in {
        (): [],
        (1.0,): [yes],
        (1.0, 2.0): [yes, no],
        (2.0, 1.9): [no, yes],
        (1.9, 1.0): [unknown, unknown],
        (1.0, 1.0): [unknown, unknown],
        (1.9, 1.0, 2.0): [unknown, unknown, no],
        (3.0, 3.0, 2.0): [no, no, yes],
        (None, 1.0): [unknown, unknown],
        (None, 1.0, 2.0): [unknown, unknown, no],
        (None, None): [unknown, unknown],
    }.items():
        assert had_first(times) == expected, times


def test_public_name_is_new_unless_public_index_had_it_first(
    smalls: list[SmallCatalog],
) -> None:
    company, public, _ = smalls
    names = ["acme", "fork", "fine", "tie", "own"]
    fill(company, [(name, "1.0") for name in names])
    fill(public, [(name, "1.0") for name in ("fork", "acme", "fine", "tie", "acm3")])
    uploads = {
        "acme": ("2026-01-01T00:00:00.900000Z", "2026-01-01T00:00:01Z"),
        "fork": ("2026-01-01T00:00:01Z", "2026-01-01T00:00:00.900000Z"),
        "tie": ("2026-01-01T00:00:00.900000Z", "2026-01-01T00:00:00Z"),
        "fine": ("2026-01-01T00:00:00Z", None),
    }
    for name, times in uploads.items():
        for small, at in zip((company, public), times, strict=True):
            _uploaded(small, f"{name}-1.0.tar.gz", at)
    private, publics = index("company", company, is_private=True), [index("public", public)]
    found = {one.public.project.normalized: one for one in public_names(private, publics)}
    assert {name: (one.private_had_first, one.is_same_second, one.may_be_new) for name, one in found.items()} == {
        "acme": (HadFirst.YES, False, True),
        "fork": (HadFirst.NO, False, False),
        "tie": (HadFirst.UNKNOWN, True, True),
        "fine": (HadFirst.UNKNOWN, False, False),
    }
    accepted = ["Acme", "fine", "tie"]
    assert {one.public.project.normalized for one in public_names(private, publics, accepted)} == {"fork"}


def _uploaded(small: SmallCatalog, filename: str, at: str | None) -> None:
    with small.catalog.write() as connection:
        connection.execute(update(distributions).where(distributions.c.filename == filename).values(uploaded_at=at))


def test_index_without_catalog_is_reported_and_others_are_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clear_settings(monkeypatch)
    with pytest.raises(SettingsError, match="PYPI_ASSETS_INDEXES"):
        require_indexes()
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(tmp_path))
    monkeypatch.setenv("PYPI_ASSETS_INDEXES", str(Path(__file__).parent / "data" / "indexes.toml"))
    with closing(small_catalog(tmp_path).catalog), open_indexes(require_indexes()) as indexes:
        assert set(indexes.problems) == {"public", "company"}
        assert f"{tmp_path}/indexes/company" in indexes.problems["company"]
