"""Numbers of LevelDB versions, each allocated once."""

from pathlib import Path

import pytest

from pypi_assets.catalog.publications.allocated_names import (
    UnknownVersionError,
    allocate_export,
    allocate_version,
    require_version,
)
from pypi_assets_tests.small_catalog import small_catalog


def test_versions_are_known_by_the_name_under_which_they_were_allocated(tmp_path: Path) -> None:
    catalog = small_catalog(tmp_path).catalog
    assert require_version(catalog, f"{allocate_version(catalog, 5):05d}").serial == 5
    for name in ("1", "00002", "nonsense", ""):
        with pytest.raises(UnknownVersionError):
            require_version(catalog, name)
    catalog.close()


def test_each_attempt_has_a_name_of_its_own(tmp_path: Path, database_url: str) -> None:
    catalog = small_catalog(tmp_path, database_url).catalog
    assert [allocate_export(catalog, serial) for serial in (1350, 1350, 1400, 1350)] == [
        "0-1350",
        "0-1350.2",
        "0-1400",
        "0-1350.3",
    ]
    catalog.close()
