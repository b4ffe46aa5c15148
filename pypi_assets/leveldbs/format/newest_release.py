"""The newest version of a project: the one that an installer would choose.

That is the newest stable version that is not yanked; without one, the newest that is not yanked; else the newest of
all. The order is PEP 440's. A version is yanked where all of its files are.
"""

from collections.abc import Iterable
from functools import lru_cache
from operator import itemgetter

from packaging.version import InvalidVersion, Version

from pypi_assets.leveldbs.format.version_order import VersionKey, canonical_version, version_key


def newest_version(versions: Iterable[str], yanked: Iterable[str] = ()) -> str:
    """The newest of `versions`, of which there is at least one.

    >>> newest_version(["1.0", "2.0", "3.0rc1"], yanked=["2.0"])
    '1.0'
    """
    avoided = set(yanked)
    return max(versions, key=lambda one: (one not in avoided and _is_stable(one), one not in avoided, version_key(one)))


def newest_release(files: Iterable[tuple[str, bool]]) -> str:
    """The newest version of a project, canonical, from the version of each of its files and whether that is yanked.

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
