"""`pypi-assets admin ...`: drift, tables, old rows and packs, rebuilt records, and metrics."""

import re
import subprocess
import urllib.request
from pathlib import Path

import pytest
from sqlalchemy import update

from pypi_assets.catalog import pruning
from pypi_assets.catalog.database import open_existing_catalog
from pypi_assets.catalog.tables import distribution_data, visits
from pypi_assets.cli.contexts import opened_catalog
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets.settings import load_settings
from pypi_assets_tests.cli.commands import PROCESS, Commands
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.prometheus import samples
from pypi_assets_tests.served_index import ServedIndex
from pypi_assets_tests.waiting import until


def test_audit_reports_drift(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    assert commands.json("admin", "audit", "--share", 0)["visited"] == 0
    index.history.archive("demo")
    found = commands.done("admin", "audit", "--share", 100).stdout
    assert unnamed(found, index.serial, "1", "demo") == []
    again = commands.json("admin", "audit", "--share", 100)
    assert (again["drift"], again["share_percent"], again["visits_given_up"]) == ({}, 100, 0)


def test_migrate_creates_tables_and_then_reports_them_current(commands: Commands) -> None:
    commands.done("admin", "migrate")
    migrated = commands.json("admin", "migrate")
    assert migrated["before"] == migrated["after"]
    assert unnamed(commands.done("admin", "migrate").output, migrated["after"]) == []


def test_deleted_visits_are_reported(
    commands: Commands, two_visits: TwoVisits, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unnamed(commands.done("admin", "prune", "--dry-run").stdout, "0") == []
    assert commands.json("admin", "prune")["visits"] == 0
    catalog = open_existing_catalog(load_settings().resolved_database_url)
    with catalog.write() as connection:
        connection.execute(update(visits).values(started_at=0.0))
    catalog.close()
    assert commands.json("admin", "prune")["visits"] == 0  # the first visits of a project are kept
    monkeypatch.setattr(pruning, "FIRST_VISITS_KEPT", 0)
    assert unnamed(commands.done("admin", "prune").stdout, "1") == []
    for shown in (commands.done("visits", "demo"), commands.done("history", "demo")):
        assert unnamed(shown.stderr, 1, "PYPI_ASSETS_VISITS_KEPT_DAYS") == []
    assert [one["visit"] for one in commands.json("visits", "demo")] == [2]
    assert unnamed(commands.refused("visits", "demo", "--compare", 1, 2), "1", "demo", "pypi-assets visits demo") == []


def test_pack_in_use_is_not_deleted(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    assert unnamed(commands.done("admin", "extracts", "clean").stdout, "0", "1") == []
    assert commands.json("admin", "extracts", "clean", "--dry-run") == {"packs": 1, "deleted": [], "size": 0}


def test_records_are_rebuilt_without_the_index(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("demo", "1.0")
    reads = commands.json("crawl", "full")["reads"]
    assert (reads["data"], reads["errors"], reads["bytes_fetched"] > 100) == (1, 0, True)
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "https://index.example.org/simple/")  # which requires a contact
    assert commands.json("admin", "reprocess")["looked_at"] == 0
    again = commands.done("admin", "reprocess", "--older-than-version", EXTRACTOR_VERSION + 1, "--project", "Demo")
    assert re.match(r"1\D+\d+\.\d\D+0\D", again.stdout)
    assert unnamed(commands.refused("admin", "reprocess", "--project", "none"), "none") == []


def test_files_without_extract_are_named_and_read_again(commands: Commands, index: ServedIndex) -> None:
    filename = index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    with opened_catalog(load_settings()) as catalog, catalog.write() as connection:
        connection.execute(update(distribution_data).values(pack_id=None, extractor_version=EXTRACTOR_VERSION - 1))
    done = commands.done("admin", "reprocess")
    assert unnamed(done.stderr, "1", filename, "pypi-assets admin reprocess --read-again") == []
    result = commands.json("admin", "reprocess", "--read-again")
    assert (result["not_supplied"], result["not_supplied_files"], result["queued"]) == (1, [filename], 1)
    assert commands.json("failures", "retry")["reads"]["data"] == 1
    result = commands.json("admin", "reprocess", "--read-again")
    assert (result["not_supplied"], result["not_supplied_files"], result["queued"]) == (0, [], 0)


@pytest.mark.nightly
def test_metrics_are_written_to_a_file_and_served(commands: Commands, index: ServedIndex, tmp_path: Path) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    path = tmp_path / "pypi-assets.prom"
    commands.done("admin", "metrics", "--file", path)
    assert samples(path.read_text())["serial", "catalog"] == index.serial
    command = [*PROCESS, "admin", "metrics", "--every", "1"]
    command += ["--file", str(path), "--listen", "127.0.0.1:0"]
    path.unlink()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            address = re.fullmatch(r"serving metrics at (http://\S+)\n", process.stderr.readline())
            assert address
            with urllib.request.urlopen(address[1], timeout=60) as response:
                served = response.read().decode()
            assert samples(served)["serial", "catalog"] == index.serial
            index.wheel("demo", "2.0")
            until(lambda: samples(path.read_text() if path.exists() else "").get(("serial", "index")) == index.serial)
        finally:
            process.terminate()


@pytest.mark.parametrize("address", ["9464", ":9464", "localhost:", "localhost:none", "localhost:70000"])
def test_invalid_address_is_rejected(commands: Commands, address: str) -> None:
    assert unnamed(commands.refused("admin", "metrics", "--listen", address, exit_code=2), address, "HOST:PORT") == []
