"""Helpers that build versions of a small catalog and verify them."""

from pypi_assets.leveldbs.versions.publish import BuildResult, build_version
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.storage.store import Storage
from pypi_assets_tests.small_catalog import SmallCatalog


def build(small: SmallCatalog, storage: Storage, dataset: str = "modules", **options: object) -> BuildResult:
    return build_version(dataset, storage=storage, catalog=small.catalog, **options)  # type: ignore[arg-type]


def assert_verified(storage: Storage, result: BuildResult, *, deep: bool = True) -> None:
    checked = verify(result.dataset, result.version, storage=storage, deep=deep)
    assert checked.problems == ()
    assert checked.records == sum(result.counts.values())
