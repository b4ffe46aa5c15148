"""Build patterns for `pytest.raises(match=...)` that check the values in a message, but not its words."""

import re


def naming(*values: object) -> str:
    """Return a pattern for messages that contain all values, in any order and with any other words.

    Without values, any message matches that is not empty.

    >>> bool(re.search(naming("demo", 12), "Visit 12 of `demo` does not exist"))
    True
    >>> bool(re.search(naming("demo", 12), "Visit 120 of `demo` does not exist"))
    False
    """
    return "".join(f"(?=[\\s\\S]*{_whole(str(value))})" for value in values) or r"\S"


def _whole(text: str) -> str:
    """Return a pattern for the text that does not match within a longer word or number."""
    start = r"(?<!\w)" if re.match(r"\w", text) else ""
    end = r"(?!\w)" if re.search(r"\w\Z", text) else ""
    return f"{start}{re.escape(text)}{end}"


def mentions(text: str, *values: object) -> bool:
    """Check whether a text contains all values, in any order and with any other words."""
    return re.search(naming(*values), text) is not None
