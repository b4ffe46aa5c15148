"""A signed checkpoint covers one chain up to a serial, and no other chain."""

from pathlib import Path

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.journal_format import JournalStream, numbered
from pypi_assets.journal.segment_files import (
    Head,
    OpenSegment,
    SegmentManifest,
    head_path,
    manifest_path,
    write_head,
    write_manifest,
    write_segment,
)
from pypi_assets.journal.signing import (
    JournalCheckpointError,
    checkpoint_path,
    load_private_key,
    load_public_key,
    publish_heads,
    sign_checkpoint,
    verify_checkpoint,
)
from pypi_assets.journal.verification import verify_stream
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.journal.written import simple_record, write_streams
from pypi_assets_tests.naming import naming


def test_existing_heads_are_named() -> None:
    storage = open_storage("memory:///")
    publish_heads(storage)
    assert orjson.loads(storage.get(PUBLISHED))["journal"] == {}
    head = Head("index", 1, 0, 1000, 1, "f" * 64, OpenSegment(SerialRange(1000, 1010), "open-x", 3, 30, "e" * 64))
    write_head(storage, head)
    publish_heads(storage)
    assert orjson.loads(storage.get(PUBLISHED))["journal"] == {"index": orjson.loads(head.encode())}


def test_checkpoint_is_named_with_its_head() -> None:
    storage = open_storage("memory:///")
    head = Head("index", 1, 0, 1000, 1, "f" * 64)
    write_head(storage, head)
    sign_checkpoint(storage, JournalStream.INDEX, Ed25519PrivateKey.generate())
    checkpoint = orjson.loads(storage.get(checkpoint_path("index")))
    publish_heads(storage)
    named = orjson.loads(storage.get(PUBLISHED))["journal"]["index"]
    assert named == orjson.loads(head.encode()) | {"checkpoint": checkpoint}
    for damaged in (b"no JSON", b"null", b"[]", b'"text"', b'{"end": "%s"}' % (b"1" * 20_000)):
        storage.put(checkpoint_path("index"), damaged)
        publish_heads(storage)
        assert orjson.loads(storage.get(PUBLISHED))["journal"] == {"index": orjson.loads(head.encode())}


KEY = Ed25519PrivateKey.generate()


def write(storage: Storage, project: str, through: int) -> None:
    records = [simple_record(serial, "unknown", project) for serial in range(1, through + 1)]
    write_streams(storage, {JournalStream.INDEX: records}, through, cuts=range(10, through, 10))


def test_chain_is_trusted_up_to_its_checkpoint(storage: Storage) -> None:
    write(storage, "demo", 20)
    assert sign_checkpoint(storage, JournalStream.INDEX, KEY).end == 20
    write(storage, "demo", 30)  # the chain grows
    assert verify_checkpoint(storage, JournalStream.INDEX, KEY.public_key()) == 20


def test_other_chain_is_rejected(storage: Storage) -> None:
    write(storage, "demo", 20)
    sign_checkpoint(storage, JournalStream.INDEX, KEY)
    write(storage, "forged", 20)
    with pytest.raises(JournalCheckpointError, match=naming("index", 2)):
        verify_checkpoint(storage, JournalStream.INDEX, KEY.public_key())
    storage.delete(manifest_path("index", 1, 2))
    with pytest.raises(JournalCheckpointError, match=naming("index", 2)):
        verify_checkpoint(storage, JournalStream.INDEX, KEY.public_key())


def test_chain_without_the_signed_manifest_is_rejected(storage: Storage) -> None:
    """The signed manifests are next to the chain."""
    write(storage, "demo", 20)
    sign_checkpoint(storage, JournalStream.INDEX, KEY)
    forged = [simple_record(serial, "unknown", "forged") for serial in range(1, 11)]
    for generation, values in ((1, ("index", 2, 20)), (2, ("index", 1, 2))):
        file = write_segment(
            storage, JournalStream.INDEX, generation, SerialRange(0, 10), numbered(JournalStream.INDEX, forged)
        )
        manifest = SegmentManifest.of(file, 1, None)
        write_manifest(storage, manifest)
        write_head(storage, Head("index", generation, 0, 10, 1, manifest.digest))
        assert verify_stream(storage, JournalStream.INDEX).is_sound
        with pytest.raises(JournalCheckpointError, match=naming(*values)):
            verify_checkpoint(storage, JournalStream.INDEX, KEY.public_key())
    storage.delete(head_path("index"))
    with pytest.raises(JournalCheckpointError, match=naming("index", 1)):
        verify_checkpoint(storage, JournalStream.INDEX, KEY.public_key())


def test_other_key_or_changed_checkpoint_is_rejected(storage: Storage) -> None:
    write(storage, "demo", 20)
    sign_checkpoint(storage, JournalStream.INDEX, KEY)
    with pytest.raises(JournalCheckpointError, match=naming("index/checkpoint.json")):
        verify_checkpoint(storage, JournalStream.INDEX, Ed25519PrivateKey.generate().public_key())
    path = checkpoint_path("index")
    fields = orjson.loads(storage.get(path))
    for name, value in (("end", 10), ("number", 1), ("digest", "0" * 64), ("generation", 2), ("stream", "content")):
        storage.put(path, orjson.dumps(fields | {name: value}))
        with pytest.raises(JournalCheckpointError, match=naming("index/checkpoint.json")):
            verify_checkpoint(storage, JournalStream.INDEX, KEY.public_key())
    storage.put(checkpoint_path("content"), orjson.dumps(fields))
    with pytest.raises(JournalCheckpointError, match=naming("content/checkpoint.json")):
        verify_checkpoint(storage, JournalStream.CONTENT, KEY.public_key())
    deep = orjson.dumps(fields | {"start": "x"}).replace(b'"x"', b"[" * 300 + b"]" * 300)
    for content in (b"no JSON", b"{}", b"null", b'"text"', deep, orjson.dumps(fields | {"signature": "xyz"})):
        storage.put(path, content)
        with pytest.raises(JournalCheckpointError, match=naming("index/checkpoint.json")):
            verify_checkpoint(storage, JournalStream.INDEX, KEY.public_key())


def test_missing_checkpoint_is_named(storage: Storage) -> None:
    with pytest.raises(JournalCheckpointError, match=naming("index")):
        sign_checkpoint(storage, JournalStream.INDEX, KEY)
    with pytest.raises(JournalCheckpointError, match=naming("index")):
        verify_checkpoint(storage, JournalStream.INDEX, KEY.public_key())


def test_keys_are_read_from_pem(tmp_path: Path) -> None:
    private, public, other = tmp_path / "key.pem", tmp_path / "public.pem", tmp_path / "other.pem"
    plain = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    private.write_bytes(KEY.private_bytes(*plain))
    public.write_bytes(KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    signature = load_private_key(private).sign(b"message")
    load_public_key(public).verify(signature, b"message")
    other.write_bytes(X25519PrivateKey.generate().private_bytes(*plain))
    with pytest.raises(JournalCheckpointError, match=naming("other.pem")):
        load_private_key(other)
    with pytest.raises(JournalCheckpointError, match=naming("public.pem")):
        load_private_key(public)
    with pytest.raises(JournalCheckpointError, match=naming("missing.pem")):
        load_public_key(tmp_path / "missing.pem")
