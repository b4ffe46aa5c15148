"""Rule 7 for the follower: kill -9 at any moment loses nothing, and no file is read twice."""

from pathlib import Path

import pytest

from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.tables import leases
from pypi_assets.journal.publishing import missing_ranges
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.following.followers import (
    assert_exact,
    begin,
    following,
    is_answered,
    journal_files,
    start_process,
    steps_of,
)
from pypi_assets_tests.served_index import served_index
from pypi_assets_tests.waiting import until

STEPS = ("allocated", "crawl", "journal", "dump", "leveldb")


@pytest.mark.nightly
def test_follower_killed_after_each_step_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    clear_settings(monkeypatch)
    catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    with served_index(tmp_path / "served") as index:
        index.wheel("first", "1.0")
        begin(index, catalog)
        for number, step in enumerate(STEPS):
            for part in range(3):
                index.wheel(f"project{number}-{part}", "1.0")
            with start_process(index, catalog, tmp_path) as process:
                assert next(line for line in steps_of(process) if line["step"] == step)
                process.kill()
            with catalog.write() as connection:
                connection.execute(
                    leases.delete()
                )  # the leases of the killed process, which would expire by themselves
        index.history.remove_project("first")
        with following(index.crawler(catalog), tmp_path):
            until(
                lambda: is_answered(index, *(f"project{number}_{part}_module" for number in range(5) for part in "012"))
            )
            until(lambda: missing_ranges(catalog) == [])
        assert_exact(index, catalog)
        assert set(journal_files(index).values()) == {1}
        for name in DATASETS:
            newest = published_versions(index.storage, name)[-1]
            assert verify(name, newest, storage=index.storage, deep=True).problems == ()
    catalog.close()


@pytest.mark.nightly
def test_sigterm_ends_the_follower_with_success_and_keeps_its_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    clear_settings(monkeypatch)
    catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    with served_index(tmp_path / "served") as index:
        index.wheel("first", "1.0")
        begin(index, catalog)
        with start_process(index, catalog, tmp_path) as process:
            lines = steps_of(process)
            assert next(lines)["step"] == "started"
            process.terminate()
            assert [line for line in lines if line["step"] == "stopped"][-1]["clean"] is True
            assert process.wait(60) == 0
    catalog.close()
