"""Checks the bytes of JSON before a parser sees them: how deep they nest, how long numbers are, how much they hold.

The native parsers of lists crash on a number of 4,301 digits, and take memory that is quadratic in the depth. Each
check takes a small part of the time of parsing. What the values mean is read in `project_list.py` and `pages.py`.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

MAX_DEPTH = 64
MAX_DIGITS = 40
"""Of one number. An index gives 64-bit numbers."""
MAX_ENTRY_BYTES = 4 * 1024**2
"""About the most bytes of one entry of a list, or of its `meta`: parsers hold them in memory."""
MAX_VALUES = 3_000_000
"""Of a document that is parsed as a whole: 100,000 files with all that a page has of them are half of that."""

_CHUNK_BYTES = MAX_ENTRY_BYTES // 4
_STRUCTURE = b'[]{}"\\'
_NOT_STRUCTURE = bytes(set(range(256)) - set(_STRUCTURE))
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_AS_DIGITS = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else ord("x") for byte in range(256))
_TOO_LONG = b"0" * (MAX_DIGITS + 1)
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_LAST_DIGITS = re.compile(rb"(?<![0-9])[0-9]++\Z")
_IN_BETWEEN = (b"", b"{", b"{[")
"""What is open at the top of a list, and between its entries."""


def check_values(document: bytes) -> None:
    """Raises ValueError where `document` holds more than MAX_VALUES values."""
    if sum(map(document.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise ValueError(f"it has more than {MAX_VALUES} values")


def check_list(body: BinaryIO) -> None:
    """Raises ValueError where the JSON in `body`, a list of entries, is beyond one of the bounds.

    Most lists are seen to be within them by their brackets alone. Only others are followed bracket by bracket. Whether
    it is JSON at all is for a parser to find.
    """
    if not _is_plain(body):
        _follow(body)


def _chunks(body: BinaryIO) -> Iterator[bytes]:
    body.seek(0)
    while chunk := body.read(_CHUNK_BYTES):
        yield chunk


def _is_plain(body: BinaryIO) -> bool:
    """Whether no long digits are anywhere, and each chunk ends between two entries, once all pairs are taken away."""
    opened = rest = b""
    for chunk in _chunks(body):
        text = rest + chunk
        end = text.rfind(b"}") + 1
        opened = _without_pairs(opened + _without_pairs(text[:end].translate(None, _NOT_STRUCTURE)))
        if opened not in _IN_BETWEEN or _TOO_LONG in text.translate(_AS_DIGITS):
            return False
        rest = text[end:]
        if len(rest) > _CHUNK_BYTES:
            return False
    return not _without_pairs(opened + rest.translate(None, _NOT_STRUCTURE))


def _without_pairs(brackets: bytes) -> bytes:
    """What is left of brackets and quotes; anything with a bracket or an escape in a string is left too."""
    for _ in range(3):
        brackets = brackets.replace(b'""', b"").replace(b"{}", b"").replace(b"[]", b"")
    return brackets


def _follow(body: BinaryIO) -> None:
    depth, is_in_list, is_in_string = 0, False, 0
    digits = rest = b""
    away = 0
    for chunk in _chunks(body):
        text, rest = _ESCAPE.sub(b"", rest + chunk), b""
        if text.endswith(b"\\"):
            text, rest = text[:-1], b"\\"
        parts = text.split(b'"')
        outside = (b"" if is_in_string else digits) + b'"'.join(parts[is_in_string::2])
        is_in_string = (is_in_string + len(parts) - 1) % 2
        if _TOO_LONG in outside.translate(_AS_DIGITS):
            raise ValueError(f"it has a number of more than {MAX_DIGITS} digits")
        last = None if is_in_string else _LAST_DIGITS.search(outside[-MAX_DIGITS - 1 :])
        digits = last[0] if last else b""
        away += len(chunk)
        for bracket in outside.translate(None, _NOT_BRACKETS):
            if bracket in b"[{":
                depth += 1
                if depth == 2:
                    is_in_list = bracket == ord("[")
                if depth > MAX_DEPTH:
                    raise ValueError(f"it nests deeper than {MAX_DEPTH} levels")
            else:
                depth -= 1
            if depth < 2 or (depth == 2 and is_in_list):
                away = 0
        if away > MAX_ENTRY_BYTES:
            raise ValueError(f"it has an entry of more than {MAX_ENTRY_BYTES} bytes")
