"""Reads pyproject.toml and looks into it: its values can be of any kind."""

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import tomli

MAX_TOML_CHARACTERS = 512 * 1024
"""Ten times the longest honest files; parsing some text of this length takes a second."""

MAX_TOML_DEPTH = 100
"""Ten times what honest files have. Brackets in texts count too, before anything is parsed."""
MAX_KEY_PARTS = 32
"""Of a key, and of a table's name: several times what honest files have. In texts, words with dots between count too.
Parsing takes the product of both for each key."""
_BRACKET = re.compile(r"[\[\]{}]")
_DEEPER = {"[": 1, "{": 1, "]": -1, "}": -1}
_KEY_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+"""
_LONG_KEY = re.compile(rf"(?<![\w.'\"\\-])(?:{_KEY_PART}\.[ \t]*+){{{MAX_KEY_PARTS}}}", re.ASCII)
_TOO_DEEP = f"it nests more than {MAX_TOML_DEPTH} levels deep"


def parse_toml(text: str, longest: int = MAX_TOML_CHARACTERS) -> dict[str, Any]:
    """The tables of `text`. Raises ValueError, whose text is the same for the same `text` on each Python."""
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
    except RecursionError:  # of keys with a thousand parts
        raise ValueError(_TOO_DEEP) from None
    if _depth(tables) > MAX_TOML_DEPTH:
        raise ValueError(_TOO_DEEP)
    return tables


def _has_long_key(text: str) -> bool:
    """Whether a key has more than MAX_KEY_PARTS parts. Few texts have a line with that many dots."""
    dots = MAX_KEY_PARTS
    if text.count(".") < dots or max([line.count(".") for line in text.split("\n")]) < dots:
        return False
    return _LONG_KEY.search(text) is not None


def _deeper(depth: int, step: int) -> int:
    return max(depth + step, 0)


def _depth(value: object) -> int:
    """How deep tables and arrays nest in `value`."""
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
    """The table at `keys`, empty where there is none."""
    value: object = parent
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def strings(value: object) -> list[str]:
    """A string or an array of strings, as a list; what is no string is left out."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def items(value: object) -> list[tuple[str, Any]]:
    """The keys and values of a table; none where it is no table."""
    return list(value.items()) if isinstance(value, dict) else []


def text_items(value: object) -> list[tuple[str, str]]:
    """Those of a table whose values are texts."""
    return [(key, text) for key, text in items(value) if isinstance(text, str)]
