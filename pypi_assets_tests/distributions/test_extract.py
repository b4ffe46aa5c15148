"""Stored extracts are read back unchanged, also by later versions, and corruption is detected."""

import hashlib
import random
import struct
import threading

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.distributions import extract
from pypi_assets.distributions.extract import (
    DICTIONARIES,
    DICTIONARY_ID,
    MAX_EXTRACT_BYTES,
    Extract,
    ExtractError,
    decode_extract,
    encode_extract,
)
from pypi_assets.distributions.members import Folder
from pypi_assets.distributions.record import ErrorKind, ReadError
from pypi_assets_tests.distributions.made_extracts import extract_of
from pypi_assets_tests.naming import naming

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
TEXTS = st.lists(NAMES, max_size=5).map(lambda names: "".join(f"{name.replace('/', '')}/" for name in names))
EXTRACTS = st.builds(
    Extract,
    members=st.dictionaries(NAMES, st.builds(Folder, TEXTS, TEXTS), max_size=10),
    files=st.dictionaries(NAMES, st.binary(max_size=200), max_size=5),
    notes=st.lists(NAMES, max_size=3),
    error=st.none() | st.builds(ReadError, st.sampled_from(ErrorKind), NAMES),
    setup_arguments=st.binary(max_size=50),
)
WHEEL = extract_of(
    ["demo/__init__.py", "demo-1.0.dist-info/METADATA"],
    {"demo-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"},
)
STORED = (  # encoded by the first version
    "28b52ffd26419c84950100c0960181bb64656d6f2d31c42e300a82a492a0a92f90c0c40008fca309a1b8f8188e5c79ec1271e739bc2bf27bb20bd4e8057d927ba3"
)
KEPT_DICTIONARIES = {40001: "7f2bfa8bec1a194ce523bd09f10970e3ff08f260f1f3505235dc7acd2dc6f8a2"}
"""The SHA-256 by id. A dictionary that stored extracts need is never changed or removed."""


def frame(packed: bytes) -> bytes:
    return extract._codecs.compressor().compress(packed)


@given(EXTRACTS)
def test_extract_round_trip(extract: Extract) -> None:
    assert decode_extract(encode_extract(extract)) == extract


@pytest.mark.parametrize("paths", [[], [""], [".py"], ["a\nb"], ["a\n", "b"], ["a", "b"], ["a/ ", "a//b"], ["\0"]])
def test_members_with_any_names_stay_distinct(paths: list[str]) -> None:
    assert decode_extract(encode_extract(extract_of(paths))).paths == paths


def test_encoding_is_deterministic() -> None:
    assert encode_extract(WHEEL) == encode_extract(decode_extract(encode_extract(WHEEL)))


def test_frame_has_size_dictionary_and_checksum() -> None:
    frame = zstandard.get_frame_parameters(encode_extract(WHEEL))

    assert (frame.dict_id, frame.has_checksum) == (DICTIONARY_ID, True)
    assert frame.content_size == len(extract.pack(WHEEL))


def test_small_wheel_takes_less_than_a_hundred_bytes() -> None:
    assert len(encode_extract(WHEEL)) < 100


def test_any_corruption_is_detected() -> None:
    content = encode_extract(WHEEL)
    random.seed(1)
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= random.randrange(1, 256)
        try:
            decoded = decode_extract(bytes(damaged))
        except ExtractError:
            continue
        assert decoded == WHEEL  # an unused bit in the frame header


@pytest.mark.parametrize("content", [b"", b"not a frame", encode_extract(WHEEL)[:-5], encode_extract(WHEEL) + b"more"])
def test_anything_but_one_whole_frame_is_rejected(content: bytes) -> None:
    with pytest.raises(ExtractError):
        decode_extract(content)


def test_frame_that_claims_to_be_huge_is_not_inflated() -> None:
    header = struct.pack("<IB", 0xFD2FB528, 0b1110_0000) + struct.pack("<Q", MAX_EXTRACT_BYTES + 1)

    with pytest.raises(ExtractError, match=naming(MAX_EXTRACT_BYTES + 1)):
        decode_extract(header + b"\0" * 20)


def test_frame_without_size_is_rejected() -> None:
    with pytest.raises(ExtractError, match=naming(18446744073709551615)):
        decode_extract(zstandard.ZstdCompressor(write_content_size=False).compress(b"x" * 1000))


def test_foreign_content_in_a_valid_frame_is_rejected() -> None:
    with pytest.raises(ExtractError):
        decode_extract(frame(b"\x93\x01\x02\x03"))


def test_dictionaries_are_unchanged() -> None:
    digests = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in DICTIONARIES.iterdir()}
    assert digests == {f"{id_}.zdict": sha256 for id_, sha256 in KEPT_DICTIONARIES.items()}
    assert max(KEPT_DICTIONARIES) == DICTIONARY_ID


def test_old_extract_is_decoded() -> None:
    assert decode_extract(bytes.fromhex(STORED)) == WHEEL


def test_newer_dictionary_or_format_is_named() -> None:
    content = bytearray(encode_extract(WHEEL))
    offset = content.index(DICTIONARY_ID.to_bytes(2, "little"))
    content[offset : offset + 2] = (DICTIONARY_ID + 9).to_bytes(2, "little")
    with pytest.raises(ExtractError, match=naming(DICTIONARY_ID + 9)):
        decode_extract(bytes(content))

    packed = bytearray(extract.pack(WHEEL))
    packed[1] = 99
    with pytest.raises(ExtractError, match=naming(99)):
        decode_extract(frame(bytes(packed)))


def test_lone_surrogate_cannot_be_stored() -> None:
    with pytest.raises(UnicodeEncodeError):
        encode_extract(extract_of(["\udc80"]))


def test_threads_do_not_share_zstd_contexts() -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        made = extract_of([f"{seed}/{number}" for number in range(500)])
        wrong.extend(seed for _ in range(50) if decode_extract(encode_extract(made)) != made)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []
