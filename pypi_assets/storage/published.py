"""Maintain `published.json`, the one small object that lists everything that is published in a storage.

It is replaced after each publication; all other published objects never change. So readers need no listing: they read
`published.json`, and then the objects that it names. These objects are kept until the grace time of the clean-up ends.

Each stage computes its own part, which is stored as an object below `published/`. The content of the parts does not
belong here.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from pypi_assets.storage.root_owner import OWNER, read_json
from pypi_assets.storage.store import ObjectNotFoundError, Storage

PUBLISHED = "published.json"
PARTS = ("dumps", "leveldbs", "journal")
FORMAT = 1
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


@dataclass(frozen=True, slots=True)
class Named:
    """A small object at which readers begin, such as a manifest. It never changes."""

    path: str
    size: int
    sha256: str

    @classmethod
    def of(cls, path: str, content: bytes) -> "Named":
        """Return the description of an object with this content."""
        return cls(path, len(content), hashlib.sha256(content).hexdigest())


def part_path(part: str) -> str:
    """Return the path of a part."""
    return f"published/{part}.json"


def publish_part(storage: Storage, part: str, compute: Callable[[], object]) -> None:
    """Replace a part with the JSON that `compute` returns, and update `published.json`. Writes nothing if both are
    current.

    Several processes can call this at once. Each compares again after it has written, so the last writer sees
    everything that the others have published by then, and a slow process never leaves an older state.
    """
    if part not in PARTS:
        raise ValueError(f"not a part of what is published: {part!r}")
    _put_until_equal(storage, part_path(part), lambda: orjson.dumps(compute(), option=_OPTIONS))
    _put_until_equal(storage, PUBLISHED, lambda: _whole(storage))


def name_objects(storage: Storage, part: str, paths: Iterable[str]) -> list[dict[str, Any]]:
    """Describe the objects at `paths` in the form that a part of `published.json` has.

    An object that the part already names is not read again, since it never changes. Objects that were deleted are
    skipped.
    """
    known = {one["path"]: one for one in _entries(_read(storage, part_path(part)))}
    found = (known.get(path) or _named(storage, path) for path in paths)
    return [one for one in found if one is not None]


def _named(storage: Storage, path: str) -> dict[str, Any] | None:
    content = _bytes(storage, path)
    return None if content is None else asdict(Named.of(path, content))


def _put_until_equal(storage: Storage, path: str, content: Callable[[], bytes]) -> None:
    while (wanted := content()) != _bytes(storage, path):
        storage.put(path, wanted)


def _whole(storage: Storage) -> bytes:
    owner = _read(storage, OWNER)
    parts = {part: _read(storage, part_path(part)) for part in PARTS}
    index_url = owner.get("index_url") if isinstance(owner, Mapping) else None
    return orjson.dumps({"format": FORMAT, "index_url": index_url, **parts}, option=_OPTIONS)


def _entries(value: object) -> Iterable[dict[str, Any]]:
    """Yield all object descriptions in a part, at any depth."""
    if isinstance(value, Mapping):
        if {"path", "size", "sha256"} <= value.keys():
            yield dict(value)
        else:
            for one in value.values():
                yield from _entries(one)
    elif isinstance(value, list):
        for one in value:
            yield from _entries(one)


def _bytes(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.get(path)
    except ObjectNotFoundError:
        return None


def _read(storage: Storage, path: str) -> Any:
    """Return the JSON at a path, or None if it is missing or corrupt. The caller then writes it again."""
    try:
        return read_json(storage, path)
    except (ObjectNotFoundError, ValueError):
        return None
