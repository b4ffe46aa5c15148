"""Signs checkpoints of the journal, and writes the heads of its streams into `published.json`.

A checkpoint is the head of a chain with an Ed25519 signature. By it, others trust a journal that they copy.
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.errors import ExpectedError
from pypi_assets.journal.segment_files import (
    JOURNAL,
    Head,
    JournalDamagedError,
    SegmentManifest,
    number_in,
    read_head,
    read_manifest,
)
from pypi_assets.storage.published import publish_part
from pypi_assets.storage.store import ObjectNotFoundError, Storage

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


FORMAT = 1
_NO_LIBRARY = "signing needs the library cryptography: install pypi-assets[journal]"
_PURPOSE = b"checkpoint of a journal\n"
"""Comes before what is signed, so that no signature of the key for another purpose counts."""


class JournalCheckpointError(ExpectedError):
    """A checkpoint cannot be written, or does not vouch for the journal; the text has why."""


def checkpoint_path(stream: str) -> str:
    """Where the checkpoint of a stream is."""
    return f"{JOURNAL}/{stream}/checkpoint.json"


def load_private_key(path: Path) -> "Ed25519PrivateKey":
    """The key in a PEM file, as `openssl genpkey -algorithm ed25519` writes it. Raises JournalCheckpointError."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise JournalCheckpointError(_NO_LIBRARY) from error
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise JournalCheckpointError(f"{path} is no private key without a password, in PEM: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise JournalCheckpointError(f"{path} is no Ed25519 key: `openssl genpkey -algorithm ed25519` makes one")
    return key


def load_public_key(path: Path) -> "Ed25519PublicKey":
    """The key in a PEM file, as `openssl pkey -pubout` writes it. Raises JournalCheckpointError."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError as error:
        raise JournalCheckpointError(_NO_LIBRARY) from error
    try:
        key = load_pem_public_key(path.read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise JournalCheckpointError(f"{path} is no public key in PEM: {error}") from error
    if not isinstance(key, Ed25519PublicKey):
        raise JournalCheckpointError(f"{path} is no Ed25519 key")
    return key


def sign_checkpoint(storage: Storage, stream: JournalStream, key: "Ed25519PrivateKey") -> Head:
    """Signs the last manifest of a chain, and replaces the checkpoint. Returns the head. Raises JournalCheckpointError
    where the stream has no manifest yet."""
    head = read_head(storage, stream.value)
    if head is None or head.digest is None:
        raise JournalCheckpointError(f"the stream {stream.value} has no whole segment yet: there is nothing to sign")
    fields = _signed_fields(head)
    signature = key.sign(_message(fields)).hex()
    content = orjson.dumps(fields | {"signature": signature}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    storage.put(checkpoint_path(stream.value), content)
    return head


def verify_checkpoint(storage: Storage, stream: JournalStream, key: "Ed25519PublicKey") -> int:
    """The serial up to which the chain of a stream is the one that was signed, where it is sound. Raises
    JournalCheckpointError."""
    path = checkpoint_path(stream.value)
    try:
        content = storage.get(path)
    except ObjectNotFoundError as error:
        raise JournalCheckpointError(f"the stream {stream.value} is not signed: {error}") from error

    def manifest_of(generation: int, number: int) -> SegmentManifest:
        try:
            return read_manifest(storage, stream.value, generation, number)
        except JournalDamagedError as error:
            raise JournalCheckpointError(
                f"the signed segment {number} of the stream {stream.value} is gone: {error}"
            ) from error

    return require_signed(content, storage.uri(path), stream, read_head(storage, stream.value), manifest_of, key)


def signed_serial(storage: Storage, head: Head) -> int | None:
    """Return the serial up to which the checkpoint of the chain that ends at `head` claims to vouch for it.

    The signature is not checked. None: the stream was never signed. 0: the checkpoint is not valid for this chain any
    more, since the stream began again or had a takedown, so it has to be signed again.
    """
    try:
        fields = orjson.loads(storage.get(checkpoint_path(head.stream)))
        is_current = (fields["generation"], fields["takedowns"]) == (head.generation, _takedowns(head))
        return number_in(fields["end"]) if is_current else 0
    except ObjectNotFoundError:
        return None
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return 0


def require_signed(
    content: bytes,
    name: str,
    stream: JournalStream,
    head: Head | None,
    manifest_of: Callable[[int, int], SegmentManifest],
    key: "Ed25519PublicKey",
) -> int:
    """The serial up to which the checkpoint in `content` vouches for the chain that ends at `head`.

    `name` is what errors call the checkpoint, and `manifest_of` has the manifest of a generation and number of that
    chain, or raises JournalCheckpointError. Raises JournalCheckpointError where the key did not sign it, or it is of
    another chain.
    """
    from cryptography.exceptions import InvalidSignature

    try:
        fields: dict[str, Any] = orjson.loads(content)
        signature = bytes.fromhex(fields.pop("signature"))
        generation, number, end = (number_in(fields[name]) for name in ("generation", "number", "end"))
        message = _message(fields)
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise JournalCheckpointError(f"{name} is no checkpoint: {error!r}") from error
    try:
        key.verify(signature, message)
    except InvalidSignature as error:
        raise JournalCheckpointError(f"{name} is not signed by this key, or was changed since") from error
    if (fields.get("format"), fields.get("stream")) != (FORMAT, stream.value):
        raise JournalCheckpointError(f"{name} is a checkpoint of another stream or format")
    manifest = manifest_of(generation, number)
    if (manifest.digest, manifest.serials.end) != (fields.get("digest"), end):
        raise JournalCheckpointError(f"segment {number} of the stream {stream.value} is not the one that was signed")
    if head is None or head.generation != generation:
        now = "there is no head" if head is None else f"it is at generation {head.generation}"
        raise JournalCheckpointError(
            f"generation {generation} of the stream {stream.value} was signed, and {now}: after a stream was begun"
            " again, it has to be signed again (pypi-assets journal sign)"
        )
    if head.number < number:
        raise JournalCheckpointError(
            f"the stream {stream.value} was signed up to segment {number}, at serial {end}, and its head names"
            f" {head.number}: what is here was set back, or is another chain"
        )
    if _takedowns(head) != fields.get("takedowns"):
        raise JournalCheckpointError(
            f"the takedowns of the stream {stream.value} are not those that were signed: sign it again after each"
            " (pypi-assets journal sign)"
        )
    return end


def _signed_fields(head: Head) -> dict[str, Any]:
    names = ("stream", "generation", "start", "end", "number", "digest")
    fields = {"format": FORMAT} | {name: getattr(head, name) for name in names} | {"takedowns": _takedowns(head)}
    return fields if head.pruned is None else fields | {"pruned": asdict(head.pruned)}


def _takedowns(head: Head) -> dict[str, Any] | None:
    return None if head.takedowns is None else asdict(head.takedowns)


def _message(fields: dict[str, Any]) -> bytes:
    return _PURPOSE + orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)


PART = "journal"
CHECKPOINT = "checkpoint"
"""The field of a stream that has its checkpoint."""
MOST_CHECKPOINT_BYTES = 16 * 1024


def publish_heads(storage: Storage) -> None:
    """Names the present heads and checkpoints in `published.json`. Call it after each publication."""

    def compute() -> object:
        heads = {stream.value: read_head(storage, stream) for stream in JournalStream}
        return {
            stream: orjson.loads(head.encode()) | _signed(storage, stream)
            for stream, head in heads.items()
            if head is not None
        }

    publish_part(storage, PART, compute)


def _signed(storage: Storage, stream: str) -> dict[str, object]:
    """The checkpoint of a stream. What mirrors would not read is left out: they would refuse all the rest with it."""
    try:
        content = storage.get(checkpoint_path(stream))
        found = orjson.loads(content)
    except (ObjectNotFoundError, orjson.JSONDecodeError):
        return {}
    return {CHECKPOINT: found} if isinstance(found, dict) and len(content) <= MOST_CHECKPOINT_BYTES else {}
