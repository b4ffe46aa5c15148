"""Dependents and exclusions of a version, compared with a search over all rows, published and at a serial."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, canonicalize_version
from packaging.version import InvalidVersion, Version

from pypi_assets.leveldbs.datasets.depgraph import depgraph_records
from pypi_assets.lookup import DepgraphReader, depgraph_reader, open_latest
from pypi_assets.lookup.newest_requirements import NewestRelease, NewestRequirements
from pypi_assets.lookup.release_impact import LONGEST_CHAIN, Impact, Verdict, breaks, impact
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets_tests.examples import examples
from pypi_assets_tests.lookup.test_newest import chosen
from pypi_assets_tests.lookup.test_requirement_filters import environments
from pypi_assets_tests.prepared import published_storage
from pypi_assets_tests.small_catalog import small_catalog

REJECTED = "-py2-none-any.whl"
"""The suffix of files that no installer takes."""
Files = Mapping[tuple[str, str, str], tuple[bool, list[str] | None]]
"""By (project, version, suffix): whether the file is yanked, and what it requires."""
REQUIREMENTS = (
    *("base", "Base>=2", "base<2; os_name == 'nt'", "base>=2 ; os_name != 'nt'", "base[x]==1.0; extra == 'y'"),
    *("mid", "mid<2", "mid>=2; extra == 'z'", "app ; os_name == 'nt'", "base @ https://example.org/base.zip", "-"),
)
PROJECTS = ("app", "base", "mid", "top")
files_drawn = st.dictionaries(
    st.tuples(
        st.sampled_from(PROJECTS),
        st.sampled_from(["1.0", "1.0.0", "2.0", "2.0.post1", "3.0rc1", "1!0.dev1", "no version"]),
        st.sampled_from([".zip", "-py3-none-any.whl", REJECTED]),
    ),
    st.tuples(st.booleans(), st.none() | st.lists(st.sampled_from(REQUIREMENTS), max_size=3)),
    max_size=14,
)


@contextmanager
def published(folder: Path, files: Files) -> Iterator[tuple[DepgraphReader, NewestRequirements]]:
    """Open a reader over the files, and the requirements of the catalog that they come from."""
    small = small_catalog(folder)
    for serial, ((project, version, suffix), (yanked, requires)) in enumerate(files.items(), 1):
        filename = f"{project}-{version}{suffix}"
        requires_dist = None if requires is None else tuple(requires)
        refusals = ("pip skips: odd", "uv fails: odd") if suffix == REJECTED else ()
        small.add(serial, project, version, filename, requires_dist=requires_dist, refusals=refusals)
        if yanked:
            small.yank(serial, filename)
    serial = len(files) + 1
    small.complete(serial)
    storage = published_storage(small.catalog, folder, "depgraph")
    with open_latest(DepgraphReader, storage) as depgraph:
        yield depgraph, CatalogSnapshot(small.catalog, serial)
    small.catalog.close()


class Model:
    """The same answers from a search over all rows with `packaging` alone."""

    def __init__(self, files: Files) -> None:
        self.newest: dict[str, tuple[str, list[list[str]]]] = {}
        files = {one: file for one, file in files.items() if one[2] != REJECTED}
        for project in {project for project, _, _ in files}:
            is_yanked: dict[str, bool] = {}
            for (name, version, _), (yanked, _) in files.items():
                if name == project:
                    release = canonicalize_version(version)
                    is_yanked[release] = is_yanked.get(release, True) and yanked
            [newest] = {canonicalize_version(version) for version in chosen(is_yanked)}
            of_newest = {one: requires for one, (_, requires) in files.items() if one[0] == project}
            of_newest = {one: requires for one, requires in of_newest.items() if canonicalize_version(one[1]) == newest}
            version = min(version for _, version, _ in of_newest)
            self.newest[project] = version, [requires for requires in of_newest.values() if requires]

    def verdicts(self, project: str, required: str, version: str | None) -> set[bool]:
        """Return whether environments of the project's newest release accept the version."""
        outcomes = set()
        for requires in self.newest[project][1]:
            parsed = [
                line for line in requires if line != "-" and canonicalize_name(Requirement(line).name) == required
            ]
            with_versions = [line for line in parsed if Requirement(line).url is None]
            if version is None:
                outcomes |= {True} if parsed else set()
                continue
            for environment in environments(with_versions):
                try:
                    Version(version)
                    verdict = all(line.specifier.contains(version, prereleases=True) for line in environment)
                except InvalidVersion:
                    verdict = all(not line.specifier for line in environment)
                outcomes |= {verdict} if environment else set()
        return outcomes

    def depths(self, name: str, version: str | None, *, accepted: bool = True) -> dict[str, int]:
        depths = {name: 0}
        for depth in range(1, len(PROJECTS) + 1):
            before = dict(depths)
            for required, at in before.items():
                if at != depth - 1:
                    continue
                wanted = version if depth == 1 else self.newest[required][0]
                verdict = accepted if depth == 1 else True
                for project in self.newest:
                    if project not in before and verdict in self.verdicts(project, required, wanted):
                        depths[project] = depth
        return {project: depth for project, depth in depths.items() if depth}


def checked_rows(found: list[Any], model: Model, name: str) -> dict[str, int]:
    """Check the order, chains and versions of rows, and return their depths."""
    depths: dict[str, int] = {}
    for row in found:
        assert row["version"] == model.newest[row["normalized"]][0]
        assert (row["chain"][0], row["chain"][-1], len(row["chain"])) == (row["required"], name, row["depth"])
        assert row["required"] == name or depths[row["required"]] == row["depth"] - 1
        assert all(
            canonicalize_name(Requirement(requirement).name) == row["required"] for requirement in row["requirements"]
        )
        assert row["requirements"]
        depths[row["normalized"]] = row["depth"]
    assert len(depths) == len(found)
    assert list(depths.values()) == sorted(depths.values())
    return depths


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow])
@given(files=files_drawn, few=st.sampled_from([2, 20]), version=st.sampled_from([None, "1.0", "2", "3.0rc1", "9"]))
def test_impact_matches_a_search_over_all_rows(files: Files, few: int, version: str | None) -> None:
    model = Model(files)
    wanted = None if version is None else Version(version)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(depgraph_records, "FEW_FILES", few)  # projects with many files are stored in another form
        patch.setattr(depgraph_reader, "_FEW", few)  # and so are many dependents
        with published(Path(folder), files) as (depgraph, past):
            assert found_in(depgraph, PROJECTS) == found_in(past, PROJECTS)
            for name in PROJECTS:
                for depth in (None, 2):
                    query = partial(impact, project=name, version=wanted, transitive=True, depth=depth)
                    found = list(query(depgraph))
                    assert found == list(query(past))
                    expected = model.depths(name, version)
                    expected = {one: at for one, at in expected.items() if depth is None or at <= depth}
                    assert checked_rows(found, model, name) == expected
                    direct = impact(depgraph, project=name, version=wanted)
                    assert list(direct) == [row for row in found if row["depth"] == 1]
                if wanted is not None:
                    broken_by = partial(breaks, project=name, version=wanted, transitive=True)
                    broken = list(broken_by(depgraph))
                    assert broken == list(broken_by(past))
                    assert checked_rows(broken, model, name) == model.depths(name, version, accepted=False)
                    assert {(row["depth"] == 1) == (row["reason"] == "excludes") for row in broken} <= {True}


FILES: Files = {
    ("base", "1.0", ".zip"): (False, []),
    ("base", "2.0", ".zip"): (False, ["base[x]; extra == 'y'"]),
    ("mid", "1.0", ".zip"): (False, ["Base>=1"]),
    ("old", "1.0", ".zip"): (False, ["base<2", "base>=0.5; os_name == 'nt'"]),
    ("top", "1.0", ".zip"): (False, ["old; extra == 'x'", "mid; os_name == 'nt'"]),
    ("over", "1.0", ".zip"): (False, ["top", "over"]),
    ("before", "1.0", ".zip"): (False, ["base"]),
    ("before", "2.0", ".zip"): (False, ["mid<1"]),
    ("link", "1.0", ".zip"): (False, ["base @ https://example.org/base.zip"]),
}


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[NewestRequirements]:
    with published(tmp_path, FILES) as (_, past):
        yield past


def names(rows: Iterator[Any]) -> list[tuple[int, str]]:
    return [(row["depth"], row["normalized"]) for row in rows]


def test_rows_have_release_requirement_condition_and_chain(graph: NewestRequirements) -> None:
    rows = list(impact(graph, "BASE", Version("2.0"), transitive=True))
    assert rows[0] == Impact(
        depth=1,
        required="base",
        normalized="mid",
        version="1.0",
        condition="always",
        requirements=["Base>=1"],
        specifiers=[">=1"],
        chain=["base"],
    )
    assert [(row["normalized"], row["condition"], row["chain"]) for row in rows[1:]] == [
        ("top", "marker", ["mid", "base"]),
        ("over", "always", ["top", "mid", "base"]),
    ]
    assert names(impact(graph, "base")) == [(1, "link"), (1, "mid"), (1, "old")]
    assert names(impact(graph, "base", transitive=True, depth=2)) == [*names(impact(graph, "base")), (2, "top")]


def test_excluding_releases_and_their_dependents_are_broken(graph: NewestRequirements) -> None:
    rows = list(breaks(graph, "base", Version("2.0"), transitive=True))
    assert [(row["normalized"], row["reason"], row["requirements"], row["chain"]) for row in rows] == [
        ("old", "excludes", ["base<2"], ["base"]),
        ("top", "requires", ["old; extra == 'x'"], ["old", "base"]),
        ("over", "requires", ["top"], ["top", "old", "base"]),
    ]
    assert names(breaks(graph, "base", Version("2.0"))) == [(1, "old")]
    assert names(breaks(graph, "base", Version("1.0"), transitive=True)) == []


def test_solver_decides_the_remaining_releases(graph: NewestRequirements) -> None:
    requested = []

    def solvable(project: str, newest: str) -> Verdict | None:
        requested.append((project, newest))
        verdicts = {"mid": Verdict("unsolvable", "because mid is broken", "0.9"), "top": Verdict("undecided", "late")}
        return verdicts.get(project)

    rows = list(breaks(graph, "base", Version("2.0"), transitive=True, solvable=solvable))
    assert [(row["normalized"], row["reason"], row["proof"], row["older"]) for row in rows] == [
        ("mid", "unsolvable", "because mid is broken", "0.9"),
        ("old", "excludes", None, None),
        ("top", "undecided", "late", None),
    ]
    assert [project for project, _ in requested] == ["link", "mid", "before", "top", "over"]  # needs an older mid
    assert all(graph.newest([project]).__next__().version == newest for project, newest in requested)  # type: ignore[union-attr]
    requested.clear()
    list(breaks(graph, "base", Version("2.0"), transitive=True, depth=1, solvable=solvable))
    assert [project for project, _ in requested] == ["link", "mid"]


def test_long_chain_is_truncated_and_cycle_ends(tmp_path: Path) -> None:
    count = LONGEST_CHAIN + 3
    files: Files = {(f"p{number:03}", "1", ".zip"): (False, [f"p{(number - 1) % count:03}"]) for number in range(count)}
    with published(tmp_path, files) as (depgraph, _):
        rows = list(impact(depgraph, project="p000", transitive=True))
    assert [row["normalized"] for row in rows] == [f"p{number:03}" for number in range(1, count)]
    assert [len(row["chain"]) for row in rows[-4:]] == [99, 100, 100, 100]
    assert rows[-1]["chain"][-1] == "p002"


NEWEST_FILES: Files = {
    ("demo", "1.0", ".zip"): (False, ["a"]),
    ("demo", "2.0", ".zip"): (False, ["b", "c"]),
    ("demo", "2.0.0", ".whl"): (True, ["b", "c"]),
    ("demo", "2.0.0", ".tar.gz"): (False, ["d"]),
    ("demo", "3.0", ".zip"): (True, ["e"]),
    ("demo", "4.0", ".zip"): (True, None),
    ("demo", "5.0", REJECTED): (False, ["m"]),
    ("demo", "2.0.0", REJECTED): (False, ["m"]),
    ("other", "1", ".zip"): (False, None),
    ("rejected", "1", REJECTED): (True, ["m"]),
    ("third", "1", ".zip"): (False, ["Demo>=2"]),
}


def found_in(graph: NewestRequirements, projects: tuple[str, ...]) -> list[object]:
    newest = [
        one and (one.version, [tuple(requirement) for requirement in one.requirements])
        for one in graph.newest(projects)
    ]
    return [
        *newest,
        *(sorted(graph.versions(project)) for project in projects),
        *(list(graph.requiring(one)) for one in "abmt"),
    ]


@pytest.mark.parametrize("few", [2, 20])
def test_newest_release_has_only_the_lists_of_its_files(
    few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(depgraph_records, "FEW_FILES", few)
    with published(tmp_path, NEWEST_FILES) as (depgraph, past):

        def check(graph: NewestRequirements) -> bool:
            demo, other, none = graph.newest(["demo", "other", "nope"])
            assert demo == NewestRelease("2.0", demo.requirements) if demo else False
            assert sorted(map(list, demo.requirements)) == [["b", "c"], ["d"]]
            assert (other and (other.version, list(other.requirements)), none) == (("1", []), None)
            assert sorted(graph.versions("demo")) == [
                ("1.0", False),
                ("2.0", False),
                ("2.0.0", False),
                ("3.0", True),
                ("4.0", True),
            ]
            assert list(graph.versions("nope")) == list(graph.requiring("m")) == []
            assert list(graph.versions("rejected")) == [("1", True)]
            assert (list(graph.requiring("demo")), list(graph.requiring("e"))) == (["third"], ["demo"])
            return True

        assert check(past)
        assert check(depgraph)
