"""Dumps and builds are killed with SIGKILL at many moments. Repeated, they end in the same state."""

from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.depgraph import edge_building
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.leveldbs.versions.shared_reading import SharedReading
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.latest import open_latest
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.demo_catalog import add_range, demo_catalog
from pypi_assets_tests.kills import forget_leases, run_and_kill
from pypi_assets_tests.small_catalog import SmallCatalog


def dump_and_build(catalog: Catalog, storage: Storage) -> None:
    full_dump(catalog, storage, 1)
    build(catalog, storage)


def build(catalog: Catalog, storage: Storage) -> None:
    build_version("modules", storage=storage, catalog=catalog)


# Two kill points for each put: the shard, its manifest, two files of the LevelDB (its table is linked), the version's
# manifest and its input list.
@pytest.mark.nightly
@pytest.mark.parametrize("step", [1, 2, 3, 4, 8, 10, 11, 12])
def test_dump_and_build_killed_at_any_step_end_in_the_same_state(
    small: SmallCatalog, tmp_path: Path, step: int
) -> None:
    for number in range(8):
        small.add(number + 1, f"project{number}", "1", f"project{number}-1.tar.gz")
    small.complete(100)
    catalog, storage = small.catalog, open_storage((tmp_path / "storage").as_uri())
    reached = run_and_kill(dump_and_build, catalog, storage, step)
    assert reached.startswith("after" if step % 2 == 0 else "before")
    assert (published_versions(storage, "modules") == []) == (reached != "after modules/input_lists/00001")
    forget_leases(catalog)
    full_dump(catalog, storage, 1)
    newest = build_version("modules", storage=storage, catalog=catalog)
    assert newest.published
    assert len(list(iter_dump(storage, cover(catalog).directories[0]))) == 8
    assert verify("modules", newest.version, storage=storage, deep=True).problems == ()
    with open_latest("modules", storage) as modules:
        assert len(modules.module("demo").results) == 8
        assert (modules.version, modules.skipped) == (newest.version, ())
    assert list((storage.root or Path()).glob(".private/*")) == []
    catalog.close()


# Again two kill points for each put: two files of the LevelDB, the manifest and the input list.
@pytest.mark.nightly
@pytest.mark.parametrize("step", range(1, 9))
def test_update_killed_at_any_step_ends_in_the_same_state(tmp_path: Path, step: int) -> None:
    small = demo_catalog(tmp_path)
    catalog, storage = small.catalog, open_storage((tmp_path / "storage").as_uri())
    full_dump(catalog, storage, 1)
    build_version("modules", storage=storage, catalog=catalog)
    add_range(small, storage, 100)
    reached = run_and_kill(build, catalog, storage, step)
    assert reached.startswith("after" if step % 2 == 0 else "before")
    assert (published_versions(storage, "modules") == [1]) == (reached != "after modules/input_lists/00002")
    forget_leases(catalog)
    add_range(small, storage, 150)
    newest = build_version("modules", storage=storage, catalog=catalog)
    assert newest.base_version == published_versions(storage, "modules")[-2]
    for version in published_versions(storage, "modules"):
        assert verify("modules", version, storage=storage, deep=True).problems == ()
    catalog.close()


def build_depgraph(catalog: Catalog, storage: Storage) -> None:
    build_version("depgraph", storage=storage, catalog=catalog)


# Three files are put: two of the LevelDB and its edges, which are linked. Then come the manifest and the input list.
@pytest.mark.nightly
@pytest.mark.parametrize("step", range(1, 11))
def test_update_of_edges_killed_at_any_step_leaves_a_whole_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    small = demo_catalog(tmp_path)
    catalog, storage = small.catalog, open_storage((tmp_path / "storage").as_uri())
    full_dump(catalog, storage, 1)
    build_depgraph(catalog, storage)
    add_range(small, storage, 100)
    reached = run_and_kill(build_depgraph, catalog, storage, step, (Storage, "put"), (Storage, "put_linked"))
    assert reached.startswith("after" if step % 2 == 0 else "before")
    versions = published_versions(storage, "depgraph")
    assert versions == ([1, 2] if reached == "after depgraph/input_lists/00002" else [1])
    for version in versions:
        assert verify("depgraph", version, storage=storage, deep=True).problems == ()
    forget_leases(catalog)
    add_range(small, storage, 150)
    monkeypatch.setattr(edge_building, "EDGES_OF_ONE_CHANGED", 0)  # the changes alone are written
    newest = build_version("depgraph", storage=storage, catalog=catalog)
    assert newest.published
    for version in published_versions(storage, "depgraph"):
        assert verify("depgraph", version, storage=storage, deep=True).problems == ()
    with open_latest(DepgraphReader, storage) as depgraph:
        edges = depgraph.edges()
        assert edges is not None
        assert edges.changes is not None
    catalog.close()


def build_together(catalog: Catalog, storage: Storage) -> None:
    with SharedReading(DATASETS) as shared:
        version = None
        for name in shared.names:
            result = build_version(name, storage=storage, catalog=catalog, version=version, shared=shared)
            version = result.version if result.published else version


# The first datasets are published, while the others have runs that no build has loaded.
@pytest.mark.nightly
@pytest.mark.parametrize("step", [1, 4, 8, 9, 13, 20, 32])
@pytest.mark.parametrize("is_update", [False, True])
def test_shared_builds_killed_at_any_step_end_in_the_same_state(tmp_path: Path, step: int, is_update: bool) -> None:
    small = demo_catalog(tmp_path)
    catalog, storage = small.catalog, open_storage((tmp_path / "storage").as_uri())
    full_dump(catalog, storage, 1)
    if is_update:
        build_together(catalog, storage)
    add_range(small, storage, 100)
    add_range(small, storage, 150)
    assert run_and_kill(build_together, catalog, storage, step).startswith("after" if step % 2 == 0 else "before")
    forget_leases(catalog)
    build_together(catalog, storage)
    for name in DATASETS:
        versions = published_versions(storage, name)
        assert read_published(storage, name, versions[-1]).manifest.serial == 200
        for version in versions:
            assert verify(name, version, storage=storage, deep=True).problems == ()
    assert list((storage.root or Path()).glob(".private/*")) == []
    catalog.close()
