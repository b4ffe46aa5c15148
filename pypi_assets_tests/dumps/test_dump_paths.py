"""Which shard a project belongs to."""

import hashlib

import pytest

from pypi_assets.dumps.dump_paths import shard_of


@pytest.mark.parametrize(("shards", "shard"), [(256, 0x2A), (16, 0x2), (1, 0)])
def test_shards_go_by_the_first_hex_digits(shards: int, shard: int) -> None:
    assert hashlib.sha256(b"demo").hexdigest().startswith("2a")
    assert shard_of("demo", shards) == shard
