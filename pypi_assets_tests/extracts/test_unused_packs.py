"""Packs that nothing in the catalog points to are deleted, and no other ones."""

import time
from datetime import timedelta

import pytest
from sqlalchemy import select

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.reads.read_outcomes import used_packs
from pypi_assets.catalog.tables import extract_packs
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.retry_failures import retry
from pypi_assets.extracts.packs import (
    PackedExtract,
    make_pack,
    pack_path,
)
from pypi_assets.extracts.unused_packs import clean_packs
from pypi_assets.storage.store import Storage
from pypi_assets_tests.extracts.stored_packs import places, put, stored
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import ServedIndex


def later(catalog: Catalog, by: timedelta = timedelta(hours=25)) -> Catalog:
    return Catalog(catalog.engine, lambda: time.time() + by.total_seconds())


def test_packs_without_use_are_deleted_after_a_day(index: ServedIndex, catalog: Catalog):
    index.raw("one-1.0.tar.gz", b"no archive")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    [first] = stored(index.storage)
    left_by_a_kill = put(index.storage, [PackedExtract("one", "one-1.0.tar.gz", None, b"one")])
    index.storage.put("extracts/README", b"somebody else's")
    retry(crawler)
    [used] = {pack for pack, _, _ in places(catalog).values()}
    everything = stored(index.storage)
    assert clean_packs(catalog, index.storage).deleted == ()
    waste = {first, pack_path(left_by_a_kill)}

    listed = clean_packs(later(catalog), index.storage, dry_run=True)
    assert (listed.packs, {pack_path(name) for name in listed.deleted}) == (3, waste)
    assert stored(index.storage) == everything
    assert clean_packs(later(catalog), index.storage) == listed
    assert stored(index.storage) == everything - waste
    with catalog.read() as connection:
        assert connection.scalars(select(extract_packs.c.name)).all() == [used]
        assert used_packs(connection, "", 9) == [used]
    assert clean_packs(later(catalog), index.storage).deleted == ()


def test_a_pack_that_comes_into_use_while_others_are_deleted_is_kept(
    index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
):
    crawler = index.crawler(catalog)
    index.wheel("one", "1.0")
    crawl_full(crawler)
    [first] = {pack for pack, _, _ in places(catalog).values()}
    index.wheel("one", "2.0")
    crawl_incremental(crawler)
    everything = stored(index.storage)
    assert len(everything) == 2
    # as it was a moment ago
    monkeypatch.setattr(
        "pypi_assets.extracts.unused_packs.used_packs", lambda _connection, after, _limit: [] if after else [first]
    )
    assert clean_packs(later(catalog), index.storage).deleted == ()
    assert stored(index.storage) == everything


def test_packs_that_may_be_needed_are_kept(index: ServedIndex, catalog: Catalog):
    """An extract of what the catalog does not know, or has no extract of, and a pack that is damaged."""
    known, unread = index.wheel("one", "1.0"), index.raw("two-1.0.win32.exe", b"MZ")
    crawl_full(index.crawler(catalog))
    of_known = PackedExtract("one", known, None, b"one")
    put(index.storage)
    put(index.storage, [of_known, PackedExtract("two", unread, None, b"two")])
    put(index.storage, [of_known, PackedExtract("two", known, None, b"of another project")])
    damaged = make_pack([of_known])
    index.storage.put(pack_path(damaged.name), damaged.content[:-1])
    waste = put(index.storage, [of_known])
    everything = stored(index.storage)
    assert clean_packs(later(catalog), index.storage).deleted == (waste,)
    assert stored(index.storage) == everything - {pack_path(waste)}


def test_another_catalogs_packs_are_not_waste(
    index: ServedIndex, catalog: Catalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
):
    assert clean_packs(later(catalog), storage).packs == 0
    monkeypatch.setattr("pypi_assets.extracts.unused_packs._NAMES_AT_A_TIME", 1)
    names = [index.wheel(name, "1.0") for name in ("one", "two")]
    waste = put(index.storage, [PackedExtract("one", names[0], None, b"one")])
    with pytest.raises(CatalogError, match=naming(1)):
        clean_packs(later(catalog), index.storage)
    crawl_full(index.crawler(catalog, in_flight=1))  # each file has a pack of its own
    in_use = sorted({pack for pack, _, _ in places(catalog).values()})
    assert len(in_use) == 2
    for dry_run in (False, True):
        with pytest.raises(CatalogError, match=naming(2, in_use[0])):
            clean_packs(later(catalog), storage, dry_run=dry_run)
    content = index.storage.get(pack_path(in_use[1]))
    index.storage.delete(pack_path(in_use[1]))
    with pytest.raises(CatalogError, match=naming(1, 2, in_use[1])):
        clean_packs(later(catalog), index.storage)
    assert stored(index.storage) == {pack_path(in_use[0]), pack_path(waste)}
    index.storage.put(pack_path(in_use[1]), content)
    assert clean_packs(later(catalog), index.storage).deleted == (waste,)
