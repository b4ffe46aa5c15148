"""A publisher of successive versions of a growing catalog."""

from pathlib import Path

from pypi_assets.dumps.dump_writer import write_range
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


class Publisher:
    """Publishes versions of `modules` and `depgraph`. The Nth version has N modules `demo.1`, `demo.2` and so on."""

    def __init__(self, folder: Path) -> None:
        self.small: SmallCatalog = small_catalog(folder)
        self.storage: Storage = open_storage((folder / "storage").as_uri())
        self.serial = 100
        self.small.add(
            1, "demo", "1.0", "demo-1.0.tar.gz", modules=("demo",), requires_dist=("base", "b.c; extra=='x'")
        )
        self.small.add(2, "demo-b", "1.0", "demo_b-1.0.tar.gz", modules=("demo.b",), requires_dist=("base>1",))
        self.small.complete(self.serial)
        full_dump(self.small.catalog, self.storage, 1)
        self._build("modules", "depgraph")

    def publish(self) -> int:
        """Publish the next version. Return the number of its releases of `other`, each of which provides `demo`."""
        return self.build_next("modules", "depgraph")

    def build_next(self, *datasets: str) -> int:
        """Publish the next version of only these datasets."""
        releases = self.serial // 10 - 9
        self.small.add(self.serial + 1, "other", f"{releases}", f"other-{releases}.tar.gz", modules=("demo",))
        self.serial += 10
        write_range(self.small.catalog, self.storage, self.small.complete(self.serial))
        self._build(*datasets)
        return releases

    def _build(self, *datasets: str) -> None:
        for dataset in datasets:
            build_version(dataset, storage=self.storage, catalog=self.small.catalog)

    def private_copies(self) -> int:
        return len([path for path in (self.storage.root / ".private").iterdir() if path.is_dir()])  # type: ignore[operator]
