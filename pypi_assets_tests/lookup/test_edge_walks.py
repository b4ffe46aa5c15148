"""Answers from edges equal the answers from records, and DuckDB's recursive query over the same edges."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from packaging.version import Version

from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.depgraph import depgraph_records, edge_building
from pypi_assets.leveldbs.datasets.depgraph.edges import Edges
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.lookup import DepgraphReader, open_latest
from pypi_assets.lookup.latest import open_version
from pypi_assets.lookup.release_impact import Verdict, breaks, impact
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.examples import examples
from pypi_assets_tests.lookup.drawn_catalogs import REQUIRED, batches, made_of
from pypi_assets_tests.lookup.edges import without_edges
from pypi_assets_tests.lookup.publisher import Publisher
from pypi_assets_tests.small_catalog import small_catalog

NAMES = [name for name in REQUIRED if "\udc80" not in name]


def answers(depgraph: DepgraphReader) -> Iterator[tuple[str, object]]:
    """Yield everything that edges answer, each with the name of the query."""
    for prefix in ("", "d", "demo", "x"):
        yield f"all {prefix}", list(depgraph.all_dependents(prefix, latest=True))
        for after in (("demo", "other"), ("demo-pkg", ""), ("e", "")):
            yield f"all {prefix} {after}", list(depgraph.all_dependents(prefix, after, latest=True))
        for most in (0, 1, 3, 100):
            yield f"most {prefix} {most}", depgraph.most_required(most, prefix)
            yield f"most {prefix} {most} of 2", depgraph.most_required(most, prefix, 2)
    for name in NAMES:
        yield f"latest {name}", list(depgraph.latest_dependents(name))
        yield f"latest {name} after", list(depgraph.streamed_dependents(name, "other", latest=True))
        for depth in (None, 1, 2):
            for latest in (True, False):
                found = list(depgraph.transitive_dependents(name, depth, latest=latest))
                yield f"transitive {name} {depth} {latest}", found
        for version in (None, Version("1"), Version("2"), Version("10")):
            for transitive in (False, True):
                yield (
                    f"impact {name} {version} {transitive}",
                    list(impact(depgraph, name, version, transitive=transitive)),
                )
            yield f"impact {name} {version} after", list(impact(depgraph, name, version, after="other"))
            if version is not None:
                for judge in (None, judged):
                    yield (
                        f"breaks {name} {version} {judge}",
                        list(breaks(depgraph, name, version, transitive=True, solvable=judge)),
                    )
    yield "counts", depgraph.dependents_of_each(NAMES)


def judged(project: str, version: str) -> Verdict | None:
    return Verdict("unsolvable", f"{project} {version}") if len(project + version) % 2 else None


def depths_by_duckdb(edges: Edges, name: str) -> dict[str, int]:
    """Return the depth of each project whose newest release leads to a project, by a recursive query."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE edges (required VARCHAR, project VARCHAR)")
        for number in edges.beginning_with(""):
            for project, lists in zip(*edges.requiring(number), strict=True):
                if lists:
                    connection.execute("INSERT INTO edges VALUES (?, ?)", [edges.name(number), edges.name(project)])
        rows = connection.execute(
            """
            WITH RECURSIVE found(project, depth) USING KEY (project) AS (
                SELECT ?, 0
                UNION
                SELECT edges.project, found.depth + 1 FROM found JOIN edges ON edges.required = found.project
                WHERE edges.project NOT IN (SELECT project FROM recurring.found)
            )
            SELECT project, depth FROM found WHERE project != ?
            """,
            [name, name],
        )
        return dict(rows.fetchall())


@settings(max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batches=batches)
def test_answers_from_edges_equal_answers_from_records(batches: Any) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_building, "EDGES_OF_ONE_CHANGED", 0)  # an update always writes the changes alone
        patch.setattr(depgraph_records, "FEW_FILES", 2)
        small = small_catalog(Path(folder))
        storage = open_storage(Path(folder, "storage").as_uri())
        for number, _ in enumerate(made_of(small, batches)):
            full_dump(small.catalog, storage, 1) if number == 0 else list(write_missing_ranges(small.catalog, storage))
            version = build_version("depgraph", storage=storage, catalog=small.catalog).version
            with open_latest(DepgraphReader, storage) as depgraph:
                edges = depgraph.edges()
                assert edges is not None
                assert edges.changes is None or number > 0
                found = list(answers(depgraph))
            with without_edges(), open_latest(DepgraphReader, storage) as depgraph:
                assert depgraph.edges() is None
                for (query, ours), (_, expected) in zip(found, answers(depgraph), strict=True):
                    assert ours == expected, query
            for name in ("demo-pkg", "requests"):
                with open_latest(DepgraphReader, storage) as depgraph:
                    rows = depgraph.transitive_dependents(name, latest=True)
                    assert {row["normalized"]: row["depth"] for row in rows} == depths_by_duckdb(edges, name)
            assert verify("depgraph", version, storage=storage, deep=True).problems == ()
        small.catalog.close()


def test_update_of_a_version_without_edges_writes_them_all(publisher: Publisher) -> None:
    with without_edges():
        publisher.publish()
    assert not verify("depgraph", 4, storage=publisher.storage, deep=True).ok  # it has the edges of version 2
    with open_latest(DepgraphReader, publisher.storage) as depgraph:
        assert (depgraph.version, depgraph.edges()) == (4, None)
        before = list(answers(depgraph))
    build_version("depgraph", storage=publisher.storage, catalog=publisher.small.catalog, force=True)
    assert verify("depgraph", 5, storage=publisher.storage, deep=True).ok
    with open_latest(DepgraphReader, publisher.storage) as depgraph:
        assert depgraph.version == 5
        edges = depgraph.edges()
        assert edges is not None
        assert edges.changes is None
        assert list(answers(depgraph)) == before


def test_corrupt_edges_lead_to_the_version_before(publisher: Publisher) -> None:
    publisher.publish()
    published = read_published(publisher.storage, "depgraph", 4)
    [file] = [file for file in published.manifest.files if file.name.endswith(".edges")]
    path = publisher.storage.local_path(published.path_of(file))
    assert path is not None
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.unlink()
    path.write_bytes(content)
    assert not verify("depgraph", 4, storage=publisher.storage).ok
    with open_latest(DepgraphReader, publisher.storage, check_hashes=False) as depgraph:
        assert depgraph.version == 4
        assert [row["normalized"] for row in depgraph.latest_dependents("base")] == ["demo", "demo-b"]
        assert depgraph.version == 2
        assert len(depgraph.skipped) == 1
    damaged: list[str] = []
    with (
        open_version(DATASETS["depgraph"], 4, publisher.storage, damaged=damaged.append) as reader,
        pytest.raises(LeveldbDamagedError),
    ):
        reader.latest_dependents("base")  # type: ignore[attr-defined]
    assert len(damaged) == 1
