"""Where dumps lie in the storage, and which shard a project belongs to."""

import hashlib

DUMPS = "data_dumps/python_distribution_data"
MANIFEST_NAME = "_MANIFEST.json"


def dump_path(directory: str) -> str:
    """The storage path of the dump in `directory`, which is named like `0-1200` or `1200-1350.2`."""
    return f"{DUMPS}/{directory}"


def file_path(directory: str, name: str) -> str:
    return f"{dump_path(directory)}/{name}"


def manifest_path(directory: str) -> str:
    return file_path(directory, MANIFEST_NAME)


def shard_of(normalized: str, shards: int) -> int:
    """The shard, out of 256, 16 or 1, by the first hex digits of the sha256 of the normalized project name."""
    digits = len(f"{shards:x}") - 1
    return int(hashlib.sha256(normalized.encode()).hexdigest()[:digits] or "0", 16)


def shard_key(shard: int) -> str:
    """Return the partition key of a shard out of 256: the first two hex digits of the hashes of its projects' names.

    >>> shard_key(shard_of("requests", 256))
    'ec'
    """
    return f"{shard:02x}"
