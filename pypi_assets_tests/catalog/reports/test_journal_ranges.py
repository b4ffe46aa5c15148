"""Records do not depend on which streams are made together, nor on how many files are read at a time."""

import random
from collections import defaultdict
from itertools import pairwise

import pytest

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reads.stored_json import to_utf8_json
from pypi_assets.catalog.reports import logged_changes
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.catalog.reports.journal_ranges import BY_RANGE, journal_records
from pypi_assets_tests.examples import examples
from pypi_assets_tests.journal.model_journal import seal_complete
from pypi_assets_tests.small_catalog import SmallCatalog

FIRST, END = 3, 40
NAMES = ("one", "two", "three")
MODULES = (("shared",), ("shared", "own"), ("own", "own.sub"), ("third", "shared.sub"), None)
REQUIREMENTS = ((), ("base",), ("base", "more>=2"))


def draw_changes(small: SmallCatalog, draw: random.Random) -> dict[int, list[tuple[str, str]]]:
    """Add, remove, show again, yank and read files at drawn serials. Return the files that were added at each serial.

    The files are given as project and name.
    """
    added: dict[int, list[tuple[str, str]]] = defaultdict(list)
    live: list[str] = []
    gone: list[str] = []
    unread: list[str] = []
    for serial in range(FIRST, END):
        removed, new = list[str](), list[str]()  # a file changes once at a serial
        for number in range(draw.choice((1, 1, 1, 2, 3))):
            what = draw.random()
            if what < 0.15 and live:
                removed.append(live.pop(draw.randrange(len(live))))
                small.remove(serial, removed[-1])
            elif what < 0.25 and gone:
                new.append(gone.pop(draw.randrange(len(gone))))
                small.show_again(serial, new[-1])
            else:
                project, version = draw.choice(NAMES), draw.choice(("1.0", "1.9", "1.10", "2.0rc1", "odd"))
                name = f"{project}-{version}-{serial}.{number}.tar.gz"
                modules = draw.choice(MODULES)
                small.add(
                    serial,
                    project,
                    version,
                    name,
                    modules=modules,
                    requires_dist=None if modules is None else draw.choice(REQUIREMENTS),
                )
                if modules is None:
                    unread.append(name)
                else:
                    new.append(name)
                    added[serial].append((project, name))
        live += new
        gone += removed
    small.complete(END // 2)
    seal_complete(small.catalog)
    for name in unread:
        small.read(name, ("late",), ("base",))  # logged after the sealed range
    small.complete(END)
    seal_complete(small.catalog)
    return added


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
    added = draw_changes(small, random.Random(seed))
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
