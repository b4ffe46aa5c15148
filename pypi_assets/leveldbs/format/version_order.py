"""Which release versions are equal, and their order: PEP 440's, with what is no PEP 440 version before all others."""

from functools import lru_cache
from typing import Any

from packaging.utils import canonicalize_version
from packaging.version import InvalidVersion, Version

VersionKey = tuple[Any, ...]
_BEFORE_ALL = ("",)
_AFTER_ALL = ("z",)

canonical_version = lru_cache(maxsize=65_536)(canonicalize_version)
"""The same text for versions that PEP 440 holds equal; what is none of its versions stays as it is."""


@lru_cache(maxsize=65_536)
def version_key(version: str) -> VersionKey:
    """A key to sort by; versions that PEP 440 holds equal (`1.0` and `1.0.0`) are sorted by their text.

    It is a tuple of what Python compares by itself, since `Version` takes ten times as long to compare.
    """
    try:
        parsed = Version(version)
    except InvalidVersion:
        return (False, version)
    release = list(parsed.release)
    while release and not release[-1]:
        release.pop()
    pre: VersionKey = parsed.pre or _AFTER_ALL
    if parsed.pre is None and parsed.post is None and parsed.dev is not None:
        pre = _BEFORE_ALL  # 1.0.dev1 comes before 1.0a1
    post = -1 if parsed.post is None else parsed.post
    dev = (True, 0) if parsed.dev is None else (False, parsed.dev)
    local = [(part.isdigit(), int(part) if part.isdigit() else part) for part in (parsed.local or "").split(".")]
    return (True, parsed.epoch, release, pre, post, dev, parsed.local is not None, local, version)
