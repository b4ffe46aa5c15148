"""`pypi-assets admin reprocess`: records made again from stored extracts, without a request to the index."""

import re

import pytest
from sqlalchemy import update

from pypi_assets.catalog.tables import distribution_data
from pypi_assets.cli.opening import opened_catalog
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets.settings import load_settings
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_records_are_made_again_without_the_index(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("demo", "1.0")
    reads = commands.json("crawl", "full")["reads"]
    assert (reads["data"], reads["errors"], reads["bytes_fetched"] > 100) == (1, 0, True)
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "https://index.example.org/simple/")  # for which a contact is missing
    assert commands.json("admin", "reprocess")["looked_at"] == 0
    again = commands.done("admin", "reprocess", "--older-than-version", EXTRACTOR_VERSION + 1, "--project", "Demo")
    assert re.match(r"1\D+\d+\.\d\D+0\D", again.stdout)
    assert unnamed(commands.refused("admin", "reprocess", "--project", "none"), "none") == []


def test_files_that_no_extract_supplies_are_named_and_read_again(commands: Commands, index: ServedIndex) -> None:
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
