"""What a storage root belongs to: the object `index.json` in it names the URL of one index, and one catalog of it.

The catalog names its index as well. This keeps two catalogs from one root, also two of the same index: each would write
under names that the other has given. The object `mirror.json` marks a root that follows another one: nothing else
writes there.
"""

import json

from pypi_assets.storage.store import NotFoundError, Storage, StorageError
from pypi_assets.storage.stored_json import ATTEMPTS, read_json

OWNER = "index.json"
MIRROR = "mirror.json"
CATALOG = "catalog"
"""The field of the owner that distinguishes its catalog from others."""


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


def require_catalog(storage: Storage, catalog: str | None) -> None:
    """Makes the root, which is that of an index, that of one catalog, where it is no catalog's yet.

    `catalog` distinguishes it from others; None: it is too new for that. Raises StorageError where the root is that of
    another catalog.
    """
    owner = _read(storage)
    known = owner.get(CATALOG)
    if known is None and catalog is not None:
        storage.put(OWNER, json.dumps(owner | {CATALOG: catalog}).encode())
    elif known != catalog:
        raise StorageError(
            f"the storage {storage.url} belongs to another catalog of the same index: give this one a storage of its"
            " own, also where the other catalog was lost; or set PYPI_ASSETS_HOME or PYPI_ASSETS_DATABASE_URL back"
        )


def read_owner(storage: Storage) -> str:
    """The URL of the index that the root belongs to. Raises NotFoundError, and StorageError where it is damaged."""
    return str(_read(storage)["index_url"])


def _read(storage: Storage) -> dict[str, object]:
    try:
        owner: dict[str, object] = read_json(storage, OWNER, _names_index)
    except ValueError as error:
        raise StorageError(
            f"{storage.uri(OWNER)} was read {ATTEMPTS} times and names no index ({error}). If the store answers as it"
            ' should, the object is damaged: restore it from a back-up. It is {"index_url": ..., "catalog": ...}'
        ) from None
    return owner


def _names_index(owner: object) -> bool:
    return isinstance(owner, dict) and isinstance(owner.get("index_url"), str)


def require_no_mirror(storage: Storage) -> None:
    """Raises StorageError where the root is a mirror's."""
    if storage.exists(MIRROR):
        raise StorageError(
            f"the storage {storage.url} is a mirror's, which `pypi-assets mirror run` alone writes: use a home and a"
            " storage of its own for what is to crawl and publish"
        )
