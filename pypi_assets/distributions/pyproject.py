"""Parse pyproject.toml within limits, and look up values that may have any type."""

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import tomli

MAX_TOML_CHARACTERS = 512 * 1024
"""Ten times the longest ordinary files. Parsing some texts of this length takes a second."""

MAX_TOML_DEPTH = 100
"""Ten times the depth of ordinary files. Brackets in strings count, since the text is checked before it is parsed."""
MAX_KEY_PARTS = 32
"""The maximum number of parts of a key and of a table's name, several times more than in ordinary files.

Words with dots in strings count, too. The time to parse a key grows with the product of both numbers.
"""
_BRACKET = re.compile(r"[\[\]{}]")
_DEEPER = {"[": 1, "{": 1, "]": -1, "}": -1}
_KEY_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+"""
_LONG_KEY = re.compile(rf"(?<![\w.'\"\\-])(?:{_KEY_PART}\.[ \t]*+){{{MAX_KEY_PARTS}}}", re.ASCII)
_TOO_DEEP = f"it nests more than {MAX_TOML_DEPTH} levels deep"


def parse_toml(text: str, longest: int = MAX_TOML_CHARACTERS) -> dict[str, Any]:
    """Return the tables of `text`. Raise ValueError with a message that is the same on each version of Python."""
    if len(text) > longest:
        raise ValueError(f"it is longer than {longest} characters")
    steps = [_DEEPER[bracket] for bracket in _BRACKET.findall(text)]
    depth = max(accumulate(steps, _deeper), default=0)
    if depth > MAX_TOML_DEPTH:
        raise ValueError(_TOO_DEEP)
    if _has_long_key(text):
        raise ValueError(f"it has a key of more than {MAX_KEY_PARTS} parts")
    try:
        tables = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        raise ValueError(str(error)) from None
    except ValueError:
        raise ValueError("it has a number with thousands of digits") from None
    except RecursionError:  # caused by keys with a thousand parts
        raise ValueError(_TOO_DEEP) from None
    if _depth(tables) > MAX_TOML_DEPTH:
        raise ValueError(_TOO_DEEP)
    return tables


def _has_long_key(text: str) -> bool:
    """Check whether a key has more than MAX_KEY_PARTS parts. Few texts have a line with so many dots."""
    dots = MAX_KEY_PARTS
    if text.count(".") < dots or max([line.count(".") for line in text.split("\n")]) < dots:
        return False
    return _LONG_KEY.search(text) is not None


def _deeper(depth: int, step: int) -> int:
    return max(depth + step, 0)


def _depth(value: object) -> int:
    """Return how deep tables and arrays are nested in `value`."""
    level: list[Any] = [value]
    depth = 0
    while level := [
        inner
        for each in level
        for inner in (each.values() if isinstance(each, dict) else each)
        if isinstance(inner, dict | list)
    ]:
        depth += 1
    return depth


def table(parent: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return the table at `keys`, or an empty one if it is missing."""
    value: object = parent
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def strings(value: object) -> list[str]:
    """Return a string or an array of strings as a list. Other values are skipped."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def items(value: object) -> list[tuple[str, Any]]:
    """Return the keys and values of a table, or an empty list if `value` is not a table."""
    return list(value.items()) if isinstance(value, dict) else []


def text_items(value: object) -> list[tuple[str, str]]:
    """Return the keys and values of a table whose values are strings."""
    return [(key, text) for key, text in items(value) if isinstance(text, str)]
