"""An index without any event, as on a company's first day: it is published at serial 0 and followed from there."""

from pathlib import Path

import pytest

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_registry import exact_serial
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.service.published import published_index


def test_empty_index_is_published_and_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clear_settings(monkeypatch)
    with published_index(tmp_path) as published:
        assert published.publish_first() == 0
        with published.client() as client:
            nothing = client.get("v1/modules/demo")
            assert (nothing.json()["serial"], nothing.json()["results"]) == (0, [])
            assert client.get("simple/demo/").status_code == 404
        filename = published.add("wheel", "demo", "1.0", files={"demo/__init__.py": ""})
        assert published.publish() == published.index.serial > 0
        with published.client() as client:
            [provider] = client.get("v1/modules/demo").json()["results"]
            assert provider["project"] == "demo"
            assert filename in client.get("simple/demo/").text


def test_catalog_without_a_full_crawl_is_not_an_empty_index(tmp_path: Path) -> None:
    with published_index(tmp_path) as published, published.catalog.read() as connection, pytest.raises(CatalogError):
        exact_serial(connection)


def test_range_of_an_empty_index_has_a_key() -> None:
    assert SerialRange.parse("0-0") == SerialRange(0, 0)
    assert 0 not in SerialRange(0, 0)
