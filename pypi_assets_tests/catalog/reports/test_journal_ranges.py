"""Records do not depend on which streams are made together, nor on how many files are read at a time."""

import random
from itertools import pairwise

import pytest

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reads.stored_json import to_utf8_json
from pypi_assets.catalog.reports import logged_changes
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.catalog.reports.journal_ranges import BY_RANGE, journal_records
from pypi_assets_tests.examples import examples
from pypi_assets_tests.journal.drawn_changes import draw_changes
from pypi_assets_tests.small_catalog import SmallCatalog

END = 40


def lines_of(small: SmallCatalog, streams: tuple[JournalStream, ...], *ends: int) -> dict[JournalStream, list[bytes]]:
    """Return the records of the streams as segments have them."""
    found: dict[JournalStream, list[bytes]] = {stream: [] for stream in streams}
    for start, end in pairwise(ends):
        with small.catalog.read_once() as connection:
            for stream, records in journal_records(connection, SerialRange(start, end), streams):
                found[stream] += map(to_utf8_json, records)
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(examples(3)))
def test_streams_made_together_equal_each_alone_at_any_batch_size(
    small: SmallCatalog, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = draw_changes(small, random.Random(seed), END)
    together = lines_of(small, BY_RANGE, 0, END)
    of_content = b"\n".join(together[JournalStream.CONTENT])
    assert sum(map(len, added.values())) <= len(together[JournalStream.OBSERVED])
    assert of_content.count(b'"kind":"file read"') >= sum(map(len, added.values()))
    assert all(kind in of_content for kind in (b"read late", b"release compared", b"new provider"))
    for size in (1, 2, 7):
        monkeypatch.setattr(logged_changes, "FILES_AT_A_TIME", size)
        for stream in BY_RANGE:
            assert lines_of(small, (stream,), 0, END)[stream] == together[stream]
        assert lines_of(small, BY_RANGE, 0, 1, END // 2, END - 1, END) == together
