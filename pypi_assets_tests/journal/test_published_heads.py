"""The journal in `published.json`: the heads of its streams as they are stored."""

import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.journal_format import Stream
from pypi_assets.journal.published_heads import publish_heads
from pypi_assets.journal.segment_files import Head, OpenSegment, write_head
from pypi_assets.journal.signing import checkpoint_path, sign_checkpoint
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


def test_a_checkpoint_is_named_with_its_head() -> None:
    storage = open_storage("memory:///")
    head = Head("index", 1, 0, 1000, 1, "f" * 64)
    write_head(storage, head)
    sign_checkpoint(storage, Stream.INDEX, Ed25519PrivateKey.generate())
    checkpoint = orjson.loads(storage.get(checkpoint_path("index")))
    publish_heads(storage)
    named = orjson.loads(storage.get(PUBLISHED))["journal"]["index"]
    assert named == orjson.loads(head.encode()) | {"checkpoint": checkpoint}
    for damaged in (b"no JSON", b"null", b"[]", b'"text"', b'{"end": "%s"}' % (b"1" * 20_000)):
        storage.put(checkpoint_path("index"), damaged)
        publish_heads(storage)
        assert orjson.loads(storage.get(PUBLISHED))["journal"] == {"index": orjson.loads(head.encode())}
