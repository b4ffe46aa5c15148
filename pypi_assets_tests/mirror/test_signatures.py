"""A mirror that trusts a key follows signed content and rejects all else. Held files stay."""

import json
from collections.abc import Sequence
from dataclasses import replace

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.journal_format import JournalStream, numbered
from pypi_assets.journal.segment_files import (
    OPEN_PREFIX,
    Head,
    OpenSegment,
    Pruned,
    read_head,
    write_head,
    write_segment,
)
from pypi_assets.journal.signing import checkpoint_path, publish_heads, sign_checkpoint, verify_checkpoint
from pypi_assets.mirror.following import Mirror
from pypi_assets.mirror.mirror_state import mirror_status
from pypi_assets.mirror.sources import BehindError, RefusedSourceError, StoredSource
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.root_owner import require_owner
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.journal.written import plain_files, simple_record, write_streams
from pypi_assets_tests.mirror.test_replaced_segments import taken_down
from pypi_assets_tests.naming import naming

KEY = Ed25519PrivateKey.generate()
OTHER = Ed25519PrivateKey.generate()
SIGNED = tuple(JournalStream)


def source_of(
    name: str = "other", through: int = 30, signed: Sequence[JournalStream] = SIGNED, key: Ed25519PrivateKey = KEY
) -> Storage:
    """Return a published source whose journal is signed."""
    storage = open_storage("memory:///")
    require_owner(storage, "https://index.example.org/simple/")
    some = [simple_record(serial, "unknown", one) for serial in (5, 15, 25) for one in ("secret", name)]
    write_streams(storage, dict.fromkeys(SIGNED, some), through, cuts=[cut for cut in (10, 20) if cut < through])
    publish(storage, signed, key)
    return storage


def publish(storage: Storage, signed: Sequence[JournalStream] = SIGNED, key: Ed25519PrivateKey = KEY) -> None:
    for stream in signed:
        sign_checkpoint(storage, stream, key)
    publish_heads(storage)


def follow(source: Storage, held: Storage, key: Ed25519PrivateKey | None = KEY) -> None:
    public = None if key is None else key.public_key()
    Mirror(StoredSource(source), held, grace_s=3600, public_key=public, sleep=lambda _seconds: None).run()


def test_signed_content_is_followed_and_stays_signed_in_mirrors() -> None:
    source, first, second = source_of(through=20), open_storage("memory:///"), open_storage("memory:///")
    for through in (20, 30):
        grown = source_of(through=through)
        follow(grown, first)
        follow(first, second)
        follow(second, second_of := open_storage("memory:///"), key=None)
        for held in (first, second, second_of):
            for stream in SIGNED:
                assert verify_checkpoint(held, stream, KEY.public_key()) == through
    assert plain_files(first) == plain_files(second)
    assert source.get(checkpoint_path("index")) != first.get(checkpoint_path("index"))


def test_stream_without_a_complete_segment_needs_no_signature() -> None:
    source, held = source_of(), open_storage("memory:///")
    write_head(source, Head("index", 1, 0, 0, 0, None))
    source.delete(checkpoint_path("index"))
    publish_heads(source)
    follow(source, held)
    assert verify_checkpoint(held, JournalStream.CONTENT, KEY.public_key()) == 30


def test_segments_after_a_checkpoint_are_copied_and_signed_later() -> None:
    source, held = source_of(through=20), open_storage("memory:///")
    grown = source_of(through=30, signed=())
    for stream in SIGNED:
        grown.put(checkpoint_path(stream), source.get(checkpoint_path(stream)))
    publish_heads(grown)
    follow(grown, held)
    assert read_head(held, "index").through == 30
    assert verify_checkpoint(held, JournalStream.INDEX, KEY.public_key()) == 20
    publish(grown)  # nothing else is new
    follow(grown, held)
    assert verify_checkpoint(held, JournalStream.INDEX, KEY.public_key()) == 30


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize(
    ("signed", "key", "values"),
    [
        ((), KEY, ["index", "memory://", "--public-key"]),
        ((JournalStream.INDEX, JournalStream.OBSERVED), KEY, ["content", "memory://", "--public-key"]),
        (SIGNED, OTHER, ["memory://"]),
    ],
)
def test_content_not_signed_with_the_key_is_rejected(
    signed: Sequence[JournalStream], key: Ed25519PrivateKey, values: list[str], *, is_held: bool
) -> None:
    source, held = source_of(signed=signed, key=key), open_storage("memory:///")
    if is_held:
        follow(source, held, key=None)
    before = plain_files(held)
    with pytest.raises(RefusedSourceError, match=naming(*values)):
        follow(source, held)
    assert mirror_status(held).state == "refused"
    assert plain_files(held) == before
    publish(source)
    follow(source, held)
    assert mirror_status(held).state == "following"


def test_other_chain_next_to_the_checkpoints_is_rejected() -> None:
    source, forged = source_of(), source_of("forged", signed=())
    for stream in SIGNED:
        forged.put(checkpoint_path(stream), source.get(checkpoint_path(stream)))
    publish_heads(forged)
    with pytest.raises(RefusedSourceError, match=naming("index", 3)):
        follow(forged, open_storage("memory:///"))
    shorter = source_of(through=20, signed=())
    shorter.put(checkpoint_path("index"), source.get(checkpoint_path("index")))
    publish_heads(shorter)
    with pytest.raises(RefusedSourceError, match=naming("index", 3)):
        follow(shorter, open_storage("memory:///"))


def test_stream_reset_to_empty_is_rejected() -> None:
    source, held = source_of(), open_storage("memory:///")
    follow(source, held)
    head = read_head(source, "index")
    write_head(source, replace(head, generation=2, number=0, digest=None, start=30, end=30))
    source.delete(checkpoint_path("index"))
    publish_heads(source)
    with pytest.raises(RefusedSourceError, match=naming("index", "memory://")):
        follow(source, held)


def test_missing_held_stream_is_rejected() -> None:
    source, held = source_of(), open_storage("memory:///")
    follow(source, held)
    published = orjson.loads(source.get(PUBLISHED))
    del published["journal"]["content"]
    source.put(PUBLISHED, orjson.dumps(published))
    with pytest.raises(RefusedSourceError, match=naming("content")):
        follow(source, held)


@pytest.mark.parametrize(
    ("start", "through", "values"),
    [
        (0, 1_200, ["index", "memory://"]),
        (0, 1_000, ["index", "memory://"]),
        (0, 29, ["index", "memory://", 29, 30]),
        (0, 30, None),
        (1_000, 1_200, None),
    ],
)
def test_open_segment_does_not_replace_signed_segments(start: int, through: int, values: list[object] | None) -> None:
    source, held = source_of(), open_storage("memory:///")
    made_up = list(numbered(JournalStream.INDEX, [simple_record(start + 1, "unknown", "made-up")]))
    file = write_segment(source, JournalStream.INDEX, 1, SerialRange(start, through), made_up, prefix=OPEN_PREFIX)
    opened = OpenSegment(file.serials, file.name, file.records, file.content_bytes, file.sha256)
    write_head(source, Head("index", 1, start, start, 0, None, open=opened))
    source.delete(checkpoint_path("index"))
    publish_heads(source)
    if values is None:
        follow(source, held)
        assert read_head(held, "index").through == through
        return
    with pytest.raises(RefusedSourceError, match=naming(*values)):
        follow(source, held)
    assert not plain_files(held)


def test_older_checkpoint_does_not_replace_the_held_one() -> None:
    source, older, held = source_of(), source_of(through=20), open_storage("memory:///")
    follow(source, held)
    for stream in SIGNED:
        source.put(checkpoint_path(stream), older.get(checkpoint_path(stream)))
    publish_heads(source)
    with pytest.raises(BehindError, match=naming(20, 30)):
        follow(source, held)
    assert verify_checkpoint(held, JournalStream.INDEX, KEY.public_key()) == 30


def test_pruning_is_followed_after_it_is_signed() -> None:
    source, held = source_of(), open_storage("memory:///")
    follow(source, held)
    for stream in SIGNED:
        write_head(source, replace(read_head(source, stream), pruned=Pruned(2, 20)))
    publish_heads(source)
    with pytest.raises(RefusedSourceError, match=naming("index", 20)):
        follow(source, held)
    publish(source)
    follow(source, held)
    assert read_head(held, "index").pruned == Pruned(2, 20)
    for stream in SIGNED:
        assert verify_checkpoint(held, stream, KEY.public_key()) == 30


def test_takedown_is_followed_after_it_is_signed() -> None:
    source, held = source_of(), open_storage("memory:///")
    follow(source, held)
    taken_down(source, 2)
    publish_heads(source)
    with pytest.raises(RefusedSourceError, match=naming("index")):
        follow(source, held)
    publish(source)
    follow(source, held)
    assert verify_checkpoint(held, JournalStream.INDEX, KEY.public_key()) == 30
    index = [content for path, content in plain_files(held).items() if "/index/" in path and "10-20" in path]
    assert index
    assert b"secret" not in b"".join(index)


def test_source_without_a_journal_is_not_trusted() -> None:
    source = open_storage("memory:///")
    require_owner(source, "https://index.example.org/simple/")
    publish_heads(source)
    with pytest.raises(RefusedSourceError, match=naming("--public-key")):
        follow(source, open_storage("memory:///"))


@pytest.mark.parametrize("checkpoint", ["x", [], {"end": "1" * 20_000}, {"signature": 5}, {"end": 10**30}, {}])
def test_invalid_checkpoint_is_rejected(checkpoint: object) -> None:
    source = source_of()
    published = orjson.loads(source.get(PUBLISHED))
    published["journal"]["index"]["checkpoint"] = None
    content = orjson.dumps(published).replace(b'"checkpoint":null', b'"checkpoint":' + json.dumps(checkpoint).encode())
    source.put(PUBLISHED, content)
    with pytest.raises(RefusedSourceError):
        follow(source, open_storage("memory:///"))
