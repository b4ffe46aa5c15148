"""JSON as the catalog stores it, and as it is given to others. Names of broken distributions can hold half a surrogate
pair, which UTF-8 cannot."""

import json
from typing import Any

import orjson


def to_json(value: object) -> bytes:
    """Compact JSON. Half a surrogate pair becomes JSON's own escape of it."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def from_json(content: bytes | str) -> Any:
    """What `to_json` was given, with lists for tuples."""
    half_a_pair = r"\ud" in content if isinstance(content, str) else rb"\ud" in content
    return json.loads(content) if half_a_pair else orjson.loads(content)


def to_dump(content: bytes) -> object:
    """Stored JSON as a value of a dump's row: as it is, or decoded where it holds half a surrogate pair."""
    return from_json(content) if rb"\ud" in content else orjson.Fragment(content)


def to_utf8_json(value: object) -> bytes:
    """Compact JSON for others, in UTF-8: half a surrogate pair becomes `?`."""
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
