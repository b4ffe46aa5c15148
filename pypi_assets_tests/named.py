"""Check that a message names certain values, whatever the other words are."""

import re


def unnamed(text: str, *values: object) -> list[str]:
    """Return the values that the text does not contain as whole words: `unnamed("1 of 12", 1, 2)` is `["2"]`."""
    joined = " ".join(text.split())
    return [shown for shown in map(str, values) if not re.search(rf"(?<!\w){re.escape(shown)}(?!\w|\.\d)", joined)]


def in_order(text: str, *values: object) -> bool:
    """Check whether the text contains the values in this order, with at most a few words between two of them."""
    joined = " ".join(text.split())
    pattern = ".{0,80}?".join(rf"(?<!\w){re.escape(str(value))}(?!\w|\.\d)" for value in values)
    return re.search(pattern, joined) is not None
