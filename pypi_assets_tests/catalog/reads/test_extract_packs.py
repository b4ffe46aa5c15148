"""Packs are entered once, and forgotten only while nothing points into them."""

from pathlib import Path

from sqlalchemy import update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.read_outcomes import StoredPack, enter_pack, forget_pack, have_extracts, used_packs
from pypi_assets.catalog.tables import distribution_data
from pypi_assets_tests.small_catalog import small_catalog


def test_a_pack_is_entered_once(catalog: Catalog) -> None:
    pack = StoredPack("a" * 64, 100, {7: (50, 10)})
    with catalog.write() as connection:
        [(pack_id, *place)] = enter_pack(connection, pack).values()
        assert place == [50, 10]
        assert enter_pack(connection, pack) == {7: (pack_id, 50, 10)}
        assert list(used_packs(connection, "", 10)) == []


def test_a_pack_in_use_is_not_forgotten(tmp_path: Path, database_url: str) -> None:
    small = small_catalog(tmp_path, database_url)
    small.add(1, "demo", "1", "demo-1.zip")
    name = "a" * 64
    with small.catalog.write() as connection:
        [(pack_id, *_)] = enter_pack(connection, StoredPack(name, 100, {1: (50, 10)})).values()
        connection.execute(update(distribution_data).values(pack_id=pack_id, pack_offset=50, pack_length=10))
        assert list(used_packs(connection, "", 10)) == [name]
        assert have_extracts(connection, [("demo", "demo-1.zip")])
        assert not have_extracts(connection, [("demo", "demo-1.zip"), ("demo", "demo-2.zip")])
        assert not forget_pack(connection, name)
        connection.execute(update(distribution_data).values(pack_id=None))
        assert forget_pack(connection, name)
        assert forget_pack(connection, name)
    small.catalog.close()
