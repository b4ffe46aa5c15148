"""What a reader took out of one distribution: all that its record is made of, so that it is fetched only once.

Extracts are kept for ever as small zstd frames. They share a dictionary that was trained on real distributions
(benchmarks/train_extract_dictionary.py); each frame names its id, so a new dictionary is added to the old ones.
"""

import threading
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import msgspec
import zstandard

from pypi_assets.characters import printable
from pypi_assets.distributions.limits import MIB, LimitExceededError
from pypi_assets.distributions.members import Folder, paths_of
from pypi_assets.distributions.record import ErrorKind, ReadError
from pypi_assets.errors import ExpectedError

FORMAT_VERSION = 1
DICTIONARIES = Path(__file__).parent / "dictionaries"
DICTIONARY_ID = 40001
"""Names a file in dictionaries/; zstd leaves the ids from 32,768 to 2**31 - 1 to everybody."""
COMPRESSION_LEVEL = 12
"""0.3 ms a wheel; the highest level takes seven times as long for 7% fewer bytes."""
MAX_EXTRACT_BYTES = 256 * MIB
"""More than any limits that read a distribution leave in its extract: what claims to be larger is broken."""


class ExtractError(ExpectedError):
    """A stored extract cannot be decoded: damaged, or written by a newer version; the text names which of them."""


@dataclass(frozen=True, slots=True)
class ServedMetadata:
    """The metadata file that an index serves next to an sdist, or that is not the METADATA of the wheel (PEP 658).

    `content` is None if the page states such a file and the index does not have it. `is_as_stated` is False if the file
    has another sha256 than the page states.
    """

    content: bytes | None
    is_as_stated: bool


@dataclass(slots=True)
class Extract:
    """What was read from one archive. `members` are its files by their folders, without a leading `./`;
    `setup_arguments` the arguments found in an sdist's setup.py then, as kept_arguments writes them.

    `served` is None if the index serves the wheel's own METADATA or nothing, or if that was not compared.
    `metadata_sha256` is of a wheel's whole METADATA. It is known while the wheel is read, and not stored.
    """

    members: dict[str, Folder] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    error: ReadError | None = None
    setup_arguments: bytes = b""
    served: ServedMetadata | None = None
    metadata_sha256: str | None = field(default=None, compare=False)

    def copied(self) -> "Extract":
        """One that can fail without this one; what both hold is the same."""
        return replace(self)

    @property
    def paths(self) -> list[str]:
        """Of all members."""
        return paths_of(self.members.items())

    def fail(self, kind: ErrorKind, text: str) -> None:
        """Keeps the first error: later ones mostly follow from it."""
        self.error = self.error or ReadError(kind, text)

    def fail_with(self, error: Exception) -> None:
        if isinstance(error, LimitExceededError):
            self.fail(ErrorKind.LIMIT_EXCEEDED, printable(str(error)))
        else:
            self.fail(ErrorKind.CORRUPT_ARCHIVE, printable(f"{type(error).__name__}: {error}"))


class _StoredExtract(msgspec.Struct, array_like=True):
    """An extract as it is packed. Fields are only ever added at the end, with a default."""

    format_version: int
    files: dict[str, bytes]
    members: dict[str, Folder]
    notes: list[str]
    error: tuple[str, str] | None
    setup_arguments: bytes = b""
    served: tuple[bytes | None, bool] | None = None


_packer = msgspec.msgpack.Encoder()
_unpacker = msgspec.msgpack.Decoder(_StoredExtract)


def pack(extract: Extract) -> bytes:
    """`extract` as MessagePack: what is compressed."""
    error = None if extract.error is None else (extract.error.kind.value, extract.error.text)
    served = None if extract.served is None else (extract.served.content, extract.served.is_as_stated)
    stored = _StoredExtract(
        FORMAT_VERSION, extract.files, extract.members, extract.notes, error, extract.setup_arguments, served
    )
    return _packer.encode(stored)


def encode_extract(extract: Extract) -> bytes:
    """`extract` as one zstd frame with its size, its dictionary's id and a checksum.

    Raises UnicodeEncodeError where a member's name holds half a surrogate pair: readers leave none in.
    """
    return _codecs.compressor().compress(pack(extract))


def decode_extract(content: bytes) -> Extract:
    """The extract that `content`, one frame, holds. Raises ExtractError."""
    try:
        frame = zstandard.get_frame_parameters(content)
        if not 0 < frame.content_size <= MAX_EXTRACT_BYTES:
            raise ExtractError(f"an extract of {frame.content_size} bytes")
        stored = _unpacker.decode(_codecs.decompressor(frame.dict_id).decompress(content, allow_extra_data=False))
        if stored.format_version != FORMAT_VERSION:
            raise ExtractError(f"an extract of format {stored.format_version}; a newer version of pypi-assets reads it")
        error = None if stored.error is None else ReadError(ErrorKind(stored.error[0]), stored.error[1])
    except (zstandard.ZstdError, msgspec.DecodeError, ValueError) as damage:
        raise ExtractError(f"a damaged extract: {damage}") from damage
    served = None if stored.served is None else ServedMetadata(*stored.served)
    return Extract(stored.members, stored.files, stored.notes, error, stored.setup_arguments, served)


class _Codecs(threading.local):
    """zstd's working memory, kept because it costs more to make than an extract; no two threads may share it."""

    def __init__(self) -> None:
        self._compressor: zstandard.ZstdCompressor | None = None
        self._decompressors: dict[int, zstandard.ZstdDecompressor] = {}

    def compressor(self) -> zstandard.ZstdCompressor:
        if self._compressor is None:
            self._compressor = zstandard.ZstdCompressor(
                level=COMPRESSION_LEVEL, dict_data=_dictionary_for_writing(), write_checksum=True
            )
        return self._compressor

    def decompressor(self, dictionary_id: int) -> zstandard.ZstdDecompressor:
        if dictionary_id not in self._decompressors:
            self._decompressors[dictionary_id] = zstandard.ZstdDecompressor(dict_data=_dictionary(dictionary_id))
        return self._decompressors[dictionary_id]


_codecs = _Codecs()


@cache
def _dictionaries() -> dict[int, zstandard.ZstdCompressionDict]:
    """All of them, by id: a process that reads distributions can open none later."""
    return {int(path.stem): zstandard.ZstdCompressionDict(path.read_bytes()) for path in DICTIONARIES.glob("*.zdict")}


def _dictionary(dictionary_id: int) -> zstandard.ZstdCompressionDict:
    if dictionary_id not in _dictionaries():
        raise ExtractError(f"an extract with dictionary {dictionary_id}; a newer version of pypi-assets reads it")
    return _dictionaries()[dictionary_id]


@cache
def _dictionary_for_writing() -> zstandard.ZstdCompressionDict:
    dictionary = _dictionary(DICTIONARY_ID)
    dictionary.precompute_compress(level=COMPRESSION_LEVEL)
    return dictionary


def load_codecs() -> None:
    """Loads all dictionaries, and what this thread encodes and decodes with, so that no file is opened later."""
    _codecs.compressor()
    for dictionary_id in _dictionaries():
        _codecs.decompressor(dictionary_id)
