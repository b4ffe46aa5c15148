"""The bytes of segments are those of records that are computed from whole tables, file by file."""

import random
from itertools import zip_longest
from pathlib import Path

import orjson
import pytest
from sqlalchemy import Connection, func, select, update

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports import logged_changes
from pypi_assets.catalog.reports.journal_contents import FILE_READ
from pypi_assets.catalog.reports.journal_format import JournalStream, Record
from pypi_assets.catalog.tables import distribution_data, distributions, past_generations
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.journal.publishing import write_missing
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import read_lines
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.crawl.followers import REFUSED, Follower, SilentIndex, add
from pypi_assets_tests.crawl.model_following import draining_in_place
from pypi_assets_tests.crawl.model_steps import draw_history
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.journal.drawn_changes import draw_changes
from pypi_assets_tests.journal.model_journal import follow_with_journal, stream_records
from pypi_assets_tests.journal.overwritten import follow_overwritten
from pypi_assets_tests.journal.plain_records import PlainJournal
from pypi_assets_tests.scoped_index import ScopedFollower, ScopedIndex
from pypi_assets_tests.small_catalog import small_catalog

STREAMS = (JournalStream.INDEX, JournalStream.OBSERVED, JournalStream.CONTENT)


def require_plain_bytes(catalog: Catalog) -> str:
    """Write the journal of a catalog, and compare its lines with plain records. Return all lines as one text."""
    storage = open_storage("memory:///")
    list(write_missing(catalog, storage))
    journal, plain = Journal(storage), PlainJournal(catalog)
    text = ""
    for stream in STREAMS:
        head = journal.head(stream)
        lines = [line for segment in journal.segments(head, 0) for line in read_lines(storage, segment)]
        for line, expected in zip_longest(lines, plain.lines(stream, SerialRange(head.start, head.through))):
            assert line == expected
        text += b"\n".join(lines).decode()
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
    first = random.SystemRandom().randrange(2**32)
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


@pytest.mark.nightly
def test_followed_histories_give_the_bytes_of_plain_records(catalog: Catalog) -> None:
    first = random.SystemRandom().randrange(2**32)
    for seed in range(first, first + (examples(3) if catalog.is_sqlite else 1)):
        try:
            require_plain_bytes(follow_with_journal(catalog, draw_history(seed)).catalog)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.nightly
def test_scoped_projects_give_the_bytes_of_plain_records(catalog: Catalog) -> None:
    with draining_in_place():
        scoped = ScopedFollower(ScopedIndex(), catalog)
        scoped.index.upload("base", "1.0")
        scoped.index.upload("root", "1.0")
        scoped.start("root")
        scoped.index.upload("root", "2.0", "base")
        scoped.crawl()
        scoped.index.record_event("root", None, "docupdate")
        scoped.crawl()
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
