"""The bytes of segments are those of records that are computed from whole tables, file by file."""

import random
from itertools import zip_longest
from pathlib import Path

import orjson
import pytest
from sqlalchemy import Connection, func, insert, select, update

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.journal_segments import add_takedown
from pypi_assets.catalog.reports import logged_changes
from pypi_assets.catalog.reports.journal_contents import FILE_READ
from pypi_assets.catalog.reports.journal_format import JournalStream, Record
from pypi_assets.catalog.tables import changes, distribution_data, distributions, past_generations
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.journal.publishing import complete_takedowns, write_missing
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import read_lines
from pypi_assets.journal.takedowns import wanted_takedown
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.crawl.followers import REFUSED, Follower, SilentIndex, add
from pypi_assets_tests.crawl.model_following import draining_in_place
from pypi_assets_tests.crawl.model_steps import draw_history
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples, first_seed
from pypi_assets_tests.journal.drawn_changes import draw_changes
from pypi_assets_tests.journal.model_journal import follow_with_journal, stream_records
from pypi_assets_tests.journal.overwritten import follow_overwritten
from pypi_assets_tests.journal.plain_records import PlainJournal
from pypi_assets_tests.scoped_index import follow_scope
from pypi_assets_tests.small_catalog import small_catalog


def require_plain_bytes(catalog: Catalog, storage: Storage | None = None) -> str:
    """Write the journal of a catalog, and compare its lines with plain records. Return all lines as one text."""
    storage = storage or open_storage("memory:///")
    list(write_missing(catalog, storage))
    journal, plain = Journal(storage), PlainJournal(catalog)
    text = ""
    for stream in JournalStream:
        head = journal.head(stream)
        lines = [line for segment in journal.segments(head, 0) for line in read_lines(storage, segment)]
        for line, expected in zip_longest(lines, plain.lines(stream, SerialRange(head.start, head.through))):
            assert line == expected
        text += b"".join(b"%b\n" % line for line in lines).decode()
    return text


def require_plain_bytes_after_takedowns(catalog: Catalog, storage: Storage, draw: random.Random) -> str:
    """Compare the lines with plain records, twice after takedowns. Return the last lines."""
    plain = PlainJournal(catalog)
    lines = [orjson.loads(line) for stream in JournalStream for line in plain.lines(stream, SerialRange(0, 2**40))]
    lines = [line for line in lines if line["normalized"]]
    for _ in range(2):
        for number in range(5 if lines else 0):  # a drawn history can be without projects
            record = draw.choice(lines)
            place = (record["stream"], record["serial"], record["ordinal"])
            if number == 0:
                wanted = wanted_takedown("one", record=":".join(map(str, place)))
            else:
                shown = [*record.get("gone", ()), *(name for name, *_ in record.get("changed", ()))]
                facts = {"filename": draw.choice(shown) if shown else None} | record  # visits show several files
                named = {name: facts.get(name) for name in ("version", "filename") if draw.random() < 0.6}
                reason, hides = f"{number} of a project", draw.random() < 0.5
                wanted = wanted_takedown(reason, record["normalized"], **named, hides_name=hides)
            add_takedown(catalog, wanted)
        complete_takedowns(catalog, storage)
        text = require_plain_bytes(catalog, storage)
    return text


def test_drawn_changes_give_the_bytes_of_plain_records(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = small_catalog(tmp_path, database_url)
    is_sqlite = small.catalog.is_sqlite
    monkeypatch.setattr(logged_changes, "FILES_AT_A_TIME", 9)  # so that there are several batches
    draw_changes(small, random.Random(4), 40 if is_sqlite else 20)
    text = require_plain_bytes(small.catalog)
    small.catalog.close()
    for kind in ("file yanked", "file removed", "file read", "file not read", "release compared", "new provider"):
        assert f'"kind":"{kind}"' in text


@pytest.mark.nightly
def test_many_drawn_changes_give_the_bytes_of_plain_records(tmp_path: Path) -> None:
    first = first_seed()
    for seed in range(first, first + examples(5)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        small = small_catalog(folder)
        draw_changes(small, random.Random(seed), 40)
        try:
            require_plain_bytes(small.catalog)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        small.catalog.close()


def test_takedowns_leave_the_bytes_of_plain_records(tmp_path: Path) -> None:
    kinds = set[str]()
    for seed in range(5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        small = small_catalog(folder)
        draw_changes(small, random.Random(seed), 20)
        text = require_plain_bytes_after_takedowns(small.catalog, open_storage("memory:///"), random.Random(seed))
        kinds |= {str(orjson.loads(line)["kind"]) for line in text.splitlines()}
        small.catalog.close()
    assert kinds > {"taken down", "file added", "file read"}


def test_visits_give_the_bytes_of_plain_records(tmp_path: Path) -> None:
    catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    with draining_in_place():
        follower = Follower(SilentIndex(), catalog)
        add(follower.index, "demo")
        crawl_full(follower.crawler)
        removed = add(follower.index, "demo", "2.0")
        crawl_incremental(follower.crawler)
        follower.index.do("remove-file", "demo", "2.0", removed)
        add(follower.index, "demo", "3.0")
        crawl_incremental(follower.crawler)
    storage = open_storage("memory:///")
    text = require_plain_bytes(catalog, storage)
    assert text.count('"kind":"visit full"') == 3
    assert f'"gone":["{removed}"]' in text
    add_takedown(catalog, wanted_takedown("one file", "demo", filename=removed))
    complete_takedowns(catalog, storage)
    left = [line for line in require_plain_bytes(catalog, storage).splitlines() if '"stream":"visits"' in line]
    assert left
    assert not any(removed in line for line in left)
    assert '"kind":"taken down"' in require_plain_bytes_after_takedowns(catalog, storage, random.Random(1))
    catalog.close()


def test_file_with_two_changes_at_a_serial_has_one_content(tmp_path: Path) -> None:
    small = small_catalog(tmp_path)
    small.add(3, "demo", "1.0", "demo-1.0.tar.gz")
    with small.catalog.write() as connection:
        [id_] = connection.scalars(select(distributions.c.id)).all()
        connection.execute(insert(changes).values(distribution_id=id_, serial=3, cause="followed", logged_serial=3))
    small.complete(3)
    assert require_plain_bytes(small.catalog).count('"kind":"file read"') == 1
    small.catalog.close()


@pytest.mark.nightly
def test_followed_histories_give_the_bytes_of_plain_records(catalog: Catalog) -> None:
    first = first_seed()
    for seed in range(first, first + (examples(3) if catalog.is_sqlite else 1)):
        try:
            followed = follow_with_journal(catalog, draw_history(seed)).catalog
            require_plain_bytes_after_takedowns(followed, open_storage("memory:///"), random.Random(seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.nightly
def test_scoped_projects_give_the_bytes_of_plain_records(catalog: Catalog) -> None:
    follow_scope(catalog)
    assert '"followed":[[' in require_plain_bytes(catalog)


@pytest.mark.nightly
def test_replaced_files_give_the_bytes_of_plain_records(catalog: Catalog, tmp_path: Path) -> None:
    follow_overwritten(catalog, tmp_path)
    assert '"kind":"file replaced"' in require_plain_bytes(catalog)


def test_content_before_a_replacement_is_written_while_the_new_one_is_unread(tmp_path: Path) -> None:
    catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    name = follow_overwritten(catalog, tmp_path)
    with catalog.read() as connection:
        until = connection.scalar(select(func.max(past_generations.c.until))) or 0
        before = contents_of(connection, name, until)
    with catalog.write() as connection:
        id_ = select(distributions.c.id).where(distributions.c.filename == name).scalar_subquery()
        of_file = distribution_data.c.distribution_id == id_
        connection.execute(update(distribution_data).where(of_file).values(outcome="pending"))
        unread = contents_of(connection, name, until)
    assert [record["modules"] for record in before] == [["first"], ["second"]]
    assert unread == before
    catalog.close()


def contents_of(connection: Connection, filename: str, until: int) -> list[Record]:
    """Return the records of contents of one file that were logged before the serial `until`."""
    records = stream_records(connection, SerialRange(0, until - 1), JournalStream.CONTENT)
    found = [record for record in records if record["kind"] == FILE_READ and record["filename"] == filename]
    return [orjson.loads(orjson.dumps(record)) for record in found]


@pytest.mark.nightly
def test_listed_changes_and_gaps_give_the_bytes_of_plain_records(catalog: Catalog) -> None:
    with draining_in_place():
        follower = Follower(SilentIndex(), catalog)
        add(follower.index, "demo")
        crawl_full(follower.crawler)
        follower.index.trouble = REFUSED
        add(follower.index, "demo", "2.0")
        follower.now += 10_000
        crawl_incremental(follower.crawler)
    text = require_plain_bytes(catalog)
    assert all(f'"{word}"' in text for word in ("listed", "not_before", "gap"))
