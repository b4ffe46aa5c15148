"""Which index a storage root belongs to: the object `index.json` in it names its URL, and a root belongs to one index.

The catalog names its index as well. This keeps two catalogs, each with an index of its own, from one root. The object
`mirror.json` marks a root that follows another one: nothing else writes there.
"""

import json

from pypi_assets.storage.store import NotFoundError, Storage, StorageError

OWNER = "index.json"
MIRROR = "mirror.json"


def require_owner(storage: Storage, index_url: str) -> None:
    """Makes the root that of the index, where it is no index's yet; `index_url` has no credentials.

    Raises StorageError where it is that of another index.
    """
    try:
        owner = read_owner(storage)
    except NotFoundError:
        storage.put(OWNER, json.dumps({"index_url": index_url}).encode())
        return
    if owner != index_url:
        raise StorageError(
            f"the storage {storage.url} belongs to the index {owner}, not to {index_url}: give this index a storage of"
            f" its own, or set PYPI_ASSETS_INDEX_URL back; where nothing else is in it, delete {OWNER}"
        )


def read_owner(storage: Storage) -> str:
    """The URL of the index that the root belongs to. Raises NotFoundError, and StorageError where it is damaged."""
    try:
        owner = json.loads(storage.get(OWNER))["index_url"]
    except (ValueError, KeyError, TypeError):
        owner = None
    if not isinstance(owner, str):
        raise StorageError(f"{storage.uri(OWNER)} is damaged: it names no index; write {{'index_url': ...}}")
    return owner


def require_no_mirror(storage: Storage) -> None:
    """Raises StorageError where the root is a mirror's."""
    if storage.exists(MIRROR):
        raise StorageError(
            f"the storage {storage.url} is a mirror's, which `pypi-assets mirror run` alone writes: use a home and a"
            " storage of its own for what is to crawl and publish"
        )
