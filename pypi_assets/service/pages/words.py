"""Numbers, times and lists as people read them."""

from collections.abc import Sequence
from datetime import UTC, datetime

_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_DAY_LETTERS = 10
_OWN_WORDS = frozenset({"a", "did", "it", "no", "not", "nothing", "the", "there", "this", "too", "who"})
"""What sentences of the service begin with that do not begin with a name."""


def counted(count: int, noun: str, nouns: str | None = None) -> str:
    """
    >>> counted(1, "release"), counted(1200, "release"), counted(2, "dependency", "dependencies")
    ('1 release', '1,200 releases', '2 dependencies')
    """
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def size_in_words(size_bytes: int) -> str:
    """
    >>> size_in_words(999), size_in_words(1_234_567)
    ('999 bytes', '1.2 MB')
    """
    size, unit = float(size_bytes), 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1_000, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit and size < 9.95 else f"{size:.0f} {_UNITS[unit]}"


def day(time: str | None) -> str:
    """The day of a time in ISO 8601; nothing for what is none.

    >>> day("2026-03-03T12:00:00Z")
    '2026-03-03'
    """
    shown = (time or "")[:_DAY_LETTERS]
    return shown if unix_seconds(shown) is not None else ""


def unix_seconds(time: str | None) -> float | None:
    """The seconds of a time in ISO 8601, which is in UTC where it names no zone; None for what is none."""
    try:
        found = datetime.fromisoformat(time or "")
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def sentence(text: str) -> str:
    """Return a sentence of the service with a capital letter, unless it begins with a name.

    >>> sentence("there is no project six"), sentence("six has no version 9")
    ('There is no project six', 'six has no version 9')
    """
    return text[:1].upper() + text[1:] if text.partition(" ")[0] in _OWN_WORDS else text


def version_span(versions: Sequence[str]) -> str:
    """
    >>> version_span(["1.0"]), version_span(["1.0", "1.1", "2.0"])
    ('1.0', '1.0 to 2.0 (3 versions)')
    """
    if len(versions) < 2:
        return "".join(versions)
    return f"{versions[0]} to {versions[-1]} ({counted(len(versions), 'version')})"
