"""Keys: parts in UTF-8 with a zero byte between them."""

SEPARATOR = b"\0"


def key(*parts: str) -> bytes:
    """A key of parts that sort and are scanned one after the other. What would end a part early is replaced."""
    joined = "\0".join(parts)
    if joined.count("\0") != len(parts) - 1:
        joined = "\0".join(map(as_part, parts))
    return joined.encode()


def as_part(text: str) -> str:
    """`text` as it stands in keys."""
    return text.replace("\0", "\ufffd")


def prefix(*parts: str) -> bytes:
    """What all keys begin with whose first parts are `parts`."""
    return key(*parts) + SEPARATOR
