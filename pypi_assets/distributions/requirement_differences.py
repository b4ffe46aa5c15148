"""Whether two lists of requirements mean the same, as far as that can be read off them.

The order, blanks, quotes, brackets and zeros at the end of versions make no difference.
"""

import re
from collections.abc import Iterable

from pypi_assets.characters import lower, normalized_name
from pypi_assets.distributions.requirements import comparable_version

_NAME = re.compile(r"\s*+([A-Za-z0-9][A-Za-z0-9._-]*+)\s*+(?:\[([^\]]*+)\])?\s*+(.*+)", re.DOTALL)
_OPERATOR = re.compile(r"===|[~=!<>]=|[<>]")
_MARKER_PART = re.compile(r"\b(?:and|or)\b", re.ASCII)
_NOT_IN_MARKERS = re.compile(r"[\s()\"']+")


def differ(some: Iterable[str], others: Iterable[str], *, with_markers: bool = True) -> bool:
    """Return whether one of the lists has a requirement that the other does not have."""
    return {_comparable(each, with_markers) for each in some} != {_comparable(each, with_markers) for each in others}


def _comparable(requirement: str, with_markers: bool) -> tuple[object, ...]:
    found = _NAME.match(requirement)
    if found is None:
        return (requirement.strip(),)
    name, extras, rest = normalized_name(found[1]), found[2] or "", found[3]
    separator = " ;" if rest.startswith("@") else ";"
    wanted, _, marker = rest.partition(separator)
    listed = frozenset(normalized_name(extra.strip()) for extra in extras.split(",") if extra.strip())
    if wanted.startswith("@"):
        version: object = wanted[1:].strip()
    else:
        clauses = wanted.strip().removeprefix("(").removesuffix(")").split(",")
        version = frozenset(_clause(clause) for clause in clauses if clause.strip())
    parts = _MARKER_PART.split(marker) if with_markers else _extras_in(marker)
    conditions = frozenset(lower(_NOT_IN_MARKERS.sub("", part)).replace("_", "-") for part in parts)
    return name, listed, version, conditions - {""}


def _extras_in(marker: str) -> list[str]:
    return [part for part in _MARKER_PART.split(marker) if "extra" in part]


def _clause(written: str) -> tuple[str, str]:
    found = _OPERATOR.match(written := written.strip())
    operator = found[0] if found else ""
    version = written[len(operator) :].strip()
    ends = ".*" if version.endswith(".*") else ""
    version = version.removesuffix(".*")
    return operator, version + ends if operator in {"~=", "==="} else comparable_version(version) + ends
