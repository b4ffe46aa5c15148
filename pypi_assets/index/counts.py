"""Which numbers an index may give as a serial or a size."""

from typing import TypeGuard


def is_count(value: object) -> TypeGuard[int]:
    """Whether `value` is a whole number from 0 that a database's 64-bit column can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
