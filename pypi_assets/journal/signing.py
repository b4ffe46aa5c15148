"""Signs checkpoints of the journal, and writes the heads of its streams into `published.json`.

A checkpoint is the head of a chain with an Ed25519 signature. It lets others trust their copy of a journal.
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
"""Precedes the signed data, so that a signature made with this key for another purpose is not valid here."""


class JournalCheckpointError(ExpectedError):
    """A checkpoint cannot be written, or does not match the journal. The message has the reason."""


def checkpoint_path(stream: str) -> str:
    """Return the path of a stream's checkpoint."""
    return f"{JOURNAL}/{stream}/checkpoint.json"


def load_private_key(path: Path) -> "Ed25519PrivateKey":
    """Return the key in a PEM file from `openssl genpkey -algorithm ed25519`. Raises JournalCheckpointError."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise JournalCheckpointError(_NO_LIBRARY) from error
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise JournalCheckpointError(f"{path} is not a private key in PEM without a password: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise JournalCheckpointError(f"{path} is not an Ed25519 key: make one by `openssl genpkey -algorithm ed25519`")
    return key


def load_public_key(path: Path) -> "Ed25519PublicKey":
    """Return the key in a PEM file from `openssl pkey -pubout`. Raises JournalCheckpointError."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError as error:
        raise JournalCheckpointError(_NO_LIBRARY) from error
    try:
        key = load_pem_public_key(path.read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise JournalCheckpointError(f"{path} is not a public key in PEM: {error}") from error
    if not isinstance(key, Ed25519PublicKey):
        raise JournalCheckpointError(f"{path} is not an Ed25519 key")
    return key


def sign_checkpoint(storage: Storage, stream: JournalStream, key: "Ed25519PrivateKey") -> Head:
    """Sign the last manifest of a chain, replace the checkpoint and return the head.

    Raises JournalCheckpointError if the stream has no manifest yet.
    """
    head = read_head(storage, stream.value)
    if head is None or head.digest is None:
        raise JournalCheckpointError(f"the stream {stream.value} has no complete segment yet: there is nothing to sign")
    fields = _signed_fields(head)
    signature = key.sign(_message(fields)).hex()
    content = orjson.dumps(fields | {"signature": signature}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    storage.put(checkpoint_path(stream.value), content)
    return head


def verify_checkpoint(storage: Storage, stream: JournalStream, key: "Ed25519PublicKey") -> int:
    """Return the serial up to which the chain of a stream is the signed chain, assuming that the chain itself is valid.

    Raises JournalCheckpointError.
    """
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
                f"the signed segment {number} of the stream {stream.value} is missing: {error}"
            ) from error

    return require_signed(content, storage.uri(path), stream, read_head(storage, stream.value), manifest_of, key)


def signed_serial(storage: Storage, head: Head) -> int | None:
    """Return the serial up to which the checkpoint claims to cover the chain that ends at `head`.

    The signature is not checked. Returns None if the stream was never signed. Returns 0 if the checkpoint is no longer
    valid for this chain, because the stream was restarted or had a takedown, and must be signed again.
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
    """Return the serial up to which the checkpoint in `content` covers the chain that ends at `head`.

    Errors use `name` for the checkpoint. `manifest_of` returns the chain's manifest of a generation and number, or
    raises JournalCheckpointError. Raises JournalCheckpointError if the key did not sign the checkpoint, or if it
    belongs to another chain.
    """
    from cryptography.exceptions import InvalidSignature

    try:
        fields: dict[str, Any] = orjson.loads(content)
        signature = bytes.fromhex(fields.pop("signature"))
        generation, number, end = (number_in(fields[name]) for name in ("generation", "number", "end"))
        message = _message(fields)
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise JournalCheckpointError(f"{name} is not a checkpoint: {error!r}") from error
    try:
        key.verify(signature, message)
    except InvalidSignature as error:
        raise JournalCheckpointError(f"{name} is not signed by this key, or was changed later") from error
    if (fields.get("format"), fields.get("stream")) != (FORMAT, stream.value):
        raise JournalCheckpointError(f"{name} is a checkpoint of another stream or format")
    manifest = manifest_of(generation, number)
    if (manifest.digest, manifest.serials.end) != (fields.get("digest"), end):
        raise JournalCheckpointError(f"segment {number} of the stream {stream.value} is not the one that was signed")
    if head is None or head.generation != generation:
        now = "there is no head" if head is None else f"it is at generation {head.generation}"
        raise JournalCheckpointError(
            f"generation {generation} of the stream {stream.value} was signed, and {now}: after a restart, the stream"
            " must be signed again (pypi-assets journal sign)"
        )
    if head.number < number:
        raise JournalCheckpointError(
            f"the stream {stream.value} was signed up to segment {number}, at serial {end}, but its head names"
            f" {head.number}: this copy was set back, or is another chain"
        )
    if _takedowns(head) != fields.get("takedowns"):
        raise JournalCheckpointError(
            f"the takedowns of the stream {stream.value} are not the signed ones: sign it again after each takedown"
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
"""The field of a stream that holds its checkpoint."""
MOST_CHECKPOINT_BYTES = 16 * 1024


def publish_heads(storage: Storage) -> None:
    """Write the current heads and checkpoints into `published.json`. Call it after each publication."""

    def compute() -> object:
        heads = {stream.value: read_head(storage, stream) for stream in JournalStream}
        return {
            stream: orjson.loads(head.encode()) | _signed(storage, stream)
            for stream, head in heads.items()
            if head is not None
        }

    publish_part(storage, PART, compute)


def _signed(storage: Storage, stream: str) -> dict[str, object]:
    """Return the checkpoint of a stream, unless mirrors would reject it, since they would then reject the rest too."""
    try:
        content = storage.get(checkpoint_path(stream))
        found = orjson.loads(content)
    except (ObjectNotFoundError, orjson.JSONDecodeError):
        return {}
    return {CHECKPOINT: found} if isinstance(found, dict) and len(content) <= MOST_CHECKPOINT_BYTES else {}
