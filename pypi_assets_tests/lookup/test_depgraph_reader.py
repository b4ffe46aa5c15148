"""Requirements of distributions, and dependents of a project by name, version and prefix."""

import random
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.utils import canonicalize_version

from pypi_assets.leveldbs.datasets.depgraph import depgraph_records
from pypi_assets.lookup import (
    Dependent,
    DepgraphReader,
    Distribution,
    LookupNameError,
    TransitiveDependent,
    open_latest,
)
from pypi_assets.lookup.depgraph_reader import (
    distributions_of,
    parse_requirement,
    requiring_projects,
    transitive_dependents,
)
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets.questions.snapshot import DependentsFilter
from pypi_assets_tests.dump_rows import dump_row
from pypi_assets_tests.examples import examples
from pypi_assets_tests.lookup.edges import without_edges
from pypi_assets_tests.lookup.publisher import Publisher
from pypi_assets_tests.lookup.test_newest import chosen
from pypi_assets_tests.prepared import published_storage
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


def test_prefix_results_are_ordered(publisher: Publisher) -> None:
    with open_latest("depgraph", publisher.storage) as depgraph:
        assert [row["filename"] for row in depgraph.projects("DEMO_")] == ["demo_b-1.0.tar.gz"]
        assert len(list(depgraph.projects())) == 2
        found = [
            (dependent["required"], dependent["normalized"], dependent["extra"])
            for dependent in depgraph.all_dependents("b")
        ]
        assert found == [("b-c", "demo", ["1.0"]), ("base", "demo", []), ("base", "demo-b", [])]


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ("demo", ("demo", None)),
        (" Demo.Pkg_x-1 ", ("Demo.Pkg_x-1", None)),
        ("a", ("a", None)),
        ("demo==1.0", ("demo", "1.0")),
        ("demo == v1!2+local ", ("demo", "v1!2+local")),
        ("demo==no-version", ("demo", "no-version")),
    ],
)
def test_requirement_with_name_and_version_is_parsed(requirement: str, expected: tuple[str, str | None]) -> None:
    assert parse_requirement(requirement) == expected


def test_other_requirements_are_rejected(subtests: pytest.Subtests) -> None:
    names = ("", " ", "demo-", "-demo", "größe")
    for requirement in (*names, "demo>=1", "demo==", "demo=1", "demo===1", "demo==1,<2", "demo==1;x", "a b"):
        with subtests.test(requirement=requirement), pytest.raises(LookupNameError, match="NAME==VERSION"):
            parse_requirement(requirement)


def test_catalog_rows_answer_as_a_version_does() -> None:
    rows = [dump_row("demo", version, f"demo-{version}.zip", project="Demo") for version in ("1.10", "1.9", "1.9.0")]
    distributions = distributions_of(rows)
    assert [file["version"] for file in distributions] == ["1.9", "1.9.0", "1.10"]
    assert {(file["project"], file["normalized"]) for file in distributions} == {("Demo", "demo")}
    assert set(distributions[0]) == set(Distribution.__annotations__)
    assert [distribution["version"] for distribution in distributions_of(rows, "v1.9")] == ["1.9", "1.9.0"]
    assert distributions_of(rows, "2") == distributions_of([]) == []


_REQUIREMENTS = st.lists(st.sampled_from(["base", "base; extra == 'x'", "mid", "app ; os_name == 'nt'"]), max_size=2)
_FILES = st.dictionaries(
    st.tuples(
        st.sampled_from(["app", "base", "mid"]),
        st.sampled_from(["1.0", "1.0.0", "2.0", "2.0.post1", "3.0rc1", "1!0.dev1", "no version"]),
        st.sampled_from([".zip", "-py3-none-any.whl"]),
    ),
    st.tuples(st.booleans(), _REQUIREMENTS),
    max_size=14,
)


def with_newest(depgraph: DepgraphReader, found: Iterable[Dependent]) -> Iterator[Dependent]:
    """Yield the rows that have their project's newest version, restricted to that version.

    The newest version is computed with `packaging` from all files of the project.
    """
    for row in found:
        is_yanked: dict[str, bool] = {}
        for file in depgraph.project(row["normalized"]).results:
            release = canonicalize_version(file["version"])
            is_yanked[release] = is_yanked.get(release, True) and file["yanked"]
        [newest] = {canonicalize_version(version) for version in chosen(is_yanked)}
        always, marker, extra = (
            [version for version in versions if canonicalize_version(version) == newest]
            for versions in (row["always"], row["marker"], row["extra"])
        )
        if always or marker or extra:
            yield {**row, "always": always, "marker": marker, "extra": extra}


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.too_slow])
@given(files=_FILES, few=st.sampled_from([2, 20]))
def test_latest_dependents_match_a_filter_with_packaging(
    files: dict[tuple[str, str, str], tuple[bool, list[str]]], few: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(depgraph_records, "FEW_FILES", few)  # projects with many files are stored in another form
        small = small_catalog(Path(folder))
        for serial, ((project, version, suffix), (yanked, requires)) in enumerate(files.items(), 1):
            small.add(serial, project, version, f"{project}-{version}{suffix}", requires_dist=tuple(requires))
            if yanked:
                small.yank(serial, f"{project}-{version}{suffix}")
        serial = len(files) + 1
        small.complete(serial)
        storage = published_storage(small.catalog, Path(folder), "depgraph")
        past = CatalogSnapshot(small.catalog, serial)
        with open_latest(DepgraphReader, storage) as depgraph:
            for name in ("app", "base", "mid", "nope"):
                expected = list(with_newest(depgraph, depgraph.dependents(name).results))
                assert list(depgraph.latest_dependents(name)) == expected
                assert list(past.dependents(name, DependentsFilter(is_latest=True), None).results) == expected
                transitive = transitive_dependents(
                    lambda one: with_newest(depgraph, depgraph.dependents(one).results), name
                )
                assert list(depgraph.transitive_dependents(name, latest=True)) == list(transitive)
            expected = list(with_newest(depgraph, depgraph.all_dependents("b")))
            assert list(depgraph.all_dependents("b", latest=True)) == expected
        small.catalog.close()


def test_caller_that_stops_early_reads_no_further_projects(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    version_yanks = depgraph_records.version_yanks
    monkeypatch.setattr(
        depgraph_records, "version_yanks", lambda db, project: read.append(project) or version_yanks(db, project)
    )
    with open_latest(DepgraphReader, publisher.storage) as depgraph:
        assert [result["normalized"] for result in depgraph.latest_dependents("base")] == ["demo", "demo-b"]
    assert read == []  # edges have the newest versions
    with without_edges(), open_latest(DepgraphReader, publisher.storage) as depgraph:
        results = iter(depgraph.latest_dependents("base"))
        assert (next(results)["normalized"], read) == ("demo", ["demo"])
        assert [result["normalized"] for result in results] == ["demo-b"]
    assert read == ["demo", "demo-b"]


_GRAPHS = st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh"), unique=True).map(sorted))


@given(graph=_GRAPHS, depth=st.none() | st.integers(1, 4))
def test_transitive_dependents_match_a_search_over_direct_ones(graph: dict[str, list[str]], depth: int | None) -> None:
    def direct(name: str) -> list[Dependent]:
        return [
            Dependent(required=name, normalized=one, always=["1"], marker=[], extra=[]) for one in graph.get(name, ())
        ]

    distances = {"a": 0}
    for steps in range(len("abcdefgh") if depth is None else depth):
        for name in [name for name, distance in distances.items() if distance == steps]:
            for one in graph.get(name, ()):
                distances.setdefault(one, steps + 1)
    reached = list(transitive_dependents(direct, "a", depth))
    assert {row["normalized"]: row["depth"] for row in reached} == {
        name: distance for name, distance in distances.items() if name != "a"
    }
    assert len(reached) == len({row["normalized"] for row in reached})
    assert [row["depth"] for row in reached] == sorted(row["depth"] for row in reached)
    assert all(distances[row["required"]] == row["depth"] - 1 for row in reached)
    assert all(row["normalized"] in graph[row["required"]] for row in reached)


def test_transitive_dependents_of_a_version_end_at_cycles(small: SmallCatalog, tmp_path: Path) -> None:
    small.add(1, "app", "1", "app-1.zip", requires_dist=("web>1", "app[all]; extra == 'x'"))
    small.add(2, "web", "1", "web-1.zip", requires_dist=("Base",))
    small.add(3, "web", "2", "web-2.zip", requires_dist=("base; extra == 'y'",))
    small.add(4, "base", "1", "base-1.zip", requires_dist=("app",))
    small.complete(10)
    storage = published_storage(small.catalog, tmp_path, "depgraph")
    with open_latest(DepgraphReader, storage) as depgraph:
        stream = depgraph.transitive_dependents("BASE")
        assert (stream.version, stream.serial) == (1, 10)
        assert list(stream) == [
            TransitiveDependent(depth=1, required="base", normalized="web", always=["1"], marker=[], extra=["2"]),
            TransitiveDependent(depth=2, required="web", normalized="app", always=["1"], marker=[], extra=[]),
        ]
        assert len(list(depgraph.transitive_dependents("base", depth=1))) == 1
        assert list(depgraph.transitive_dependents("nothing")) == []


def test_most_required_projects_have_files_and_the_most_dependents(tmp_path: Path) -> None:
    drawn = random.Random(7)
    small = small_catalog(tmp_path)
    names = [f"p{number}" for number in range(40)]
    for place, name in enumerate(names[:30]):
        required = tuple(one for rank, one in enumerate(names) if drawn.random() < 1 / (rank % 7 + 1))
        small.add(place + 1, name, "1", f"{name}-1-py3-none-any.whl", requires_dist=required)
    small.complete(100)
    storage = published_storage(small.catalog, tmp_path, "depgraph")
    small.catalog.close()
    with open_latest("depgraph", storage) as depgraph:
        counts = {name: depgraph.count_dependents(name) for name in sorted(names[:30])}
        expected = sorted(((name, count) for name, count in counts.items() if count), key=lambda one: -one[1])
        assert len(expected) == 30
        assert max(depgraph.count_dependents(name) for name in names[30:]) > expected[5][1]
        for most in (0, 1, 2, 5, 29, 30, 99):
            assert depgraph.most_required(most) == expected[:most]
            twos = [one for one in expected if one[0].startswith("p2")]
            assert depgraph.most_required(most, "P2") == twos[:most]
        assert depgraph.most_required(9, "p2", most_scanned=2) == [two for two in twos if two[0] in ("p2", "p20")]


def test_catalog_releases_answer_as_a_version_does() -> None:
    releases = [("a", "10", 0), ("a", "9", 2), ("a", "8", 0), ("b", "1", 1)]
    assert list(requiring_projects("Base.Pkg", releases)) == [
        Dependent(required="base-pkg", normalized="a", always=["8", "10"], marker=[], extra=["9"]),
        Dependent(required="base-pkg", normalized="b", always=[], marker=["1"], extra=[]),
    ]
    assert list(requiring_projects("base", [])) == []


@pytest.mark.parametrize("most", [2, 20])
def test_single_releases_add_up_to_the_project(small: SmallCatalog, tmp_path: Path, monkeypatch, most: int) -> None:
    monkeypatch.setattr(depgraph_records, "FEW_FILES", most)
    for serial, (version, suffix) in enumerate([("1.0", "a"), ("1.0", "b"), ("1.0.0", "c"), ("2.0", "d"), ("x", "e")]):
        requires = ("base",) if version == "1.0" else ("base>1",)
        small.add(serial + 1, "demo", version, f"demo-{version}-{suffix}.tar.gz", requires_dist=requires)
    small.complete(9)
    storage = published_storage(small.catalog, tmp_path, "depgraph")
    with open_latest(DepgraphReader, storage) as depgraph:
        releases = depgraph.releases("Demo")
        found = [file for name in releases.names for file in releases.files(name)]
        assert sorted(found, key=lambda one: one["filename"]) == sorted(
            depgraph.project("demo").results, key=lambda one: one["filename"]
        )
        assert len(found) == 5
        assert not depgraph.releases("nothing").names
