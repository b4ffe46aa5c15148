"""What a ruleset restricts, by the version that a kernel has. What it stops is in `test_layers.py`."""

import struct

import pytest

from pypi_assets.distributions.containment import kernel


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (1, (0x1FFF,)),
        (2, (0x3FFF,)),
        (3, (0x7FFF,)),
        (4, (0x7FFF, 3)),
        (5, (0xFFFF, 3)),
        (6, (0xFFFF, 3, 3)),
        (7, (0xFFFF, 3, 3)),
        (99, (0xFFFF, 3, 3)),
    ],
)
def test_a_version_restricts_all_that_it_knows(version: int, words: tuple[int, ...]) -> None:
    attributes = kernel.rights(version)
    assert struct.unpack(f"={len(words)}Q", attributes) == words
