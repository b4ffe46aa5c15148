"""Owners at an earlier serial are those of then; `questions/test_snapshots.py` compares with what was published."""

from pathlib import Path

from pypi_assets.lookup.owners import owners
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets_tests.small_catalog import small_catalog


def test_owners_are_those_of_the_serial(tmp_path: Path) -> None:
    small = small_catalog(tmp_path)
    small.add(1, "first", "1.0", "first-1.0.zip", modules=("demo", "demo.a"))
    small.add(2, "user", "1.0", "user-1.0.zip", modules=("user",), requires_dist=("first",))
    small.add(3, "second", "1.0", "second-1.0.zip", modules=("demo",))
    small.complete(5)
    small.remove(6, "first-1.0.zip")
    small.remove(7, "user-1.0.zip")
    small.add(8, "demo-stubs", "1", "demo_stubs-1.zip", modules=(), stubs=("demo", "demo.a"), import_names=())
    small.complete(10)

    def found(serial: int, name: str) -> tuple[str | None, list[tuple[str, int]]]:
        [one] = owners(CatalogSnapshot(small.catalog, serial), [name])
        candidates = one["candidates"]
        return one["module"], [(each["normalized"], each["reasons"]["dependents"]) for each in candidates]

    assert found(0, "demo") == (None, [])
    assert found(1, "demo.a.b") == ("demo.a", [("first", 0)])
    assert found(3, "demo") == ("demo", [("first", 1), ("second", 0)])
    assert found(6, "demo.a.b") == ("demo", [("second", 0)])
    assert found(10, "demo.a.b") == ("demo", [("second", 0), ("demo-stubs", 0)])
    assert found(10, "user") == (None, [])
    several = owners(CatalogSnapshot(small.catalog, 3), ["demo", "demo.a", "user", "demo"])
    assert several == [
        one for name in ("demo", "demo.a", "user", "demo") for one in owners(CatalogSnapshot(small.catalog, 3), [name])
    ]
    small.catalog.close()
