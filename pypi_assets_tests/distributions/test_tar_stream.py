"""A tar's bytes as one stream."""

import pytest

from pypi_assets.distributions.tar_stream import BLOCK, BadTarError, TarStream, padded
from pypi_assets_tests.naming import naming

CONTENT = bytes(range(256)) * 8


def stream(size: int) -> TarStream:
    return TarStream(iter([CONTENT[at : at + size] for at in range(0, len(CONTENT), size)]))


@pytest.mark.parametrize("size", [1, 7, 500, 5000])
def test_pieces_of_any_size_are_one_stream(size):
    tar = stream(size)
    assert tar.read(3) == CONTENT[:3]
    tar.skip(700)
    assert (tar.position, tar.read_whole(5)) == (703, CONTENT[703:708])
    assert tar.position == 703 + BLOCK
    tar.skip_rest()
    assert tar.read(1) == b""


def test_what_is_missing_is_an_error():
    with pytest.raises(BadTarError, match=naming(2048)):
        stream(100).skip(len(CONTENT) + 1)
    with pytest.raises(BadTarError, match=naming(2048)):
        stream(100).read_padded(len(CONTENT) + 1)


def test_whole_blocks():
    assert list(map(padded, (0, 1, 512, 513))) == [0, 512, 512, 1024]
