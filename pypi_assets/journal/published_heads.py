"""The journal in `published.json`: the head of each stream."""

import orjson

from pypi_assets.catalog.reports.journal_format import Stream
from pypi_assets.journal.segment_files import read_head
from pypi_assets.storage.published import publish_part
from pypi_assets.storage.store import Storage

PART = "journal"


def publish_heads(storage: Storage) -> None:
    """Names the present heads in `published.json`. Call it after each publication."""

    def compute() -> object:
        heads = {stream.value: read_head(storage, stream) for stream in Stream}
        return {stream: orjson.loads(head.encode()) for stream, head in heads.items() if head is not None}

    publish_part(storage, PART, compute)
