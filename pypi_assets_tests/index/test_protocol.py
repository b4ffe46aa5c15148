"""The crawl uses only those attributes of an index that the protocol names."""

import ast
from pathlib import Path

import pytest

import pypi_assets.crawl
from pypi_assets.index.client import IndexClient
from pypi_assets.index.protocol import Observation, PackageIndex

CRAWL = sorted(Path(pypi_assets.crawl.__file__).parent.glob("*.py"))
NAMED = {name for name in dir(PackageIndex) if not name.startswith("_")}


def used_of_an_index(path: Path) -> set[str]:
    """Return the attributes that a module reads from names like `index` or `crawler.index`."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).rpartition(".")[2] == "index"
    }


def test_crawl_uses_only_the_protocol(subtests: pytest.Subtests) -> None:
    for path in CRAWL:
        with subtests.test(path=path):
            source = path.read_text(encoding="utf-8")
            assert "pypi_assets.index.client" not in source
            assert used_of_an_index(path) <= NAMED


def test_client_implements_the_protocol() -> None:
    assert {name for name in NAMED if not hasattr(IndexClient, name)} <= {"index_url", "changelog_url"}
    with IndexClient("http://127.0.0.1:9/simple/", changelog_url="http://127.0.0.1:9/pypi") as client:
        index: PackageIndex = client  # mypy checks the signatures
        assert (index.index_url, index.changelog_url) == ("http://127.0.0.1:9/simple/", "http://127.0.0.1:9/pypi")
        assert not index.is_observed
        assert index.observe(lambda *_: pytest.fail("an index with serials needs no looking at")) == Observation()
