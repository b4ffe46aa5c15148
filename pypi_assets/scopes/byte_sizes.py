"""Sizes in bytes as people write them, such as `50GB`."""

import re

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)[ ]?([A-Za-z]{0,3})")
_SHOWN = ("B", "kB", "MB", "GB", "TB")
NO_LIMIT = "none"
ACCEPTED = f"a size such as 500MB or 50GB, or {NO_LIMIT}"
_MOST = 2**62


def parse_limit(value: object) -> int | None:
    """Return the bytes of a limit such as `50GB`, `1.5 GiB` or 500000; None for `none`. Raises ValueError.

    >>> parse_limit("50GB")
    50000000000
    """
    if isinstance(value, str) and value.strip().lower() == NO_LIMIT:
        return None
    match = None if isinstance(value, bool) else _SIZE.fullmatch(str(value).strip())
    factor = None if match is None else _UNITS.get(match[2].upper())
    size = 0 if match is None or factor is None else int(float(match[1]) * factor)
    if not 0 < size <= _MOST:
        raise ValueError(f"not {ACCEPTED}: {str(value)[:40]!r}")
    return size


def is_limit(value: object) -> bool:
    """Check whether `parse_limit` accepts the value."""
    try:
        parse_limit(value)
    except ValueError:
        return False
    return True


def shown_size(size: int) -> str:
    """Return a number of bytes in the largest unit that leaves at least one digit before the point.

    >>> shown_size(1_500_000)
    '1.5 MB'
    """
    shown, unit = float(size), 0
    while shown >= 1000 and unit < len(_SHOWN) - 1:
        shown, unit = shown / 1000, unit + 1
    return f"{shown:.0f} {_SHOWN[unit]}" if unit == 0 else f"{shown:.1f} {_SHOWN[unit]}"
