"""Store the parts of a distribution that its record is made of, so that each file is fetched only once.

Extracts are kept permanently as small zstd frames. They share a dictionary trained on real distributions
(benchmarks/train_extract_dictionary.py). Each frame has the id of its dictionary, so that a new one can be added later.
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
"""The name of a file in dictionaries/. zstd leaves the ids from 32,768 to 2**31 - 1 for free use."""
COMPRESSION_LEVEL = 12
"""Takes 0.3 ms a wheel. The highest level takes seven times as long for 7% fewer bytes."""
MAX_EXTRACT_BYTES = 256 * MIB
"""More than the limits of reading allow an extract to have. A larger one is corrupt."""


class ExtractError(ExpectedError):
    """A stored extract is corrupt or was written by a newer version. The message names the reason."""


@dataclass(frozen=True, slots=True)
class ServedMetadata:
    """The metadata file that an index serves next to a distribution (PEP 658).

    It is present for an sdist, and for a wheel if it is not the wheel's own METADATA. `content` is None if the page
    announces the file but the index does not have it. `is_as_stated` is False if its sha256 is not the one on the page.
    """

    content: bytes | None
    is_as_stated: bool


@dataclass(slots=True)
class Extract:
    """The content read from one archive.

    `members` are its files by folder, without a leading `./`. `setup_arguments` are the arguments found in an sdist's
    setup.py at that time, in the format of `kept_arguments`. `served` is None if the index serves the wheel's own
    METADATA or nothing, or if the two were not compared. `metadata_sha256` is the hash of a wheel's whole METADATA. It
    is known only while the wheel is read and is not stored.
    """

    members: dict[str, Folder] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    error: ReadError | None = None
    setup_arguments: bytes = b""
    served: ServedMetadata | None = None
    metadata_sha256: str | None = field(default=None, compare=False)

    def copied(self) -> "Extract":
        """Return a copy that can fail independently. The contents are shared."""
        return replace(self)

    @property
    def paths(self) -> list[str]:
        """Return the paths of all members."""
        return paths_of(self.members.items())

    def fail(self, kind: ErrorKind, text: str) -> None:
        """Set the error unless there is one already: later errors mostly follow from the first."""
        self.error = self.error or ReadError(kind, text)

    def fail_with(self, error: Exception) -> None:
        if isinstance(error, LimitExceededError):
            self.fail(ErrorKind.LIMIT_EXCEEDED, printable(str(error)))
        else:
            self.fail(ErrorKind.CORRUPT_ARCHIVE, printable(f"{type(error).__name__}: {error}"))


class _StoredExtract(msgspec.Struct, array_like=True):
    """The stored form of an extract. New fields are only added at the end, with a default."""

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
    """Return `extract` as MessagePack, before compression."""
    error = None if extract.error is None else (extract.error.kind.value, extract.error.text)
    served = None if extract.served is None else (extract.served.content, extract.served.is_as_stated)
    stored = _StoredExtract(
        FORMAT_VERSION, extract.files, extract.members, extract.notes, error, extract.setup_arguments, served
    )
    return _packer.encode(stored)


def encode_extract(extract: Extract) -> bytes:
    """Return `extract` as one zstd frame with its size, dictionary id and checksum.

    Raise UnicodeEncodeError if a member's name contains half a surrogate pair, which readers never leave in a name.
    """
    return _codecs.compressor().compress(pack(extract))


def decode_extract(content: bytes) -> Extract:
    """Return the extract in `content`, a single frame. Raise ExtractError if it is corrupt or from a newer version."""
    try:
        frame = zstandard.get_frame_parameters(content)
        if not 0 < frame.content_size <= MAX_EXTRACT_BYTES:
            raise ExtractError(f"corrupt extract: has {frame.content_size} bytes, not 1 to {MAX_EXTRACT_BYTES}")
        stored = _unpacker.decode(_codecs.decompressor(frame.dict_id).decompress(content, allow_extra_data=False))
        if stored.format_version != FORMAT_VERSION:
            raise ExtractError(f"extract has format {stored.format_version}, which needs a newer pypi-assets")
        error = None if stored.error is None else ReadError(ErrorKind(stored.error[0]), stored.error[1])
    except (zstandard.ZstdError, msgspec.DecodeError, ValueError) as damage:
        raise ExtractError(f"corrupt extract: {damage}") from damage
    served = None if stored.served is None else ServedMetadata(*stored.served)
    return Extract(stored.members, stored.files, stored.notes, error, stored.setup_arguments, served)


class _Codecs(threading.local):
    """The working memory of zstd of one thread. It is reused because it costs more to create than an extract."""

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
    """Return all dictionaries by id. They are loaded together because a contained reader cannot open files later."""
    return {int(path.stem): zstandard.ZstdCompressionDict(path.read_bytes()) for path in DICTIONARIES.glob("*.zdict")}


def _dictionary(dictionary_id: int) -> zstandard.ZstdCompressionDict:
    if dictionary_id not in _dictionaries():
        raise ExtractError(f"extract has dictionary {dictionary_id}, which needs a newer pypi-assets")
    return _dictionaries()[dictionary_id]


@cache
def _dictionary_for_writing() -> zstandard.ZstdCompressionDict:
    dictionary = _dictionary(DICTIONARY_ID)
    dictionary.precompute_compress(level=COMPRESSION_LEVEL)
    return dictionary


def load_codecs() -> None:
    """Load all dictionaries and create the codecs of this thread, so that no file is opened later."""
    _codecs.compressor()
    for dictionary_id in _dictionaries():
        _codecs.decompressor(dictionary_id)
