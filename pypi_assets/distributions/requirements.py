"""Check versions, specifiers and requirements with `packaging`, with the same result on each version of Python.

`packaging` evaluates quoted texts with the interpreter's parser, recurses into parentheses, and looks up neighbouring
characters in the interpreter's Unicode tables. So texts are changed or rejected before it sees any of that.
"""

import re
from collections.abc import Iterable
from itertools import pairwise

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_version
from packaging.version import Version

from pypi_assets.characters import lower, normalized_name

MAX_PARENTHESES = 50
"""The maximum number of parentheses in one requirement. No real marker has more."""
_ALTERNATIVES = "os_name sys_platform platform_machine platform_python_implementation platform_release platform_system"
_VARIABLES_TEXT = f"{_ALTERNATIVES} platform_version python_version python_full_version implementation_name extra"
_VARIABLES = frozenset(
    {*_VARIABLES_TEXT.split(), "implementation_version", "os.name", "sys.platform", "platform.version"}
    | {"platform.machine", "platform.python_implementation", "python_implementation"}
)
"""The variables of markers that an installer can evaluate for a requirement."""
_MARKER_WORD = re.compile(r"'[^']*+'|\"[^\"]*+\"|~=|[A-Za-z_][\w.]*+", re.ASCII)
_QUOTES = ("'", '"')
_COMPATIBLE = re.compile(r"['\"]\s*+v?[0-9]{1,9}(?:\.[0-9]{1,9})++[^*'\"]*+['\"]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_PLAIN_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})*")


def is_version(text: str) -> bool:
    """Check whether `text` is a version by PEP 440."""
    return bool(_PLAIN_VERSION.fullmatch(text)) or (text.isascii() and parsed_version(text) is not None)


def parsed_version(text: str) -> Version | None:
    """Parse a version by PEP 440. Returns None if `text` is not valid."""
    try:
        return Version(text)
    except ValueError:  # InvalidVersion, or a number with thousands of digits
        return None


def comparable_version(text: str) -> str:
    """Return `text` normalized by PEP 440 without trailing zeros, or unchanged if it is not a version."""
    if not text.isascii():
        return text
    try:
        return canonicalize_version(text)
    except ValueError:  # a number with thousands of digits
        return text


def same_version(one: str, other: str) -> bool:
    """Check whether both texts are the same version. Filenames may have `_` in the place of `-` or `+`."""
    return one == other or _comparable_version(one) == _comparable_version(other)


def _comparable_version(version: str) -> str:
    return comparable_version(version.replace("_", "-") if "+" not in version else version)


def is_requirement(text: str) -> bool:
    """Check whether `text` is a requirement by PEP 508 or in a form that `packaging` still accepts."""
    if text.count("(") > MAX_PARENTHESES:
        return False
    try:
        Requirement(_neutral(text))
    except (InvalidRequirement, ValueError):  # ValueError: a number with thousands of digits
        return False
    return True


def comparable_requirement(text: str) -> str:
    """Return a canonical spelling that equal requirements share, or `text` itself if it is not a requirement."""
    if not text.isascii() or "\\" in text or not is_requirement(text):
        return text
    requirement = Requirement(text)
    requirement.name = normalized_name(requirement.name)
    return str(requirement)


def is_usable_marker(requirement: str) -> bool:
    """Check whether an installer can evaluate the marker of a valid requirement.

    Each comparison needs one known variable, and `~=` needs a version with at least two numbers.
    """
    _, _, marker = requirement.partition(" ;" if "@" in requirement.partition(";")[0] else ";")
    words = [word for word in _MARKER_WORD.findall(marker) if word not in {"in", "not"}]
    operands: list[str] = []
    for word in [*words, "and"]:
        if word == "~=":
            continue
        if word not in {"and", "or"}:
            operands.append(word)
            continue
        written = [each for each in operands if each.startswith(_QUOTES)]
        if operands and (len(written) == len(operands) or not _VARIABLES.issuperset({*operands} - {*written})):
            return False
        operands = []
    after = [following for word, following in pairwise(words) if word == "~="]
    return all(_COMPATIBLE.fullmatch(each) for each in after if each.startswith(_QUOTES))


def is_specifier(text: str) -> bool:
    """Check whether `text` is a list of version specifiers by PEP 440."""
    try:
        SpecifierSet(_neutral(text))
    except (InvalidSpecifier, ValueError):
        return False
    return True


def _neutral(text: str) -> str:
    """Return `text` with `é` for each non-ASCII character and `/` for each backslash.

    These characters are allowed only in quotes, in URLs and after `===`, where any other character is as good.
    """
    return _NOT_ASCII.sub("é", text.replace("\\", "/"))


# The name and extras of PEP 508. A version, bare or in parentheses, a marker or a URL may follow.


_EXTRA_OR_NAME = re.compile(r"\s*+([A-Za-z0-9][A-Za-z0-9._-]*+)\s*+(?:\[([^\]]*+)\])?\s*+(.*+)", re.DOTALL)
_OPERATOR = re.compile(r"===|[~=!<>]=|[<>]")
_MARKER_PART = re.compile(r"\b(?:and|or)\b", re.ASCII)
_NOT_IN_MARKERS = re.compile(r"[\s()\"']+")


def differ(some: Iterable[str], others: Iterable[str], *, with_markers: bool = True) -> bool:
    """Check whether the two lists have different requirements, regardless of order and spelling."""
    return {_comparable(each, with_markers) for each in some} != {_comparable(each, with_markers) for each in others}


def _comparable(requirement: str, with_markers: bool) -> tuple[object, ...]:
    match = _EXTRA_OR_NAME.match(requirement)
    if match is None:
        return (requirement.strip(),)
    name, extras, rest = normalized_name(match[1]), match[2] or "", match[3]
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
    match = _OPERATOR.match(written := written.strip())
    operator = match[0] if match else ""
    version = written[len(operator) :].strip()
    ends = ".*" if version.endswith(".*") else ""
    version = version.removesuffix(".*")
    return operator, version + ends if operator in {"~=", "==="} else comparable_version(version) + ends
