"""What `packaging` decides of versions, specifiers and requirements, of texts that it reads alike on each Python.

It reads quoted texts by the interpreter's own parser, recurses into parentheses, and looks at neighbouring letters by
the interpreter's Unicode tables. So none of that reaches it.
"""

import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_version
from packaging.version import Version

MAX_PARENTHESES = 50
"""Of one requirement: more of them are no marker that was written to be read."""
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


def is_requirement(text: str) -> bool:
    """Whether `text` is a requirement of PEP 508, or of a form that `packaging` still accepts."""
    if text.count("(") > MAX_PARENTHESES:
        return False
    try:
        Requirement(_neutral(text))
    except (InvalidRequirement, ValueError):  # ValueError: a number with thousands of digits
        return False
    return True


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
