"""The classes of characters that what is read of a file depends on, fixed at one version of Unicode.

Each Python brings the Unicode tables of its year: a character that is new in them is a letter, printable, or part of
an identifier on one Python and none of them on another. The methods of str that read those tables (isidentifier,
isprintable, lower, casefold, isdigit ...) are therefore used here alone. What has not changed since Unicode 6.3 is used
everywhere: which characters are whitespace (strip, split) and which end a line (splitlines).
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import groupby

from pypi_assets import character_ranges

UNICODE_VERSION = "14.0.0"
"""Of the tables: raised together with EXTRACTOR_VERSION."""
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_SEPARATORS = re.compile(r"[-_.]+")


def is_identifier(text: str) -> bool:
    """Whether `text` is an identifier of Python, as str.isidentifier() decides it by the tables of UNICODE_VERSION.

    >>> is_identifier("a\\u200db")
    False
    """
    return text.isidentifier() if text.isascii() else _identifier().fullmatch(text) is not None


def identifier_test(*texts: str) -> Callable[[str], bool]:
    """The quickest function that decides as `is_identifier` for each part of `texts`."""
    return str.isidentifier if all(map(str.isascii, texts)) else is_identifier


def is_printable(text: str) -> bool:
    """Whether no character of `text` is one that is not printable, as str.isprintable() decides it."""
    return text.isprintable() if text.isascii() else _unprintable().search(text) is None


def replace_unprintable(text: str, replacement: str) -> str:
    """`text` with `replacement` (one character) for each character that is not printable."""
    return text if is_printable(text) else _unprintable().sub(replacement, text)


def lower(text: str) -> str:
    """`text` with A to Z as small letters; all other characters stay as they are."""
    return text.lower() if text.isascii() else text.translate(_ASCII_LOWER)


def lowered(text: str) -> str:
    """`text` with small letters alone, as str.lower() makes them. Characters that are newer than the tables stay.

    What has a small letter keeps it in each version of Unicode.
    """
    if is_printable(text):
        return text.lower()
    newer = {char for char in text if char.isprintable() and not is_printable(char)}
    runs = groupby(text, newer.__contains__)
    return "".join(["".join(run) if is_newer else "".join(run).lower() for is_newer, run in runs])


def casefolded(text: str) -> str:
    """`text` without differences of case. Characters that are newer than the tables stay as they are.

    Unicode guarantees that the folding of a character never changes once it is assigned.
    """
    if text.isascii():
        return text.lower()
    return "".join([char.casefold() if is_printable(char) else char for char in text])


def case_folding(*texts: str) -> Callable[[str], str]:
    """The quickest function that folds each part of `texts` as `casefolded` does."""
    return str.lower if all(map(str.isascii, texts)) else casefolded


def is_digits(text: str) -> bool:
    """Whether `text` is one or more of the digits 0 to 9."""
    return text.isascii() and text.isdigit()


def normalized_name(name: str) -> str:
    """A project's name as PEP 503 normalizes it. In what is no valid name, only A to Z become small letters."""
    return _SEPARATORS.sub("-", lower(name))


def named_character(name: str) -> str | None:
    """The printable character of this `name`, which is no alias; None where there is none in UNICODE_VERSION."""
    try:
        char = unicodedata.lookup(name)
    except KeyError:
        return None
    is_known = len(char) == 1 and is_printable(char) and unicodedata.name(char, "") == name.upper()
    return char if is_known and name.isascii() else None


@cache
def _identifier() -> re.Pattern[str]:
    starts, parts = _class_of(character_ranges.IDENTIFIER_STARTS), _class_of(character_ranges.IDENTIFIER_PARTS)
    return re.compile(f"[A-Za-z_{starts}][A-Za-z_0-9{parts}]*")


@cache
def _unprintable() -> re.Pattern[str]:
    return re.compile(f"[^ -~{_class_of(character_ranges.PRINTABLE)}]")


def _class_of(ranges: str) -> str:
    """The ranges as they are written in a class of a regular expression."""
    bounds = (each.split("-") for each in ranges.split())
    return "".join([f"\\U{int(each[0], 16):08x}-\\U{int(each[-1], 16):08x}" for each in bounds])
