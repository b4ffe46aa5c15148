"""The journal in `published.json`: the heads of its streams as they are stored."""

import orjson

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.journal.published_heads import publish_heads
from pypi_assets.journal.segment_files import Head, OpenSegment, write_head
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.store import open_storage


def test_the_heads_that_there_are_are_named() -> None:
    storage = open_storage("memory:///")
    publish_heads(storage)
    assert orjson.loads(storage.get(PUBLISHED))["journal"] == {}
    head = Head("index", 1, 0, 1000, 1, "f" * 64, OpenSegment(SerialRange(1000, 1010), "open-x", 3, 30, "e" * 64))
    write_head(storage, head)
    publish_heads(storage)
    assert orjson.loads(storage.get(PUBLISHED))["journal"] == {"index": orjson.loads(head.encode())}
