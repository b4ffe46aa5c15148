"""Projects that a version leaves without a solution, and pins of newest solutions, compared with single resolutions."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from pypi_assets.catalog.database import Catalog
from pypi_assets.lookup import DepgraphReader, open_latest
from pypi_assets.lookup.advisories import read_advisories
from pypi_assets.lookup.exposure import ExposedSolution, Undecided, exposed_solutions, possibly_exposed
from pypi_assets.lookup.newest_requirements import NewestRequirements
from pypi_assets.lookup.release_impact import Break, Solvable, Verdict, breaks
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets.resolve.questions import ResolutionQuestion, ResolveError, Unknown
from pypi_assets.resolve.releases import ReleaseIndex, past_index
from pypi_assets.resolve.resolving import ResolutionLimitError, UnsolvableError, resolve
from pypi_assets.resolve.solutions import Allowance, solution_of, verdict_on, with_version
from pypi_assets_tests.lookup.test_advisories import record, stored
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.prepared import published_storage
from pypi_assets_tests.resolve.made_index import LINUX, MadeIndex, question
from pypi_assets_tests.resolve.requirement_graphs import NEIGHBOURS, RequirementGraph, Upload
from pypi_assets_tests.small_catalog import small_catalog

ANY = ResolutionQuestion((), LINUX)
PROJECTS = NEIGHBOURS + 6
BREAKING = [("pkg-0x24", "0.9"), ("pkg-0x18", "1.2"), ("pkg-0x28", "3.1")]


class Drawn(NamedTuple):
    """A drawn index: its uploads, its catalog, and a reader of the published files."""

    uploads: list[Upload]
    catalog: Catalog
    serial: int
    depgraph: DepgraphReader

    def names(self) -> list[str]:
        return sorted({canonicalize_name(upload.name) for upload in self.uploads})

    def requires(self, project: str, version: str | None = None) -> set[str]:
        """Return the requirements of a project's release, or of all releases."""
        return {
            canonicalize_name(Requirement(text).name)
            for upload in self.uploads
            if canonicalize_name(upload.name) == project
            and (version is None or Version(upload.version) == Version(version))
            for text in upload.requires_dist
        }


@contextmanager
def drawn_index(folder: Path, seed: int) -> Iterator[Drawn]:
    drawn = random.Random(seed)
    uploads = [upload for release in RequirementGraph.drawn(PROJECTS, drawn).uploads() for upload in release]
    small = small_catalog(folder)
    for serial, upload in enumerate(uploads, 1):
        stem = f"{upload.name.replace('-', '_')}-{upload.version}"
        filename = f"{stem}-{upload.tag}.whl" if upload.kind == "wheel" else f"{stem}.tar.gz"
        if filename not in small.filenames:
            small.add(
                *(serial, upload.name, upload.version, filename),
                requires_dist=upload.requires_dist if upload.kind == "wheel" else None,
                requires_python=upload.requires_python,
            )
            if drawn.random() < 0.03:
                small.yank(serial, filename)
    small.complete(len(uploads) + 1)
    storage = published_storage(small.catalog, folder, "depgraph")
    with open_latest(DepgraphReader, storage) as depgraph:
        yield Drawn(uploads, small.catalog, len(uploads) + 1, depgraph)
    small.catalog.close()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drawn]:
    with drawn_index(tmp_path_factory.mktemp("drawn"), seed=2) as made:
        yield made


def ends(index: ReleaseIndex, requirement: str, *constraints: str) -> str:
    """Return the outcome of one resolution without caches."""
    try:
        resolve(index, question(requirement, constraints=constraints))
    except UnsolvableError:
        return "unsolvable"
    except ResolveError:
        return "undecided"
    return "solvable"


def solvable_by(index: ReleaseIndex, project: str, version: Version) -> Solvable:
    def solvable(name: str, newest: str) -> Verdict | None:
        return verdict_on(index, with_version(ANY, project, version), ANY, name, newest)

    return solvable


def compared(
    index: Drawn,
    releases: ReleaseIndex,
    without: Mapping[str, str],
    project: str,
    version: Version,
    found: list[Break],
) -> Counter[str]:
    """Compare the answer with the projects' own resolutions, and return the number of rows by reason."""
    rows = {row["normalized"]: row for row in found}
    assert len(rows) == len(found)
    for name in index.names():
        row = rows.get(name)
        if name == project:
            assert row is None
            continue
        newest = newest_version(index, name)
        with_it = ends(releases, f"{name}=={newest}", f"{project}=={version}")
        if row is None:
            assert (with_it, without[name]) != ("unsolvable", "solvable"), f"{name} is missing"
            continue
        assert row["version"] == newest
        check_chain(index, project, row)
        if row["reason"] == "excludes":
            texts = [Requirement(text) for text in row["requirements"]]
            assert all(not requirement.specifier.contains(version, prereleases=True) for requirement in texts)
            continue
        expected = {"unsolvable": ("unsolvable", "solvable"), "broken": ("unsolvable", "unsolvable")}
        assert (with_it, without[name]) == expected.get(row["reason"], ("undecided", without[name])), name
        assert row["proof"]
        if row["reason"] == "unsolvable":
            older = ends(releases, f"{name}=={row['older']}" if row["older"] else name, f"{project}=={version}")
            assert older in ({"solvable"} if row["older"] else {"unsolvable", "undecided"})
    return Counter(row["reason"] for row in found)


def newest_version(index: Drawn, name: str) -> str:
    [release] = CatalogSnapshot(index.catalog, index.serial).newest([name])
    assert release is not None
    return release.version


def check_chain(index: Drawn, project: str, row: Break) -> None:
    """Check that each step of the chain is required by some release, and the first by the newest release."""
    assert (row["chain"][0], row["chain"][-1], len(row["chain"])) == (row["required"], project, row["depth"])
    assert row["required"] in index.requires(row["normalized"], row["version"])
    for requiring, required in zip(row["chain"], row["chain"][1:], strict=False):
        assert required in index.requires(requiring)


@pytest.mark.nightly
def test_breaks_match_single_resolutions(index: Drawn) -> None:
    """Use versions that leave some projects without a solution and versions that do not."""
    requirements = CatalogSnapshot(index.catalog, index.serial)
    releases = ReleaseIndex(index.serial, index.depgraph.releases)
    without = {name: ends(releases, f"{name}=={newest_version(index, name)}") for name in index.names()}
    total: Counter[str] = Counter()
    for name, text in BREAKING:
        version = Version(text)
        solvable = solvable_by(releases, name, version)
        rows = list(breaks(requirements, name, version, transitive=True, solvable=solvable))
        total += compared(index, releases, without, name, version, rows)
        assert list(breaks(requirements, name, version, solvable=solvable)) == [
            row for row in rows if row["depth"] == 1
        ]
    assert total["unsolvable"] >= 3
    assert total["excludes"] >= 3
    assert total["broken"]
    assert total["undecided"]
    past = solvable_by(past_index(index.catalog, index.serial), name, version)
    assert list(breaks(requirements, name, version, transitive=True, solvable=past)) == rows


@pytest.mark.nightly
def test_newest_solutions_match_single_resolutions(index: Drawn, tmp_path: Path) -> None:
    drawn = random.Random(8)
    names = index.names()
    affecting = {
        name: newest_version(index, name) if drawn.random() < 0.7 else "0.1" for name in drawn.sample(names, 5)
    }
    records = {f"one{n}": record(name, versions=[one]) for n, (name, one) in enumerate(affecting.items())}
    advisories = read_advisories(stored(tmp_path / "osv", **records))
    releases = past_index(index.catalog, index.serial)
    pins: dict[str, Mapping[str, str] | Undecided | None] = {name: solution_of(releases, ANY, name) for name in names}
    expected = {
        (name, required, version)
        for name, chosen in pins.items()
        if isinstance(chosen, Mapping)
        for required, version in chosen.items()
        if required in affecting and Version(affecting[required]) == Version(version)
    }
    candidates = list(possibly_exposed(CatalogSnapshot(index.catalog, index.serial), advisories))
    assert len(candidates) == len(set(candidates))
    rows = list(exposed_solutions(candidates, advisories, lambda name: solution_of(releases, ANY, name)))
    pinned = {(row["normalized"], row["required"], row["version"]) for row in rows if row["undecided"] is None}
    assert pinned == expected
    assert {row["normalized"] for row in rows if row["undecided"]} == {
        name for name in candidates if isinstance(pins[name], Undecided)
    }
    assert len({name for name, required, _ in expected if name != required}) >= 2


STORY: dict[str, dict[str, list[str] | None]] = {
    "base": {"1.0": [], "2.0": []},
    "mid": {"1.0": ["base<2"], "2.0": ["base"], "3.0": ["unrelated"]},
    "app": {"1.0": ["mid<2"]},
    "late": {"1.0": [], "2.0": ["mid<2"]},
    "fine": {"1.0": ["mid"]},
    "lost": {"1.0": ["mid<2", "gone"]},
    "dark": {"1.0": ["mid", "source"]},
    "source": {"1.0": None},
    "unrelated": {"1.0": []},
}


class Graph:
    """The newest requirements of STORY."""

    def edges(self) -> None:
        return None

    def requiring(self, project: str, after: str | None = None) -> Iterator[str]:
        names = [
            name
            for name, releases in STORY.items()
            if any(Requirement(text).name == project for texts in releases.values() for text in texts or ())
        ]
        return iter(names)

    def newest(self, projects: list[str]) -> Iterator[object]:
        return (NewestRelease.latest(name) for name in projects)

    def versions(self, project: str) -> list[tuple[str, bool]]:
        return [(version, False) for version in STORY.get(project, ())]


class NewestRelease(NamedTuple):
    version: str
    requirements: list[list[str]]

    @classmethod
    def latest(cls, name: str) -> "NewestRelease":
        version = list(STORY[name])[-1]
        return cls(version, [STORY[name][version] or []])


GRAPH: NewestRequirements = Graph()  # type: ignore[assignment]


def test_breaks_through_older_releases_have_reasons_and_proofs() -> None:
    solvable = solvable_by(MadeIndex(STORY), "base", Version("2.0"))
    found = list(breaks(GRAPH, "base", Version("2.0"), transitive=True, solvable=solvable))
    rows = {row["normalized"]: row for row in found}
    assert {name: row["reason"] for name, row in rows.items()} == {
        "app": "unsolvable",
        "late": "unsolvable",
        "lost": "broken",
        "dark": "undecided",
    }
    assert rows["app"]["chain"] == ["mid", "base"]  # the newest mid does not require base
    assert (rows["app"]["older"], rows["late"]["older"]) == (None, "1.0")
    assert "mid" in (rows["app"]["proof"] or "")
    assert "base" in (rows["app"]["proof"] or "")
    assert "gone" in (rows["lost"]["proof"] or "")
    assert "source-1.0" in (rows["dark"]["proof"] or "")
    assumed = ResolutionQuestion((), LINUX, unknown=Unknown.ASSUME_NONE)
    with_it = with_version(assumed, "base", Version("2.0"))
    assert verdict_on(MadeIndex(STORY), with_it, assumed, "dark", "1.0") is None


def test_too_long_resolution_is_undecided(tmp_path: Path) -> None:
    index, with_it = MadeIndex(STORY), with_version(ANY, "base", Version("2.0"))
    verdict = verdict_on(index, with_it, ANY, "app", "1.0", most_seconds=-1.0)
    assert verdict is not None
    assert verdict.reason == "undecided"
    assert mentions(verdict.proof, "-1")
    solution = solution_of(index, ANY, "app", most_seconds=-1.0)
    assert isinstance(solution, Undecided)
    advisories = read_advisories(stored(tmp_path / "osv", one=record("base", versions=["1.0"])))
    [row] = exposed_solutions(["app"], advisories, lambda _: solution)
    assert row == ExposedSolution(
        normalized="app", chosen=None, required=None, version=None, advisories=[], undecided=solution.reason
    )


def test_total_time_is_bounded_and_the_rest_is_named() -> None:
    allowance = Allowance(1e-9)
    assert allowance.spend(lambda: "made", lambda reason: reason) == "made"
    assert mentions(allowance.spend(lambda: "made", lambda reason: reason), "1e-09 s")
    assert (allowance.decided, allowance.left_out) == (1, 1)
    free = Allowance()
    assert [free.spend(lambda: "made", lambda reason: reason) for _ in range(3)] == ["made"] * 3


def test_any_project_name_costs_one_answer() -> None:
    assert isinstance(solution_of(MadeIndex({}), ANY, "-"), Undecided)
    assert solution_of(MadeIndex({}), ANY, "unknown") is None
    with pytest.raises(ResolutionLimitError):
        resolve(MadeIndex(STORY), question("app"), most_seconds=-1.0)


def test_only_projects_that_can_reach_an_affected_version_are_resolved(tmp_path: Path) -> None:
    advisories = read_advisories(
        stored(tmp_path / "osv", one=record("mid", versions=["1.0"]), two=record("base", versions=["7"]))
    )
    assert set(possibly_exposed(GRAPH, advisories)) == {"mid", "app", "late", "fine", "lost", "dark"}
