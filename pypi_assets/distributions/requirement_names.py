"""Find the project that a requirement names, and whether the requirement is conditional.

This runs on millions of requirements as projects wrote them, so versions and markers are not checked.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from packaging.utils import canonicalize_name

# The name and extras of PEP 508. A version, bare or in parentheses, a marker or a URL may follow.
_NAME = re.compile(
    r"\s*+([A-Z0-9](?:[A-Z0-9._-]*[A-Z0-9])?)\s*+(?:\[[^\]]*+\]\s*+)?(?=[(<>=!~;@]|$)", re.IGNORECASE | re.ASCII
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_EXTRA = re.compile(r"\bextra\b", re.ASCII)

CONDITIONS = ("always", "marker", "extra")
"""When a requirement applies, by rank: always, if its marker is true, or with an extra."""


@lru_cache(maxsize=131_072)
def parse_requirement(requirement: str) -> tuple[str, int] | None:
    """Return the normalized name of the required project and the rank of its condition, or None without a name."""
    match = _NAME.match(requirement)
    if match is None:
        return None
    rest = requirement[match.end() :]
    _, _, marker = rest.partition(" ;" if rest.startswith("@") else ";")  # a URL may contain a semicolon
    if not marker.strip():
        return canonicalize_name(match[1]), 0
    return canonicalize_name(match[1]), 2 if _EXTRA.search(_QUOTED.sub("", marker)) else 1


def required_projects(requirements: Iterable[str]) -> dict[str, int]:
    """Return the required projects by normalized name, each with the lowest rank of its conditions."""
    ranks: dict[str, int] = {}
    for requirement in requirements:
        parsed = parse_requirement(requirement)
        if parsed is not None and ranks.get(parsed[0], parsed[1]) >= parsed[1]:
            ranks[parsed[0]] = parsed[1]
    return ranks
