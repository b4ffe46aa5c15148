"""The owner of a storage root: the object `index.json` names the URL of one index, and one catalog of that index.

Two catalogs would write different objects under the same names, even if both follow the same index. So a root is
claimed before the first write, by a conditional write of `index.json`, and only the catalog that it names may write
afterwards. The object `mirror.json` marks the root of a mirror, whose `index.json` names no catalog.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pypi_assets.storage.store import ObjectNotFoundError, Storage, StorageError

ATTEMPTS = 3
"""The number of attempts to read an object that cannot be parsed, since a proxy or a store can truncate a response."""


def read_json(storage: Storage, path: str, is_valid: Callable[[Any], bool] = lambda _value: True) -> Any:
    """Return the JSON at a path.

    Raises ObjectNotFoundError if there is none, and ValueError if it cannot be parsed or is not valid in any of
    `ATTEMPTS` attempts.
    """
    reason = ValueError("its content is not valid")
    for _ in range(ATTEMPTS):
        try:
            found = json.loads(storage.get(path))
        except ValueError as error:  # also raised for bytes that are not UTF-8
            reason = error
            continue
        if is_valid(found):
            return found
    raise reason


OWNER = "index.json"
MIRROR = "mirror.json"


NEW = ""
"""The identity of a catalog that follows no index yet, and therefore owns no root."""


@dataclass(frozen=True, slots=True)
class RootOwner:
    """The index that a root belongs to, and the identity of its catalog; None for a mirror or an unclaimed root."""

    index_url: str
    catalog: str | None = None

    def encode(self) -> bytes:
        """Return the content of `index.json`."""
        named = {} if self.catalog is None else {"catalog": self.catalog}
        return json.dumps({"index_url": self.index_url, **named}).encode()


def claimed_on_write(storage: Storage, claimant: Callable[[], RootOwner]) -> Storage:
    """Return a storage whose root is claimed for `claimant` before its first write.

    `claimant` is called at that moment. A write into the root of another owner raises StorageError.
    """
    return replace(storage, before_write=_Claim(storage, claimant))


class _Claim:
    """Claims a root once for all threads of a process."""

    def __init__(self, storage: Storage, claimant: Callable[[], RootOwner]) -> None:
        self._storage, self._claimant = storage, claimant
        self._lock, self._is_made = threading.Lock(), False

    def __call__(self) -> None:
        with self._lock:
            if not self._is_made:
                claim_root(self._storage, self._claimant())
                self._is_made = True


def claim_root(storage: Storage, claimant: RootOwner) -> None:
    """Make `claimant` the owner of a root without an owner. Exactly one of several simultaneous claimants succeeds.

    Raises StorageError if the root has another owner, or if the catalog of the claimant is `NEW`.
    """
    if claimant.catalog == NEW:
        raise StorageError(
            f"the storage {storage.url} cannot be written, since the catalog does not follow an index yet: run"
            " `pypi-assets crawl full` first"
        )
    owner = require_claimable(storage, claimant)
    if owner is None:
        storage.create(OWNER, claimant.encode())
        require_claimable(storage, claimant)
    elif owner.catalog is None and claimant.catalog is not None:  # claimed without a catalog
        storage.put(OWNER, claimant.encode())


def require_claimable(storage: Storage, claimant: RootOwner) -> RootOwner | None:
    """Return the owner of the root, or None if it has none. Nothing is written.

    Raises StorageError if `claimant` is not the owner. A `claimant` without a catalog stands for any catalog of its
    index.
    """
    owner = find_owner(storage)
    if (owner is None or owner.catalog is None) and storage.exists(MIRROR):
        raise StorageError(
            f"the storage {storage.url} belongs to a mirror, and only `pypi-assets mirror run` writes to it: to crawl"
            " and publish, set PYPI_ASSETS_HOME and PYPI_ASSETS_STORAGE_URL to other places"
        )
    if owner is not None and owner.index_url != claimant.index_url:
        raise StorageError(
            f"the storage {storage.url} belongs to the index {owner.index_url}, not to {claimant.index_url}: set"
            " PYPI_ASSETS_STORAGE_URL to another storage, or set PYPI_ASSETS_INDEX_URL back; if the storage is"
            f" empty apart from {OWNER}, delete that object"
        )
    if owner is not None and None not in (owner.catalog, claimant.catalog) and owner.catalog != claimant.catalog:
        raise StorageError(
            f"the storage {storage.url} belongs to another catalog of the same index: set PYPI_ASSETS_STORAGE_URL to"
            " another storage, even if the other catalog was lost; or set PYPI_ASSETS_HOME or"
            " PYPI_ASSETS_DATABASE_URL back"
        )
    return owner


def require_owner(storage: Storage, index_url: str) -> None:
    """Claim the root for an index without a catalog, as a mirror does. `index_url` has no credentials.

    Raises StorageError if the root belongs to another index, or to a catalog.
    """
    if find_owner(storage) is None:
        storage.create(OWNER, RootOwner(index_url).encode())
    if (owner := _read(storage)) != RootOwner(index_url):
        whose = f"the index {owner.index_url}" if owner.index_url != index_url else "a catalog"
        raise StorageError(f"the storage {storage.url} belongs to {whose}, and not to a mirror of {index_url}")


def find_owner(storage: Storage) -> RootOwner | None:
    """Return the owner of the root, or None if it has none. Raises StorageError if `index.json` is corrupt."""
    try:
        return _read(storage)
    except ObjectNotFoundError:
        return None


def read_owner(storage: Storage) -> str:
    """Return the URL of the index that the root belongs to.

    Raises ObjectNotFoundError if the root has no owner, and StorageError if `index.json` is corrupt.
    """
    return _read(storage).index_url


def _read(storage: Storage) -> RootOwner:
    try:
        fields: dict[str, str] = read_json(storage, OWNER, _names_index)
    except ValueError as error:
        raise StorageError(
            f"{storage.uri(OWNER)} was read {ATTEMPTS} times and is not valid ({error}). If the store works, the object"
            ' is corrupt: restore it from a back-up. Its content is {"index_url": ..., "catalog": ...}'
        ) from None
    return RootOwner(fields["index_url"], fields.get("catalog"))


def _names_index(owner: object) -> bool:
    return (
        isinstance(owner, dict)
        and isinstance(owner.get("index_url"), str)
        and isinstance(owner.get("catalog"), str | None)
    )
