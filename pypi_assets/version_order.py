"""Orders the versions of releases by PEP 440, and finds the newest version, which an installer would choose.

Texts that are not PEP 440 versions come before all others.
"""

from collections.abc import Iterable
from functools import lru_cache
from operator import itemgetter
from typing import Any

from packaging.utils import canonicalize_version
from packaging.version import InvalidVersion, Version

VersionKey = tuple[Any, ...]
_BEFORE_ALL = ("",)
_AFTER_ALL = ("z",)

canonical_version = lru_cache(maxsize=65_536)(canonicalize_version)
"""Return the same text for versions that are equal by PEP 440. A text that is not a version is returned unchanged."""


@lru_cache(maxsize=65_536)
def version_key(version: str) -> VersionKey:
    """Return a sort key. Versions that are equal by PEP 440, such as `1.0` and `1.0.0`, are sorted by their text.

    The key is a tuple of built-in types, since comparing `Version` objects takes ten times as long.
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


def newest_version(versions: Iterable[str], yanked: Iterable[str] = ()) -> str:
    """Return the newest of `versions`, which must not be empty.

    >>> newest_version(["1.0", "2.0", "3.0rc1"], yanked=["2.0"])
    '1.0'
    """
    avoided = set(yanked)
    return max(
        versions,
        key=lambda version: (
            version not in avoided and _is_stable(version),
            version not in avoided,
            version_key(version),
        ),
    )


def newest_release(files: Iterable[tuple[str, bool]]) -> str:
    """Return the newest version of a project in canonical form, from the version and the yank of each of its files.

    >>> newest_release([("1.0", False), ("2.0", True)])
    '1'
    """
    files = list(files)
    if not any(map(itemgetter(1), files)):
        return canonical_version(max([version for version, _ in files], key=_rank))
    is_yanked: dict[str, bool] = {}
    for version, yanked in files:
        release = canonical_version(version)
        is_yanked[release] = is_yanked.get(release, True) and yanked
    return newest_version(is_yanked, (release for release, yanked in is_yanked.items() if yanked))


@lru_cache(maxsize=65_536)
def _rank(version: str) -> tuple[bool, VersionKey]:
    return _is_stable(version), version_key(version)


@lru_cache(maxsize=65_536)
def _is_stable(version: str) -> bool:
    try:
        return not Version(version).is_prerelease
    except InvalidVersion:
        return False
