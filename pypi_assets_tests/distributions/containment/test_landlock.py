"""The restrictions of a ruleset by the kernel's Landlock version. `test_layers.py` tests their effect."""

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
def test_ruleset_restricts_everything_its_version_supports(version: int, words: tuple[int, ...]) -> None:
    attributes = kernel.rights(version)
    assert struct.unpack(f"={len(words)}Q", attributes) == words
