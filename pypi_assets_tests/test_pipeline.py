"""The whole pipeline under random changes: lookups match the index, and incremental results equal rebuilt ones."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.lookup.latest import open_latest
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.crawl.drawn_changes import PROJECTS, changes, do
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.s3_server import BUCKET, s3_server
from pypi_assets_tests.served_index import ServedIndex, live, served_index


def answers(storage: Storage) -> tuple[set[tuple[str, bool]], dict[str, set[str]]]:
    """Return the files of all projects with their yanked flags, and the providers of each module, in the newest
    versions.
    """
    with open_latest("depgraph", storage) as depgraph, open_latest("modules", storage) as modules:
        files = {
            (str(row["filename"]), bool(row["yanked"])) for name in PROJECTS for row in depgraph.project(name).results
        }
        provided = {
            module: {str(entry["project"]) for entry in modules.module(module).results}
            for module in ("alpha_module", "beta_pkg_module")
        }
    return files, provided


def publish(catalog: Catalog, storage: Storage) -> None:
    for dataset in ("modules", "depgraph"):
        result = build_version(dataset, storage=storage, catalog=catalog)
        assert verify(dataset, result.version, storage=storage, deep=True).problems == ()


def assert_exact(index: ServedIndex, catalog: Catalog, storage: Storage) -> None:
    files, provided = answers(storage)
    assert files == index.shown() == live(catalog)
    shown = {filename.split("-")[0] for filename, _ in index.shown()}
    assert provided == {
        "alpha_module": {"Alpha"} & {name.title() for name in shown},
        "beta_pkg_module": {"beta.pkg"} if "beta_pkg" in shown else set(),
    }


@settings(max_examples=examples(6), suppress_health_check=[HealthCheck.too_slow])
@given(batches=st.lists(st.lists(changes, min_size=1, max_size=8), min_size=1, max_size=4), data=st.data())
def test_lookups_match_the_index(batches, data):
    with tempfile.TemporaryDirectory() as folder, served_index(Path(folder)) as index:
        for name in PROJECTS:
            index.wheel(name, "1.0")
        catalog = open_catalog(sqlite_database(Path(folder, "catalog.sqlite")))
        storage = open_storage(Path(folder, "storage").as_uri())
        crawler = index.crawler(catalog)
        crawl_full(crawler)
        full_dump(catalog, storage, 1)
        publish(catalog, storage)
        assert_exact(index, catalog, storage)
        for batch in batches:
            for change in batch:
                do(index, *change)
            crawl_incremental(crawler)
            list(write_missing_ranges(catalog, storage))
            if data.draw(st.booleans(), label="a full dump in between"):
                full_dump(catalog, storage, 16)
            if data.draw(st.booleans(), label="a version after each range"):
                publish(catalog, storage)
                assert_exact(index, catalog, storage)
        publish(catalog, storage)
        assert_exact(index, catalog, storage)
        catalog.close()


@pytest.fixture
def s3_url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with s3_server(monkeypatch):
        yield f"s3://{BUCKET}/root"


@pytest.mark.nightly
def test_pipeline_on_postgresql_and_s3(tmp_path: Path, postgres_database_url: str, s3_url: str):
    with served_index(tmp_path / "served") as index:
        for name in PROJECTS:
            index.wheel(name, "1.0", requires_dist=["requests>=2"])
            index.sdist(name, "1.0")
        catalog, storage = open_catalog(postgres_database_url), open_storage(s3_url)
        crawler = index.crawler(catalog)
        crawl_full(crawler)
        manifest = full_dump(catalog, storage)
        assert len(manifest.files) == 256
        assert sum(1 for _ in iter_dump(storage, manifest.directory)) == 4
        publish(catalog, storage)
        assert_exact(index, catalog, storage)
        index.wheel("Alpha", "2.0")
        index.history.remove_project("beta.pkg")
        crawl_incremental(crawler)
        assert len(list(write_missing_ranges(catalog, storage))) == 1
        publish(catalog, storage)
        assert_exact(index, catalog, storage)
        catalog.close()
