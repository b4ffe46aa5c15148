"""Reads pyproject.toml: the tables that say what a project is and how it is built, and no others."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import tomli

_HEADER = re.compile(
    r"^[ \t]*\[\[?[ \t]*(?:(build-system|project(?![ \t]*\.[ \t]*urls)|tool[ \t]*\.[ \t]*"
    r"(?:flit|hatch|maturin|meson-python|pdm|poetry|scikit-build|setuptools|uv)\b)|tool\b|project\b|dependency-groups\b)",
    re.MULTILINE,
)
"""A line that opens a table; the first group is there for those that are kept. No line inside a value looks like this,
other than in a string of several lines."""
_CLASSIFIERS = re.compile(r"^classifiers[ \t]*=[ \t]*\[[^\]]*\]", re.MULTILINE)


def parse_pyproject(text: str) -> dict[str, Any]:
    """The tables [build-system], [project] and [tool.*] of the build backends.

    The settings of linters and the like, URLs and classifiers, which are most of the text, are cut out first: parsing
    is dear. Raises ValueError (tomli.TOMLDecodeError, or for an impossible date) or RecursionError where it is broken.
    """
    if '"""' not in text and "'''" not in text:
        with suppress(ValueError, RecursionError):
            return tomli.loads(_CLASSIFIERS.sub("", _without_other_tables(text)))
    return tomli.loads(text)


def _without_other_tables(text: str) -> str:
    kept = []
    start: int | None = 0
    for header in _HEADER.finditer(text):
        if header[1] is None and start is not None:
            kept.append(text[start : header.start()])
            start = None
        elif header[1] is not None and start is None:
            start = header.start()
    if start is not None:
        kept.append(text[start:])
    return "".join(kept)


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
