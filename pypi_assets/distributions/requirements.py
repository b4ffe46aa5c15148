"""What `packaging` decides of versions, specifiers and requirements, of texts that it reads alike on each Python.

It reads quoted texts by the interpreter's own parser, recurses into parentheses, and looks at neighbouring letters by
the interpreter's Unicode tables. So none of that reaches it.
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
"""Of one requirement: more of them are no marker that was written to be read."""
_ALTERNATIVES = "os_name sys_platform platform_machine platform_python_implementation platform_release platform_system"
_VARIABLES_TEXT = f"{_ALTERNATIVES} platform_version python_version python_full_version implementation_name extra"
_VARIABLES = frozenset(
    {*_VARIABLES_TEXT.split(), "implementation_version", "os.name", "sys.platform", "platform.version"}
    | {"platform.machine", "platform.python_implementation", "python_implementation"}
)
"""Of markers, those that an installer knows of a requirement."""
_MARKER_WORD = re.compile(r"'[^']*+'|\"[^\"]*+\"|~=|[A-Za-z_][\w.]*+", re.ASCII)
_QUOTES = ("'", '"')
_COMPATIBLE = re.compile(r"['\"]\s*+v?[0-9]{1,9}(?:\.[0-9]{1,9})++[^*'\"]*+['\"]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_PLAIN_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})*")


def is_version(text: str) -> bool:
    """Whether `text` is a version of PEP 440."""
    if _PLAIN_VERSION.fullmatch(text):
        return True
    if not text.isascii():
        return False
    try:
        Version(text)
    except ValueError:  # InvalidVersion, or a number with thousands of digits
        return False
    return True


def comparable_version(text: str) -> str:
    """`text` as PEP 440 normalizes it, without the zeros at its end; as it is, where it is no version."""
    if not text.isascii():
        return text
    try:
        return canonicalize_version(text)
    except ValueError:  # a number with thousands of digits
        return text


def same_version(one: str, other: str) -> bool:
    """Check whether both write the same version; filenames may have `_` for what a version has as `-` or `+`."""
    return one == other or _comparable_version(one) == _comparable_version(other)


def _comparable_version(version: str) -> str:
    return comparable_version(version.replace("_", "-") if "+" not in version else version)


def is_requirement(text: str) -> bool:
    """Whether `text` is a requirement of PEP 508, or of a form that `packaging` still accepts."""
    if text.count("(") > MAX_PARENTHESES:
        return False
    try:
        Requirement(_neutral(text))
    except (InvalidRequirement, ValueError):  # ValueError: a number with thousands of digits
        return False
    return True


def comparable_requirement(text: str) -> str:
    """Return `text` in the one spelling of equal requirements; as it is if it is not a requirement."""
    if not text.isascii() or "\\" in text or not is_requirement(text):
        return text
    requirement = Requirement(text)
    requirement.name = normalized_name(requirement.name)
    return str(requirement)


def is_usable_marker(requirement: str) -> bool:
    """Whether an installer can evaluate the marker of a valid requirement: each comparison has one known variable, and
    `~=` a version of at least two numbers."""
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
    """Whether `text` is a list of version specifiers of PEP 440."""
    try:
        SpecifierSet(_neutral(text))
    except (InvalidSpecifier, ValueError):
        return False
    return True


def _neutral(text: str) -> str:
    """`text` with an `é` for each character outside of ASCII, and without backslashes.

    Both are as good as any other character where they may be at all: in quotes, URLs and after `===`.
    """
    return _NOT_ASCII.sub("é", text.replace("\\", "/"))


# PEP 508's name and extras, and what may follow: a version, bare or in parentheses, a marker, a URL.


_EXTRA_OR_NAME = re.compile(r"\s*+([A-Za-z0-9][A-Za-z0-9._-]*+)\s*+(?:\[([^\]]*+)\])?\s*+(.*+)", re.DOTALL)
_OPERATOR = re.compile(r"===|[~=!<>]=|[<>]")
_MARKER_PART = re.compile(r"\b(?:and|or)\b", re.ASCII)
_NOT_IN_MARKERS = re.compile(r"[\s()\"']+")


def differ(some: Iterable[str], others: Iterable[str], *, with_markers: bool = True) -> bool:
    """Return whether one of the lists has a requirement that the other does not have."""
    return {_comparable(each, with_markers) for each in some} != {_comparable(each, with_markers) for each in others}


def _comparable(requirement: str, with_markers: bool) -> tuple[object, ...]:
    found = _EXTRA_OR_NAME.match(requirement)
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
