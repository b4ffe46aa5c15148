"""What a mirror that trusts a key requires: that the key's owner signed the chains of the source's journal.

A checkpoint vouches for the segments up to its own. What follows them is taken over as it comes, until it is signed.
"""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from pypi_assets.catalog.reports.journal_format import Stream
from pypi_assets.journal.segment_files import Manifest, read_head
from pypi_assets.journal.signing import CheckpointError, checkpoint_path, require_signed
from pypi_assets.mirror.chains import StreamPlan, held_manifest
from pypi_assets.mirror.errors import RefusedSourceError
from pypi_assets.mirror.wanted import PublishedState
from pypi_assets.storage.store import NotFoundError, Storage

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def require_signatures(
    name: str, wanted: PublishedState, plans: Iterable[StreamPlan], storage: Storage, key: "Ed25519PublicKey"
) -> None:
    """Raises RefusedSourceError where a stream that the source `name` publishes is not signed by the key.

    `plans` have what is new of the streams, and `storage` what is held. A stream that has no whole segment yet cannot
    be signed; but one that had some is refused then, and so is a source without any signed stream.
    """
    new = {(plan.head.stream, one.number): one for plan in plans for one in plan.manifests}
    for stream, head in wanted.heads.items():
        content = wanted.checkpoints.get(stream)
        if content is None:
            held = read_head(storage, stream)
            if head.number or (held is not None and held.number):
                raise RefusedSourceError(
                    f"the stream {stream} of {name} is not signed, which --public-key requires: its operator runs"
                    " `pypi-assets journal sign`"
                )
            continue
        manifest_of = partial(_manifest, storage, new, stream, head.generation)
        try:
            require_signed(content, f"the checkpoint of {name}", Stream(stream), head, manifest_of, key)
        except CheckpointError as error:
            raise RefusedSourceError(f"{name} is not trusted by the key: {error}") from error
    if not wanted.checkpoints:
        raise RefusedSourceError(f"{name} publishes no signed journal, which --public-key requires")


def _manifest(
    storage: Storage,
    new: dict[tuple[str, int], Manifest],
    stream: str,
    new_generation: int,
    generation: int,
    number: int,
) -> Manifest:
    found = new.get((stream, number)) if generation == new_generation else None
    found = found or held_manifest(storage, stream, generation, number)
    if found is None:
        raise CheckpointError(f"segment {number} of the stream {stream}, which was signed, is not in its chain")
    return found


def put_checkpoints(storage: Storage, wanted: PublishedState) -> None:
    """Puts the checkpoints where `journal verify --public-key` looks for them."""
    for stream, content in wanted.checkpoints.items():
        path = checkpoint_path(stream)
        try:
            is_there = storage.get(path) == content
        except NotFoundError:
            is_there = False
        if not is_there:
            storage.put(path, content)
