"""Reads small objects of JSON that decide what a storage is: what comes garbled is requested again before it counts."""

import json
from collections.abc import Callable
from typing import Any

from pypi_assets.storage.store import Storage

ATTEMPTS = 3
"""How often an object is read that cannot be parsed: a proxy or a store can cut or garble an answer."""


def read_json(storage: Storage, path: str, is_valid: Callable[[Any], bool] = lambda _value: True) -> Any:
    """Return the JSON under a path. Raises NotFoundError, and ValueError if it cannot be parsed, or is not valid, in
    each of `ATTEMPTS` attempts.
    """
    reason = ValueError("it has another content")
    for _ in range(ATTEMPTS):
        try:
            found = json.loads(storage.get(path))
        except ValueError as error:  # also what is not UTF-8
            reason = error
            continue
        if is_valid(found):
            return found
    raise reason
