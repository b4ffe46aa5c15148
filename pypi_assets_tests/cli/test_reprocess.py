"""`pypi-assets reprocess`: records made again from stored extracts, without a request to the index."""

import re

import pytest

from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.served_index import ServedIndex


def test_records_are_made_again_without_the_index(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("demo", "1.0")
    crawled = commands.done("crawl", "full").stdout
    assert re.search(r"distributions: 1 read \(\d{3,} bytes fetched, \d+ requests, \d+\.\d s\)", crawled)
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "https://index.example.org/simple/")  # for which a contact is missing
    assert commands.json("reprocess")["looked_at"] == 0
    again = commands.done("reprocess", "--older-than-version", EXTRACTOR_VERSION + 1, "--project", "Demo")
    assert re.match(r"1 records made again in \d+\.\d s, 0 of them changed", again.stdout)
    assert "knows no project none" in commands.refused("reprocess", "--project", "none")
