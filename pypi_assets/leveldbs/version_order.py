"""The order of release versions: PEP 440's, with what is no PEP 440 version before all others."""

from functools import lru_cache

from packaging.version import InvalidVersion, Version

VersionKey = tuple[bool, Version, str]
_LEAST = Version("0.dev0")


@lru_cache(maxsize=65_536)
def version_key(version: str) -> VersionKey:
    """A key to sort by; versions that PEP 440 holds equal (`1.0` and `1.0.0`) are sorted by their text."""
    try:
        return (True, Version(version), version)
    except InvalidVersion:
        return (False, _LEAST, version)
