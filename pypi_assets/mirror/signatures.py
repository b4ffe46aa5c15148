"""Checks the signatures that a mirror with a trusted key requires on the chains of the source's journal.

A checkpoint covers the segments up to its own segment. Later segments are accepted unsigned, until they are signed.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import orjson

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.journal.segment_files import Head, SegmentManifest, read_head
from pypi_assets.journal.signing import JournalCheckpointError, checkpoint_path, require_signed
from pypi_assets.mirror.chains import StreamPlan, held_manifest
from pypi_assets.mirror.sources import BehindError, RefusedSourceError
from pypi_assets.mirror.sync_plan import PublishedState
from pypi_assets.storage.store import ObjectNotFoundError, Storage

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def require_signatures(
    name: str, wanted: PublishedState, plans: Iterable[StreamPlan], storage: Storage, key: "Ed25519PublicKey"
) -> None:
    """Raise RefusedSourceError if a stream that the source `name` publishes is not signed by the key.

    `plans` has the new parts of the streams, and `storage` the local parts. A stream without a complete segment cannot
    be signed, and is accepted. It is rejected if the mirror already has segments of it, or if it ends before serials
    that other streams have signed. A source without any signed stream is rejected. Raises BehindError if the key has
    signed more of the local chain.
    """
    held_heads = {stream.value: read_head(storage, stream.value) for stream in JournalStream}
    for stream, held in held_heads.items():
        if held is not None and held.number and stream not in wanted.heads:
            raise RefusedSourceError(
                f"{name} does not publish the stream {stream}, which this mirror has, and --public-key requires all"
                " of them"
            )
    new = {(plan.head.stream, manifest.number): manifest for plan in plans for manifest in plan.manifests}
    signed_until = 0
    for stream, head in wanted.heads.items():
        content = wanted.checkpoints.get(stream)
        if content is None:
            held = held_heads[stream]
            if head.number or (held is not None and held.number):
                raise RefusedSourceError(
                    f"the stream {stream} of {name} is not signed, which --public-key requires: its operator must run"
                    " `pypi-assets journal sign`"
                )
            continue
        manifest_of = partial(_manifest, storage, new, stream, head.generation)
        try:
            end = require_signed(content, f"the checkpoint of {name}", JournalStream(stream), head, manifest_of, key)
        except JournalCheckpointError as error:
            raise RefusedSourceError(f"{name} is not trusted by the key: {error}") from error
        signed_until = max(signed_until, end)
        _require_signed_pruning(name, head, content)
        if end < (until := _held_end(storage, head, manifest_of, key)):
            raise BehindError(
                f"the stream {stream} of {name} is signed up to serial {end}, and the local copy up to {until}: it was"
                " set back, or is a mirror that lags"
            )
    if not wanted.checkpoints:
        raise RefusedSourceError(f"{name} publishes no signed journal, which --public-key requires")
    for stream, head in wanted.heads.items():
        if stream not in wanted.checkpoints and head.open is not None and head.through < signed_until:
            raise RefusedSourceError(
                f"the stream {stream} of {name} is not signed and ends at serial {head.through}, but others are signed"
                f" up to serial {signed_until}"
            )


def _require_signed_pruning(name: str, head: Head, content: bytes) -> None:
    """Raise RefusedSourceError if more of a stream was pruned than when it was signed.

    The mirror would delete the pruned segments too.
    """
    pruned = orjson.loads(content).get("pruned") or {"number": 0}
    if head.pruned is not None and head.pruned.number > pruned["number"]:
        raise RefusedSourceError(
            f"{name} is not trusted by the key: the stream {head.stream} was pruned up to serial {head.pruned.end}"
            " since it was signed. It must be signed again (pypi-assets journal sign)"
        )


def _held_end(
    storage: Storage, head: Head, manifest_of: Callable[[int, int], SegmentManifest], key: "Ed25519PublicKey"
) -> int:
    """Return the serial up to which the local checkpoint covers the chain of `head`, or 0 if it does not cover it."""
    path = checkpoint_path(head.stream)
    try:
        return require_signed(storage.get(path), storage.uri(path), JournalStream(head.stream), head, manifest_of, key)
    except (ObjectNotFoundError, JournalCheckpointError):
        return 0


def _manifest(
    storage: Storage,
    new: dict[tuple[str, int], SegmentManifest],
    stream: str,
    new_generation: int,
    generation: int,
    number: int,
) -> SegmentManifest:
    found = new.get((stream, number)) if generation == new_generation else None
    found = found or held_manifest(storage, stream, generation, number)
    if found is None:
        raise JournalCheckpointError(f"the signed segment {number} of the stream {stream} is not in its chain")
    return found


def put_checkpoints(storage: Storage, wanted: PublishedState) -> None:
    """Write the checkpoints to the paths that `journal verify --public-key` reads."""
    for stream, content in wanted.checkpoints.items():
        path = checkpoint_path(stream)
        try:
            is_there = storage.get(path) == content
        except ObjectNotFoundError:
            is_there = False
        if not is_there:
            storage.put(path, content)
