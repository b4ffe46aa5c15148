"""Which project a requirement names, and whether it always holds.

It takes what is written as it comes, a million times over, so it looks at no more than it must: neither versions nor
markers are checked.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from packaging.utils import canonicalize_name

# PEP 508's name and extras, and what may follow: a version, bare or in parentheses, a marker, a URL.
_NAME = re.compile(
    r"\s*+([A-Z0-9](?:[A-Z0-9._-]*[A-Z0-9])?)\s*+(?:\[[^\]]*+\]\s*+)?(?=[(<>=!~;@]|$)", re.IGNORECASE | re.ASCII
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_EXTRA = re.compile(r"\bextra\b", re.ASCII)

CONDITIONS = ("always", "marker", "extra")
"""When a requirement holds, by rank: always; if the marker is true; with an extra."""


@lru_cache(maxsize=131_072)
def parse_requirement(requirement: str) -> tuple[str, int] | None:
    """The normalized name of the project that is required, and the rank of its condition; None where it names none."""
    match = _NAME.match(requirement)
    if match is None:
        return None
    rest = requirement[match.end() :]
    _, _, marker = rest.partition(" ;" if rest.startswith("@") else ";")  # a URL may hold a semicolon
    if not marker.strip():
        return canonicalize_name(match[1]), 0
    return canonicalize_name(match[1]), 2 if _EXTRA.search(_QUOTED.sub("", marker)) else 1


def required_projects(requirements: Iterable[str]) -> dict[str, int]:
    """The projects that are required, by normalized name, each with the lowest rank of its conditions."""
    ranks: dict[str, int] = {}
    for requirement in requirements:
        parsed = parse_requirement(requirement)
        if parsed is not None and ranks.get(parsed[0], parsed[1]) >= parsed[1]:
            ranks[parsed[0]] = parsed[1]
    return ranks
