"""Extracts are stored in packs before the catalog refers to them, and are read back."""

import threading
import time
from datetime import timedelta

import pytest
from sqlalchemy import select
from starlette.responses import Response

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome, used_packs
from pypi_assets.catalog.tables import distribution_data, extract_packs
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.retry_failures import retry
from pypi_assets.distributions.extract import decode_extract
from pypi_assets.extracts.packs import (
    PackedExtract,
    PackError,
    clean_packs,
    make_pack,
    pack_path,
    read_extracts,
    read_pack,
)
from pypi_assets.storage.store import Storage, StorageError
from pypi_assets_tests.extracts.stored_packs import EXTRACTS, places, put, stored
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import ServedIndex


def later(catalog: Catalog, by: timedelta = timedelta(hours=25)) -> Catalog:
    return Catalog(catalog.engine, lambda: time.time() + by.total_seconds())


def test_orphaned_packs_are_deleted_after_a_day(index: ServedIndex, catalog: Catalog):
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


def test_pack_referenced_during_deletion_is_kept(index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch):
    crawler = index.crawler(catalog)
    index.wheel("one", "1.0")
    crawl_full(crawler)
    [first] = {pack for pack, _, _ in places(catalog).values()}
    index.wheel("one", "2.0")
    crawl_incremental(crawler)
    everything = stored(index.storage)
    assert len(everything) == 2
    # the state a moment ago
    monkeypatch.setattr(
        "pypi_assets.extracts.packs.used_packs", lambda _connection, after, _limit: [] if after else [first]
    )
    assert clean_packs(later(catalog), index.storage).deleted == ()
    assert stored(index.storage) == everything


def test_possibly_needed_packs_are_kept(index: ServedIndex, catalog: Catalog):
    """Keep packs with an extract that the catalog does not know or has no location for, and corrupt packs."""
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


def test_packs_of_another_catalog_are_not_orphaned(
    index: ServedIndex, catalog: Catalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
):
    assert clean_packs(later(catalog), storage).packs == 0
    monkeypatch.setattr("pypi_assets.extracts.packs._NAMES_AT_A_TIME", 1)
    names = [index.wheel(name, "1.0") for name in ("one", "two")]
    waste = put(index.storage, [PackedExtract("one", names[0], None, b"one")])
    with pytest.raises(CatalogError, match=naming(1)):
        clean_packs(later(catalog), index.storage)
    crawl_full(index.crawler(catalog, in_flight=1))  # one pack per file
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


def test_pack_has_an_index(storage: Storage):
    name = put(storage)
    pack = read_pack(storage, name)
    assert [(entry.project, entry.filename, entry.sha256) for entry in pack.entries] == [
        (extract.project, extract.filename, extract.sha256) for extract in EXTRACTS
    ]
    assert [pack.content[entry.offset : entry.offset + entry.length] for entry in pack.entries] == [
        extract.content for extract in EXTRACTS
    ]
    assert stored(storage) == {f"extracts/{name[:2]}/{name}.pack"}


def test_packs_are_unique():
    assert make_pack(EXTRACTS).name != make_pack(EXTRACTS).name


def test_extracts_are_read_in_any_order(storage: Storage):
    pack = make_pack(EXTRACTS)
    storage.put(pack_path(pack.name), pack.content)
    wanted = [(entry.offset, entry.length) for entry in reversed(pack.entries)]
    assert read_extracts(storage, pack.name, len(pack.content), wanted) == [b"three" * 100, b"", b"one"]
    assert read_extracts(storage, pack.name, len(pack.content), wanted[:1]) == [b"three" * 100]


@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: content[:60] + b"x" + content[61:]])
def test_corrupt_pack_is_named(storage: Storage, damage):
    pack = make_pack(EXTRACTS)
    storage.put(pack_path(pack.name), damage(pack.content))
    with pytest.raises(PackError, match=naming(pack.name)):
        read_pack(storage, pack.name)


def test_missing_or_truncated_pack_is_named(storage: Storage):
    with pytest.raises(PackError, match=naming("0" * 64)):
        read_pack(storage, "0" * 64)
    with pytest.raises(PackError, match=naming("0" * 64)):
        read_extracts(storage, "0" * 64, 100, [(39, 3)])
    pack = make_pack(EXTRACTS)
    storage.put(pack_path(pack.name), pack.content[:50])
    with pytest.raises(PackError):
        read_extracts(storage, pack.name, len(pack.content), [(39, 3)])


def test_crawl_stores_extracts(index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pypi_assets.crawl.reading._COMMIT_EVERY_S", 600.0)  # a busy machine may write two packs
    wheel, sdist = index.wheel("one", "1.0"), index.sdist("two", "1.0")
    broken, unread = index.raw("three-1.0.tar.gz", b"no archive"), index.raw("four-1.0.win32.exe", b"MZ")
    crawl_full(index.crawler(catalog))
    locations = places(catalog)
    assert set(locations) == {wheel, sdist, broken}
    assert unread not in locations
    [name] = {pack for pack, _, _ in locations.values()}
    pack = read_pack(index.storage, name)
    assert {entry.filename: (name, entry.offset, entry.length) for entry in pack.entries} == locations
    assert {entry.project for entry in pack.entries} == {"one", "two", "three"}
    _, offset, length = locations[wheel]
    extract = decode_extract(pack.content[offset : offset + length])
    assert "one_module/__init__.py" in extract.paths


def test_failing_pack_stops_the_crawl_before_the_commit(
    index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)

    def fail(*_: object) -> None:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "put", fail)
        with pytest.raises(StorageError, match="the disk is full"):
            crawl_full(crawler)
    with catalog.read() as connection:
        assert connection.scalars(select(distribution_data.c.outcome)).all() == [ReadOutcome.PENDING]
    crawl_full(crawler)
    assert len(places(catalog)) == 1


def test_reads_are_committed_every_few_seconds(index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pypi_assets.crawl.reading._COMMIT_EVERY_S", 0.0)
    for number in range(4):
        index.wheel(f"project{number}", "1.0")
    committed = threading.Event()

    def wait_for_the_others(request):
        """Serve the last file after the earlier reads are committed."""
        if "/packages/" in request.url.path and "project3" in request.url.path:
            while not places(catalog) and not committed.wait(0.02):
                pass

    index.faults = wait_for_the_others
    crawl_full(index.crawler(catalog))
    assert len({pack for pack, _, _ in places(catalog).values()}) > 1


def test_reread_file_refers_to_its_new_extract_or_none(index: ServedIndex, catalog: Catalog):
    filename = index.raw("one-1.0.tar.gz", b"no archive")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    before = places(catalog)[filename]
    retry(crawler)
    assert places(catalog)[filename][0] != before[0]
    index.faults = lambda request: Response(b"other bytes") if filename in request.url.path else None
    assert retry(crawler).reads.errors == 1
    assert places(catalog) == {}
