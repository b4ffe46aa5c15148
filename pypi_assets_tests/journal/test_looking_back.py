"""Looking back: the newest segments alone are read, and the answer has the serial after which they begin."""

import orjson

from pypi_assets.catalog.reports.journal_format import Stream
from pypi_assets.journal.filters import RecordFilter
from pypi_assets.journal.reading import Journal
from pypi_assets.journal.tailing import LOOK_BACK_SEGMENTS, look_back
from pypi_assets.storage.store import Storage
from pypi_assets_tests.journal.written import simple_record, write_streams
from pypi_assets_tests.service.published import Published

EVERY = RecordFilter()


def serials(journal: Journal, wanted: RecordFilter = EVERY, **bounds: int) -> tuple[int, int, list[int]]:
    found = look_back(journal, Stream.INDEX, wanted, **bounds)
    return found.since, found.through, [orjson.loads(line)["serial"] for line in found.lines]


def test_whole_segments_from_the_end_as_far_as_the_bound_allows(storage: Storage):
    records = [simple_record(serial, "add file", f"p{serial % 3}") for serial in range(1, 41)]
    journal = write_streams(storage, {Stream.INDEX: records}, 40, cuts=(10, 20, 30))
    size = journal.manifest(journal.head("index"), 4).content_bytes
    assert serials(journal) == (0, 40, list(range(1, 41)))
    assert serials(journal, most_bytes=size * 2 + 20) == (20, 40, list(range(21, 41)))
    assert serials(journal, most_bytes=size - 1) == (40, 40, [])
    wanted = RecordFilter.parse(projects=["p0"])
    assert serials(journal, wanted, most_bytes=size * 2 + 20) == (20, 40, [21, 24, 27, 30, 33, 36, 39])


def test_few_of_many_small_segments_are_read(storage: Storage):
    count = LOOK_BACK_SEGMENTS + 10
    records = [simple_record(serial, "add file", "demo") for serial in range(1, count + 1)]
    journal = write_streams(storage, {Stream.INDEX: records}, count, cuts=range(1, count))
    since, through, found = serials(journal)
    assert (since, through, len(found)) == (10, count, LOOK_BACK_SEGMENTS)


def test_the_open_segment_is_looked_at_too(journaled: Published):
    journal = Journal(journaled.storage)
    assert journal.head("index").open is not None
    found = serials(journal)
    assert found == (0, journaled.index.serial, list(range(1, journaled.index.serial + 1)))
