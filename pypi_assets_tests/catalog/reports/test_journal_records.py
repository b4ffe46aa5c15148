"""Journal records are complete, do not depend on how serials are split into ranges, and name their cause."""

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial, read_state
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.looks import LIST_AGE_S
from pypi_assets.catalog.reads.stored_json import to_utf8_json
from pypi_assets.catalog.reports.journal_format import JournalStream, Record
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets_tests.crawl.followers import REFUSED, Follower, SilentIndex, add
from pypi_assets_tests.crawl.model_dumps import full_dump_of
from pypi_assets_tests.crawl.model_following import draining_in_place
from pypi_assets_tests.crawl.model_steps import draw_history
from pypi_assets_tests.examples import examples, first_seed
from pypi_assets_tests.journal.model_journal import (
    JournalReader,
    compared,
    follow_with_journal,
    journal_of,
    seal_complete,
    stream_records,
)
from pypi_assets_tests.journal.overwritten import follow_overwritten
from pypi_assets_tests.scoped_index import ScopedFollower, ScopedIndex

HISTORIES = examples(3)


@pytest.fixture
def follower(catalog: Catalog) -> Iterator[Follower]:
    with draining_in_place():
        yield Follower(SilentIndex(), catalog)


def journal(catalog: Catalog, start: int = 0) -> list[Record]:
    """Return all observed and content records above the serial `start`."""
    with catalog.read() as connection:
        return journal_of(catalog, SerialRange(start, complete_serial(connection)))


def of_files(records: list[Record], *names: str) -> list[tuple[Any, ...]]:
    """Return the filename, the kind and the fields `names` of each observed record of a file."""
    observed = (record for record in records if record["stream"] == "observed" and "filename" in record)
    return [(record["filename"], record["kind"], *(record.get(name) for name in names)) for record in observed]


@pytest.mark.nightly
def test_journal_has_the_rows_of_dumps(catalog: Catalog) -> None:
    """The last observed record of a file and its last content record give its row in the dumps."""
    first = first_seed()
    for seed in range(first, first + (HISTORIES if catalog.is_sqlite else 1)):
        try:
            follow_with_journal(catalog, draw_history(seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.nightly
def test_records_do_not_depend_on_how_serials_are_split(catalog: Catalog) -> None:
    for seed in (3, 11):
        following = follow_with_journal(catalog, draw_history(seed))
        with catalog.read() as connection:
            end = complete_serial(connection)
        seal_complete(following.catalog)
        for stream in (JournalStream.INDEX, JournalStream.OBSERVED, JournalStream.CONTENT):
            whole = cut(following.catalog, stream, [0, end])
            assert cut(following.catalog, stream, range(end + 1)) == whole
            ends = sorted({0, end, *random.Random(seed).sample(range(1, end + 1), min(4, end))})
            assert cut(following.catalog, stream, ends) == whole
            assert cut(following.catalog, stream, [0, end]) == whole
            ordinals: dict[int, int] = {}
            for record in whole:
                assert record["ordinal"] == ordinals.get(record["serial"], 0)
                ordinals[record["serial"]] = record["ordinal"] + 1
            assert list(ordinals) == sorted(ordinals)


def cut(catalog: Catalog, stream: JournalStream, ends: Any) -> list[Record]:
    found: list[Record] = []
    for start, end in pairwise(ends):
        with catalog.read_once() as connection:
            records = stream_records(connection, SerialRange(start, end), stream)
            found += (orjson.loads(to_utf8_json(record)) for record in records)
    return found


@pytest.mark.nightly
def test_many_files_at_one_serial_are_ordered_alike(follower: Follower) -> None:
    """The database returns them in several batches, whose ends depend on the start of the range."""
    index = follower.index
    add(index, "demo")
    crawl_full(follower.crawler)
    index.page_rows = 1_500
    index.add_many("demo", "2.0", 1_050)
    index.do("yank", "demo", "2.0")
    index.do("remove-release", "demo", "2.0")
    crawl_incremental(follower.crawler)
    seal_complete(follower.catalog)
    for stream in (JournalStream.OBSERVED, JournalStream.CONTENT):
        whole = cut(follower.catalog, stream, [0, index.serial])
        assert len({(one["serial"], one["ordinal"]) for one in whole}) == len(whole)
        assert cut(follower.catalog, stream, [0, 1, index.serial - 1, index.serial]) == whole
        assert cut(follower.catalog, stream, [0, index.serial - 2, index.serial]) == whole


def test_project_removal_is_one_record_per_file_naming_the_event(follower: Follower) -> None:
    index = follower.index
    first, second = add(index, "demo"), add(index, "demo", "2.0")
    add(index, "other")
    crawl_full(follower.crawler)
    start = index.serial
    index.do("remove-project", "demo")
    crawl_incremental(follower.crawler)
    event = {"serial": start + 1, "action": "remove project"}
    assert of_files(journal(follower.catalog, start), "cause", "event") == [
        (name, "file removed", "remove project", event) for name in sorted([first, second])
    ]


def test_quarantine_and_yank_have_records(follower: Follower) -> None:
    index = follower.index
    name = add(index, "demo")
    crawl_full(follower.crawler)
    start = index.serial
    for kind, version in (("quarantine", None), ("unquarantine", None), ("yank", "1.0"), ("unyank", "1.0")):
        index.do(kind, "demo", version)
    crawl_incremental(follower.crawler)
    records = journal(follower.catalog, start)
    assert of_files(records, "cause", "live", "yanked") == [
        (name, "file hidden", "quarantine project", [[start, start + 1]], []),
        (name, "file shown", "unquarantine project", [[start, start + 1], [start + 2, None]], []),
        (name, "file yanked", "yank release", [[start, start + 1], [start + 2, None]], [[start + 3, None]]),
        (name, "file unyanked", "unyank release", [[start, start + 1], [start + 2, None]], [[start + 3, start + 4]]),
    ]
    read = [record for record in records if record["kind"] == "file read"]
    assert [(record["serial"], record["cause"]) for record in read] == [(start + 2, "unquarantine project")]


def test_correction_refers_to_the_corrected_record(follower: Follower) -> None:
    """A file vanishes without an event after its range was sealed."""
    index = follower.index
    name = add(index, "demo")
    add(index, "demo", "2.0")
    crawl_full(follower.crawler)
    journal(follower.catalog)
    start = index.serial
    index.drift("demo", "1.0", name)
    index.record_event("demo", None, "docupdate")
    crawl_full(follower.crawler)
    crawl_incremental(follower.crawler)
    [found] = [entry for entry in of_files(journal(follower.catalog, start), "cause", "of_serial") if entry[0] == name]
    assert found[1:3] == ("file removed", "unexplained")


def test_serials_without_events_are_a_gap(follower: Follower) -> None:
    index = follower.index
    add(index, "demo")
    crawl_full(follower.crawler)
    start = index.serial
    index.trouble = REFUSED
    index.record_event("demo", None, "docupdate")
    add(index, "demo", "2.0")
    crawl_incremental(follower.crawler)
    with follower.catalog.read() as connection:
        serials = SerialRange(start, complete_serial(connection))
        for stream in (JournalStream.INDEX, JournalStream.OBSERVED):
            [gap] = [record for record in stream_records(connection, serials, stream) if record["kind"] == "gap"]
            assert (gap["serial"], gap["of_serial"], gap["until"]) == (start + 1, start + 1, index.serial)
            assert gap["at"] == (int(follower.now) if stream is JournalStream.OBSERVED else None)


def test_record_of_listed_change_has_both_times(follower: Follower) -> None:
    index = follower.index
    add(index, "demo")
    crawl_full(follower.crawler)
    index.trouble = REFUSED
    start, before = index.serial, follower.now
    add(index, "demo", "2.0")
    follower.now += 10_000
    crawl_incremental(follower.crawler)
    with follower.catalog.read() as connection:
        found = stream_records(connection, SerialRange(start, complete_serial(connection)), JournalStream.OBSERVED)
        [record] = [record for record in found if record.get("cause") == "listed"]
    assert record["at"] == int(follower.now)
    assert record["not_before"] == int(before - LIST_AGE_S)


def test_serials_unknown_to_the_first_crawl_are_a_gap(follower: Follower) -> None:
    for version in ("1.0", "2.0", "3.0"):
        add(follower.index, "demo", version)
    crawl_full(follower.crawler)
    with follower.catalog.read() as connection:
        exact_from = read_state(connection)["exact_from"]
    assert [(record["serial"], record["until"]) for record in journal(follower.catalog) if record["kind"] == "gap"] == [
        (1, exact_from)
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("is_sealed", [False, True])
def test_follow_and_unfollow_have_records(catalog: Catalog, is_sealed: bool) -> None:
    scoped = ScopedFollower(ScopedIndex(), catalog)
    base = scoped.index.upload("base", "1.0")
    scoped.index.upload("root", "1.0")
    scoped.start("root")
    if is_sealed:
        journal(catalog)
    scoped.index.upload("root", "2.0", "base")
    scoped.crawl()
    scoped.index.record_event("root", None, "docupdate")
    scoped.crawl()
    records = journal(catalog)
    seen = of_files(records, "cause", "followed")
    assert all(followed for *_, followed in seen)
    assert ((base, "file followed") in {one[:2] for one in seen}) == is_sealed
    reader = JournalReader()
    with catalog.read() as connection:
        reader.take(records, complete_serial(connection))
    assert {name: compared(row) for name, row in reader.rows().items()} == {
        name: compared(row) for name, row in full_dump_of(catalog).items()
    }


@pytest.mark.nightly
def test_replaced_file_has_a_record_for_each_content(catalog: Catalog, tmp_path: Path) -> None:
    """Only indexes without serials show replacements."""
    name = follow_overwritten(catalog, tmp_path)
    records = [record for record in journal(catalog) if record.get("filename") == name]
    replaced = [record for record in records if record["kind"] == "file replaced"]
    assert [(record["generation"], record["cause"]) for record in replaced] == [(2, "replaced"), (3, "replaced")]
    read = {record["sha256"]: record["modules"] for record in records if record["kind"] == "file read"}
    assert len(read) == 3
    for one in replaced:
        assert one["sha256"] in read
    assert [modules for modules in read.values() if "second" in modules] != []
