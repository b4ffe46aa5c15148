"""The forms of JSON that the catalog stores and publishes. Names in broken distributions can contain unpaired
surrogates, which UTF-8 cannot encode.
"""

import json
from typing import Any

import orjson


def to_json(value: object) -> bytes:
    """Return compact JSON. Unpaired surrogates are escaped."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def from_json(content: bytes | str) -> Any:
    """Return the value that `to_json` encoded, with lists in place of tuples."""
    half_a_pair = r"\ud" in content if isinstance(content, str) else rb"\ud" in content
    return json.loads(content) if half_a_pair else orjson.loads(content)


def to_dump(content: bytes) -> object:
    """Return stored JSON as a value for a dump's row: unchanged, or decoded if it has an unpaired surrogate."""
    return from_json(content) if rb"\ud" in content else orjson.Fragment(content)


def to_utf8_json(value: object) -> bytes:
    """Return compact JSON in UTF-8 for publication. Unpaired surrogates become `?`."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return orjson.dumps(_valid_unicode(value))


def _valid_unicode(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, list):
        return [_valid_unicode(item) for item in value]
    if isinstance(value, dict):
        return {name: _valid_unicode(item) for name, item in value.items()}
    return value
