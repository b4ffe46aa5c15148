"""The journal in `published.json`: the head of each stream, and its checkpoint where it is signed."""

import orjson

from pypi_assets.catalog.reports.journal_format import Stream
from pypi_assets.journal.segment_files import read_head
from pypi_assets.journal.signing import checkpoint_path
from pypi_assets.storage.published import publish_part
from pypi_assets.storage.store import NotFoundError, Storage

PART = "journal"
CHECKPOINT = "checkpoint"
"""The field of a stream that has its checkpoint."""
MOST_CHECKPOINT_BYTES = 16 * 1024


def publish_heads(storage: Storage) -> None:
    """Names the present heads and checkpoints in `published.json`. Call it after each publication."""

    def compute() -> object:
        heads = {stream.value: read_head(storage, stream) for stream in Stream}
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
    except (NotFoundError, orjson.JSONDecodeError):
        return {}
    return {CHECKPOINT: found} if isinstance(found, dict) and len(content) <= MOST_CHECKPOINT_BYTES else {}
