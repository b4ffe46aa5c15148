"""Stored extracts are judged again without a request. Nothing is lost, and changes are reported."""

import json
import sys
from collections.abc import Callable, Sequence

import pytest
from sqlalchemy import select, update
from starlette.requests import Request

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.publications.dump_registry import full_dump_rows, open_full_dump
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reads.stored_contents import store_lists
from pypi_assets.catalog.tables import changes, distribution_data, distributions, extract_packs
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.reading import read_workload
from pypi_assets.distributions import reader_pool
from pypi_assets.distributions.extract import ExtractError
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.reader_pool import ReaderPool, StoredExtract
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets.extracts import reprocess as reprocessing
from pypi_assets.extracts.packs import PackError, pack_path
from pypi_assets.extracts.reprocess import Reprocessed, reprocess, stored_records
from pypi_assets_tests.distributions.pooled_files import notice_stopped_readers
from pypi_assets_tests.naming import mentions, naming
from pypi_assets_tests.served_index import ServedIndex, shared_readers

DATA = distribution_data.c
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the kernel limits memory on Linux alone")


@pytest.fixture
def crawled(index: ServedIndex, catalog: Catalog) -> ServedIndex:
    """Return an index of six files that was crawled and rejects every later request."""
    index.wheel("one", "1.0", requires_dist=["two>=1"])
    index.wheel("one", "2.0")
    index.sdist("one", "2.0")
    index.wheel("two", "1.0")
    index.raw("three-1.0.tar.gz", b"no archive")
    index.raw("four-1.0.win32.exe", b"MZ")
    crawl_full(index.crawler(catalog))

    def refuse(request: Request) -> None:
        raise AssertionError(f"a request for {request.url}")

    index.faults = refuse
    return index


def run(index: ServedIndex, catalog: Catalog, **options: object) -> Reprocessed:
    with ReaderPool(ReadLimits(), size=1) as readers:
        return reprocess(catalog, index.storage, readers, **options)  # type: ignore[arg-type]


def content(catalog: Catalog) -> list[dict[str, object]]:
    with catalog.read() as connection:
        rows = connection.execute(select(distribution_data).order_by(DATA.distribution_id))
        return [dict(row) for row in rows.mappings()]


def change(catalog: Catalog, filename: str | None = None, **values: object) -> None:
    """Store `values` for one distribution, or for all, as an older extractor might have."""
    lists = {name: value for name, value in values.items() if isinstance(value, tuple)}
    chosen = select(distributions.c.id).where(distributions.c.filename == filename)
    with catalog.write() as connection:
        ids = store_lists(connection, lists.values())
        stored = {"extractor_version": 0} | values | {name: ids[names] for name, names in lists.items()}
        aged = update(distribution_data).values(**stored).where(DATA.extractor_version.is_not(None))
        other = update(distribution_data).values(record_digest="of another").where(DATA.pack_id.is_not(None))
        for statement in (aged, other) if values else (aged,):
            connection.execute(statement if filename is None else statement.where(DATA.distribution_id.in_(chosen)))


WHEEL, NEW_WHEEL, SDIST = "one-1.0-py3-none-any.whl", "one-2.0-py3-none-any.whl", "one-2.0.tar.gz"


def test_records_of_older_rules_are_remade_without_a_request(crawled: ServedIndex, catalog: Catalog):
    before = content(catalog)
    change(catalog, modules_id=("wrong", "one_module"))
    change(catalog, WHEEL, requires_dist_id=None)
    change(catalog, SDIST, modules_id=None, requires_dist_id=("zero",), requires_python=">=2")
    change(catalog, "two-1.0-py3-none-any.whl", outcome=ReadOutcome.ERROR, error_kind="bad metadata", error_text="odd")
    assert content(catalog) != before
    with catalog.read() as connection:
        logged = connection.execute(select(changes)).all()

    result = run(crawled, catalog)

    unread = [row["extractor_version"] for row in content(catalog) if row["pack_id"] is None]
    assert unread == [0]  # the file of an unsupported kind
    change(catalog, "four-1.0.win32.exe", extractor_version=EXTRACTOR_VERSION, modules_id=None)
    assert content(catalog) == before
    assert (result.looked_at, result.changed, result.unread, result.overtaken) == (5, 5, 0, 0)
    assert (result.gained_modules, result.lost_modules) == (2, 4)
    assert (result.changed_requirements, result.changed_errors) == (2, 1)
    assert f"{WHEEL}: +two>=1, unknown before" in result.examples["requirements"]
    assert f"{SDIST}: -zero" in result.examples["requirements"][1]
    assert f"{SDIST}: +one_module, unknown before" in result.examples["modules"]
    assert "two-1.0-py3-none-any.whl: +two_module, -one_module, -wrong" in result.examples["modules"]
    assert result.examples["errors"] == ["two-1.0-py3-none-any.whl: bad metadata: odd -> none"]
    with catalog.read() as connection:
        assert connection.execute(select(changes)).all() == logged


@pytest.mark.nightly
def test_next_full_dump_has_the_new_record(crawled: ServedIndex, catalog: Catalog):
    change(catalog, WHEEL, modules_id=("wrong",), details="{}")
    run(crawled, catalog)
    rows = {row["filename"]: row for row in map(as_dumped, full_dump_rows(catalog, open_full_dump(catalog, 1), 0))}
    assert (rows[WHEEL]["modules"], rows[WHEEL]["modules_by"]) == (["one_module"], "archive")
    assert (rows[WHEEL]["requires_by"], rows[WHEEL]["stubs"], rows[WHEEL]["left_out"]) == ("METADATA", [], 0)


def test_unchanged_records_get_the_new_version(crawled: ServedIndex, catalog: Catalog):
    before = content(catalog)
    change(catalog)
    result = run(crawled, catalog)
    assert (result.looked_at, result.changed, result.examples) == (5, 0, Reprocessed().examples)
    assert [row for row in content(catalog) if row["pack_id"] is not None] == [
        row for row in before if row["pack_id"] is not None
    ]
    assert run(crawled, catalog).looked_at == 0


def test_changes_of_other_columns_are_reported(crawled: ServedIndex, catalog: Catalog):
    with catalog.read() as connection:
        details = connection.scalar(select(DATA.details).join(distributions).where(distributions.c.filename == WHEEL))
    change(catalog, WHEEL, details=json.dumps(json.loads(str(details)) | {"summary": "old"}), requires_python=">=2")
    result = run(crawled, catalog)
    assert (result.changed, result.changed_requirements) == (1, 0)
    [example] = result.examples["other"]
    assert example.startswith(f"{WHEEL}: ")
    assert set(example.removeprefix(f"{WHEEL}: ").split(", ")) == {"requires_python", "summary"}


@pytest.mark.nightly
def test_reprocess_of_selected_records(crawled: ServedIndex, catalog: Catalog):
    change(catalog, WHEEL, modules_id=("wrong",))
    change(catalog, SDIST, modules_id=("wrong",), extractor_version=EXTRACTOR_VERSION)
    assert run(crawled, catalog, project="Two").looked_at == 0
    assert run(crawled, catalog, project="One").changed == 1
    again = run(crawled, catalog, project="one", older_than=EXTRACTOR_VERSION + 1)
    assert (again.looked_at, again.changed) == (3, 1)
    assert run(crawled, catalog, older_than=EXTRACTOR_VERSION + 1).looked_at == 5
    with pytest.raises(CatalogError, match=naming("none")):
        run(crawled, catalog, project="none")


@pytest.mark.nightly
def test_stopped_reprocess_resumes(crawled: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reprocessing, "_BATCH", 2)
    before = content(catalog)
    change(catalog, WHEEL, modules_id=("wrong",))
    change(catalog, SDIST, modules_id=("wrong",))
    change(catalog, "two-1.0-py3-none-any.whl")
    reported = []

    def stop(progress: object) -> None:
        reported.append(progress)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(crawled, catalog, report=stop)
    assert (reported[0].done, reported[0].total) == (2, 3)
    assert run(crawled, catalog).looked_at == 1
    assert content(catalog) == before


@pytest.mark.nightly
@pytest.mark.parametrize(
    "damage", [None, lambda content: content[:-1], lambda content: content[:45] + b"?" + content[46:]]
)
def test_missing_or_corrupt_pack_loses_no_record(
    crawled: ServedIndex,
    catalog: Catalog,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[bytes], bytes] | None,
):
    with catalog.read() as connection:
        name = connection.scalars(select(extract_packs.c.name)).one()
    pack = crawled.storage.get(pack_path(name))
    if damage is None:
        crawled.storage.delete(pack_path(name))
    else:
        crawled.storage.put(pack_path(name), damage(pack))
    one_extract_is_broken = damage is not None and len(damage(pack)) == len(pack)
    change(catalog)
    before = content(catalog)
    result = run(crawled, catalog)
    assert result.looked_at == 5
    assert result.unread == (1 if one_extract_is_broken else 5)
    assert result.broken_packs == ([] if one_extract_is_broken else [name])
    assert name in result.problems[0]
    kept = [row for row in content(catalog) if row["extractor_version"] == 0]
    assert len(kept) == result.unread + 1
    assert all(row in before for row in kept)
    crawled.storage.put(pack_path(name), pack)
    assert run(crawled, catalog).looked_at == result.unread


def test_files_without_extract_are_counted_named_and_reread(crawled: ServedIndex, catalog: Catalog):
    """Count files without an extract and files whose pack is missing, but not files of unsupported kinds."""
    change(catalog)
    with catalog.write() as connection:
        of_new = select(distributions.c.id).where(distributions.c.filename == NEW_WHEEL)
        connection.execute(update(distribution_data).values(pack_id=None).where(DATA.distribution_id.in_(of_new)))
    pack = crawled.storage.get(name := pack_path(pack_names(catalog)[0]))
    crawled.storage.delete(name)
    files = [WHEEL, NEW_WHEEL, SDIST, "three-1.0.tar.gz", "two-1.0-py3-none-any.whl"]
    result = run(crawled, catalog)
    assert (result.unread, result.not_supplied, sorted(result.not_supplied_files)) == (4, 5, files)
    assert result.queued == 0
    crawled.storage.put(name, pack)
    result = run(crawled, catalog)
    assert (result.looked_at, result.not_supplied, result.not_supplied_files) == (4, 1, [NEW_WHEEL])
    assert run(crawled, catalog, project="two").not_supplied == 0
    result = run(crawled, catalog, project="one", read_again=True)
    assert (result.not_supplied, result.queued) == (1, 1)
    crawled.faults = None
    assert read_workload(crawled.crawler(catalog), None).data == 1
    assert run(crawled, catalog).not_supplied == 0
    assert {row["extractor_version"] for row in content(catalog) if row["pack_id"]} == {EXTRACTOR_VERSION}
    assert run(crawled, catalog, read_again=True).queued == 0


def pack_names(catalog: Catalog) -> list[str]:
    with catalog.read() as connection:
        return list(connection.scalars(select(extract_packs.c.name)))


@pytest.mark.nightly
@pytest.mark.parametrize("fault", ["late_stop", "late_raise", pytest.param("late_fill", marks=linux_only)])
def test_record_stays_if_the_reader_fails(
    index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, fault: str
):
    index.wheel(fault, "1.0")
    index.wheel("one", "1.0")
    crawl_full(index.crawler(catalog))
    change(catalog)
    before = content(catalog)
    with monkeypatch.context() as patch:
        patch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.misbehaving_reader")
        notice_stopped_readers(patch)
        with ReaderPool(ReadLimits(seconds=0.1), size=1) as readers:
            result = reprocess(catalog, index.storage, readers)
    assert (result.looked_at, result.changed, result.unread) == (2, 0, 1)
    assert mentions(result.problems[0], f"{fault}-1.0-py3-none-any.whl")
    [kept] = [row for row in content(catalog) if row["extractor_version"] == 0]
    assert kept in before
    result = run(index, catalog)
    assert (result.looked_at, result.changed, result.unread) == (1, 0, 0)


@pytest.mark.nightly
@pytest.mark.parametrize("overtaken_by", ["a read", "a newer page"])
def test_concurrent_crawl_of_a_distribution_wins(
    crawled: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, overtaken_by: str
):
    change(catalog, WHEEL, modules_id=("wrong",))
    change(catalog, NEW_WHEEL)

    judge = ReaderPool.judge

    def overtake(readers: ReaderPool, extracts: Sequence[StoredExtract]) -> object:
        judged = judge(readers, extracts)
        values = {"pack_id": None} if overtaken_by == "a read" else {"outcome": ReadOutcome.PENDING}
        for filename in (WHEEL, NEW_WHEEL):
            change(catalog, filename, extractor_version=-1, **values)
        return judged

    monkeypatch.setattr(ReaderPool, "judge", overtake)
    result = run(crawled, catalog)
    assert (result.looked_at, result.changed, result.overtaken) == (2, 0, 1)
    assert [row["extractor_version"] for row in content(catalog)].count(-1) == 2


def test_record_of_a_stored_extract(crawled: ServedIndex, catalog: Catalog):
    [(place, record)] = stored_records(catalog, crawled.storage, shared_readers(), WHEEL)
    assert (place.project, place.filename, record.modules) == ("one", WHEEL, ("one_module",))
    assert stored_records(catalog, crawled.storage, shared_readers(), WHEEL, "One") == [(place, record)]
    [(_, broken)] = stored_records(catalog, crawled.storage, shared_readers(), "three-1.0.tar.gz")
    assert broken.error is not None
    for filename, project in (("four-1.0.win32.exe", None), ("none-1.0.tar.gz", None), (WHEEL, "two")):
        with pytest.raises(CatalogError, match=naming(filename)):
            stored_records(catalog, crawled.storage, shared_readers(), filename, project)
    path = pack_path(place.pack)
    pack = bytearray(crawled.storage.get(path))
    pack[place.offset + place.length - 1] ^= 1
    crawled.storage.put(path, bytes(pack))
    with pytest.raises(ExtractError, match=naming(WHEEL, place.pack)):
        stored_records(catalog, crawled.storage, shared_readers(), WHEEL)
    crawled.storage.delete(path)
    with pytest.raises(PackError, match=naming(place.pack)):
        stored_records(catalog, crawled.storage, shared_readers(), WHEEL)


@pytest.mark.nightly
def test_stored_extract_that_kills_its_reader_has_one_error(
    index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
):
    filename = index.wheel("crash", "1.0")
    crawl_full(index.crawler(catalog))
    monkeypatch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.misbehaving_reader")
    with ReaderPool(ReadLimits(), size=1) as readers, pytest.raises(ExtractError, match=naming("SIGSEGV")):
        stored_records(catalog, index.storage, readers, filename)
