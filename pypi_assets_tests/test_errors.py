"""Errors that are expected are known as such, so that the command line prints their text."""

import importlib

import pytest

from pypi_assets import settings
from pypi_assets.errors import ExpectedError, SettingsError

EXPECTED = [
    "catalog.database.CatalogError",
    "catalog.ledger.serial_range.RangeError",
    "distributions.extract.ExtractError",
    "distributions.reader_pool.ReaderStartError",
    "dumps.dump_format.DumpDamagedError",
    "extracts.packs.PackError",
    "index.errors.PackageIndexError",
    "leveldbs.format.errors.LeveldbError",
    "parquet.export_manifest.ParquetError",
    "storage.store.StorageError",
]


def test_the_errors_of_each_part_are_expected(subtests: pytest.Subtests) -> None:
    for path in EXPECTED:
        with subtests.test(path=path):
            module, _, name = path.rpartition(".")
            assert issubclass(getattr(importlib.import_module(f"pypi_assets.{module}"), name), ExpectedError)


def test_wrong_settings_are_expected() -> None:
    assert issubclass(SettingsError, ExpectedError)
    assert SettingsError is settings.SettingsError
