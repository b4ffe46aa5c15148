"""A catalog with a few files, and an empty folder for its dumps."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog
from pypi_assets_tests.upkeep.simulated_upkeep import upkeep as upkeep


def fill(small: SmallCatalog) -> None:
    small.add(1, "Demo.Pkg", "1.0", "demo_pkg-1.0.tar.gz", modules=("demo", "demo.a"), requires_dist=("other>=1",))
    small.add(2, "Demo.Pkg", "1.0", "demo_pkg-1.0-py3-none-any.whl")
    small.add(3, "other", "2", "other-2.tar.gz", modules=None, requires_dist=None, requires_python=">=3.8")
    for number in range(12):
        small.add(10 + number, f"many{number}", "1", f"many{number}-1.tar.gz")
    small.complete(100)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path)
    fill(small)
    yield small
    small.catalog.close()
