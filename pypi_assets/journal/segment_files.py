"""The files of the journal: segments, which are compressed lines of JSON, and manifests, which chain the segments.

Paths, below `journal/STREAM/GENERATION/`:

    START-END.HASH.jsonl.zst     the records of the serials above START up to END
    manifests/00000042.json      the manifest of segment 42, with the hash of manifest 41
    takedowns/00000002.json      the segments that the second takedown replaced: takedown_files.py

The head of a stream is `journal/STREAM/head.json`. It has the length of the chain and the open segment after it, and is
replaced by each write.

Manifests never change. Segments do not change either, until a takedown replaces them or an operator prunes them, and
head.json records both. Hashes are of the records before compression.
"""

import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, Self

import orjson
import zstandard

from pypi_assets.catalog.ledger.serial_range import RangeError, SerialRange
from pypi_assets.catalog.publications.written_segments import ChainedSegment, SegmentFile
from pypi_assets.catalog.reads.stored_json import to_utf8_json
from pypi_assets.catalog.reports.journal_format import JournalStream, Record
from pypi_assets.errors import ExpectedError
from pypi_assets.storage.store import ObjectNotFoundError, Storage

JOURNAL = "journal"
OPEN_PREFIX = "open-"
GRID = 1_000
"""The serials in one segment of the index stream: about an hour of PyPI."""
FORMAT = 1
COMPRESSION_LEVEL = 3
MOST_LINE_BYTES = 64 * 1024**2
"""The most bytes of a record. The limits on files keep records far below it."""
_BUFFER_BYTES = 1024**2
_BLOCK_BYTES = 256 * 1024
_PLAIN_NAME = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,199}")


class JournalDamagedError(ExpectedError):
    """A file of the journal is missing or corrupt. The message names the file and the problem."""


class SegmentMissingError(JournalDamagedError):
    """The file of a segment is missing."""


@dataclass(frozen=True, slots=True)
class SegmentManifest:
    """A segment's position in its chain, and the size and hash of its records.

    `previous` is the hash of the previous manifest, or None in the first. A manifest depends only on the records: it
    has no time, and no compressed size.
    """

    stream: str
    generation: int
    number: int
    serials: SerialRange
    name: str
    records: int
    content_bytes: int
    sha256: str
    previous: str | None

    def encode(self) -> bytes:
        """Return the manifest in its stored form, one line of JSON."""
        fields = {
            "format": FORMAT,
            "stream": self.stream,
            "generation": self.generation,
            "number": self.number,
            "start": self.serials.start,
            "end": self.serials.end,
            "name": self.name,
            "records": self.records,
            "bytes": self.content_bytes,
            "sha256": self.sha256,
            "previous": self.previous,
        }
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)

    @property
    def digest(self) -> str:
        """The hash that the next manifest has as `previous`."""
        return hashlib.sha256(self.encode()).hexdigest()

    @classmethod
    def of(cls, file: SegmentFile, number: int, previous: str | None) -> "SegmentManifest":
        """Return the manifest of a written segment."""
        return cls(
            file.stream,
            file.generation,
            number,
            file.serials,
            file.name,
            file.records,
            file.content_bytes,
            file.sha256,
            previous,
        )


@dataclass(frozen=True, slots=True)
class OpenSegment:
    """The records after the end of a chain, of a segment that is not complete yet. The next write replaces it."""

    serials: SerialRange
    name: str
    records: int
    content_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class LastTakedown:
    """The last takedown of a generation, and the hash of its file. Each takedown's file names the previous takedown."""

    number: int
    digest: str


@dataclass(frozen=True, slots=True)
class Pruned:
    """The last segment whose file was pruned, and the serial at which it ends. Its manifest still exists."""

    number: int
    end: int


@dataclass(frozen=True, slots=True)
class Head:
    """The state of a stream, whose chain begins after the serial `start` and ends at the serial `end`.

    `number` and `digest` describe the last manifest of the chain. They are 0 and None if the chain is empty.
    """

    stream: str
    generation: int
    start: int
    end: int
    number: int
    digest: str | None
    open: OpenSegment | None = None
    takedowns: LastTakedown | None = None
    pruned: Pruned | None = None

    @property
    def through(self) -> int:
        """The serial up to which there are records."""
        return self.open.serials.end if self.open else self.end

    @property
    def first_number(self) -> int:
        """The number of the first segment that has a file."""
        return 1 if self.pruned is None else self.pruned.number + 1

    @property
    def readable_from(self) -> int:
        """The serial above which there are records."""
        return self.start if self.pruned is None else self.pruned.end

    def encode(self) -> bytes:
        """Return the head in its stored form."""
        fields: dict[str, Any] = {
            "format": FORMAT,
            "stream": self.stream,
            "generation": self.generation,
            "start": self.start,
            "end": self.end,
            "number": self.number,
            "digest": self.digest,
            "open": None,
            "takedowns": self.takedowns and asdict(self.takedowns),
            "pruned": self.pruned and asdict(self.pruned),
        }
        if self.open is not None:
            fields["open"] = {
                "start": self.open.serials.start,
                "end": self.open.serials.end,
                "name": self.open.name,
                "records": self.open.records,
                "bytes": self.open.content_bytes,
                "sha256": self.open.sha256,
            }
        return orjson.dumps(fields, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def stream_path(stream: str, generation: int) -> str:
    """Return the folder of a generation of a stream."""
    return f"{JOURNAL}/{stream}/{generation:04d}"


def segment_name(serials: SerialRange, sha256: str, prefix: str = "") -> str:
    """Return the filename of a segment whose records have this hash. Different segments have different names."""
    return f"{prefix}{serials.key}.{sha256[:16]}.jsonl.zst"


def segment_path(segment: SegmentManifest | SegmentFile) -> str:
    """Return the path of a segment's file."""
    return f"{stream_path(segment.stream, segment.generation)}/{segment.name}"


def manifest_path(stream: str, generation: int, number: int) -> str:
    """Return the path of a segment's manifest."""
    return f"{stream_path(stream, generation)}/manifests/{number:08d}.json"


def head_path(stream: str) -> str:
    """Return the path of a stream's head."""
    return f"{JOURNAL}/{stream}/head.json"


def write_segment(
    storage: Storage,
    stream: JournalStream,
    generation: int,
    serials: SerialRange,
    records: Iterable[Record],
    *,
    prefix: str = "",
) -> SegmentFile:
    """Write the file of a segment.

    The name includes the hash of the records, so two writers never replace each other's file.
    """
    lines = map(to_utf8_json, records)
    return write_lines(storage, stream, generation, serials, lines, prefix=prefix)


def write_lines(
    storage: Storage,
    stream: JournalStream,
    generation: int,
    serials: SerialRange,
    lines: Iterable[bytes],
    *,
    prefix: str = "",
) -> SegmentFile:
    """Write the file of a segment from its records as JSON, without newlines."""
    with SegmentWriter(storage, stream, generation, serials, prefix=prefix) as writer:
        writer.add(lines)
        return writer.finish()


class SegmentWriter:
    """Writes the file of a segment, part by part. Several segments can be written at once.

    with SegmentWriter(storage, stream, 1, serials) as writer:
        writer.add([b'{"serial":3}'])
        file = writer.finish()
    """

    def __init__(
        self, storage: Storage, stream: JournalStream, generation: int, serials: SerialRange, *, prefix: str = ""
    ) -> None:
        self._storage, self._stream, self._generation = storage, stream, generation
        self._serials, self._prefix = serials, prefix
        self._digest, self._count, self._size = hashlib.sha256(), 0, 0
        self._lines: list[bytes] = []  # not compressed yet
        self._waiting_bytes = 0
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._local = self._open.enter_context(self._storage.unnamed_file())
        compressor = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL, write_checksum=True)
        self._compressed = compressor.stream_writer(self._local, closefd=False)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def add(self, lines: Iterable[bytes]) -> None:
        """Write the next records, as JSON without newlines."""
        for line in lines:
            self._lines.append(line)
            self._waiting_bytes += len(line)
            if self._waiting_bytes >= _BUFFER_BYTES:
                self._compress()

    def _compress(self) -> None:
        if not self._lines:
            return
        self._count += len(self._lines)
        self._lines.append(b"")  # so that the last record ends with a newline
        block = b"\n".join(self._lines)
        self._size += len(block)
        self._digest.update(block)
        self._compressed.write(block)
        self._lines, self._waiting_bytes = [], 0

    def finish(self) -> SegmentFile:
        """Put the file into the storage. Its name includes the hash of the records."""
        self._compress()
        self._compressed.flush(zstandard.FLUSH_FRAME)
        sha256 = self._digest.hexdigest()
        name = segment_name(self._serials, sha256, self._prefix)
        stored = self._local.tell()
        self._local.seek(0)
        file = SegmentFile(
            self._stream.value, self._generation, self._serials, name, self._count, self._size, stored, sha256
        )
        self._storage.put(segment_path(file), self._local)
        return file


def read_lines(storage: Storage, segment: SegmentManifest) -> Iterator[bytes]:
    """Yield the records of a segment as lines of JSON without newlines.

    The last record is yielded only after the hash of all records was checked. Raises JournalDamagedError.
    """
    return chain.from_iterable(read_blocks(storage, segment))


def read_blocks(storage: Storage, segment: SegmentManifest) -> Iterator[list[bytes]]:
    """Yield the same lines as `read_lines`, in batches: a call for each line would cost more than the line."""
    path = segment_path(segment)
    digest, count, size = hashlib.sha256(), 0, 0
    begun: list[bytes] = []  # the parts of the incomplete line
    held: list[bytes] = []  # the last complete line
    try:
        with storage.open(path) as source:
            reader = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True)
            while block := reader.read(_BLOCK_BYTES):
                digest.update(block)
                size += len(block)
                if size > segment.content_bytes:
                    break
                first, *others = block.split(b"\n")
                begun.append(first)
                if not others:
                    if len(begun) * _BLOCK_BYTES > MOST_LINE_BYTES:
                        break
                    continue
                lines = [*held, b"".join(begun), *others]
                begun, held = [lines.pop()], [lines.pop()]
                count += len(others)
                if lines:
                    yield lines
    except ObjectNotFoundError as error:
        raise SegmentMissingError(f"a segment of the journal is missing: {error}") from error
    except zstandard.ZstdError as error:
        raise JournalDamagedError(f"{storage.uri(path)} is corrupt after record {count}: {error}") from error
    if (digest.hexdigest(), count, size) != (segment.sha256, segment.records, segment.content_bytes) or any(begun):
        raise JournalDamagedError(
            f"{storage.uri(path)} does not match its manifest: {count} records of {size} bytes with the sha256"
            f" {digest.hexdigest()}, not {segment.records} of {segment.content_bytes} with {segment.sha256}"
        )
    if held:
        yield held


def raw_lines(storage: Storage, path: str) -> Iterator[bytes]:
    """Yield the lines of a segment without a manifest, without newlines. Raises ObjectNotFoundError and ZstdError."""
    with storage.open(path) as source:
        lines = io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True))
        while line := lines.readline(MOST_LINE_BYTES):
            yield line.removesuffix(b"\n")


def write_manifest(storage: Storage, manifest: SegmentManifest) -> None:
    """Publish a segment by writing its manifest."""
    storage.put(manifest_path(manifest.stream, manifest.generation, manifest.number), manifest.encode())


def read_manifest(storage: Storage, stream: str, generation: int, number: int) -> SegmentManifest:
    """Return a manifest. Raises JournalDamagedError if it is missing or not in this format."""
    path = manifest_path(stream, generation, number)
    try:
        content = storage.get(path)
    except ObjectNotFoundError as error:
        raise JournalDamagedError(f"a manifest of the journal is missing: {error}") from error
    manifest = decode_manifest(content, storage.uri(path))
    if (manifest.stream, manifest.generation, manifest.number) != (stream, generation, number):
        raise JournalDamagedError(f"{storage.uri(path)} is the manifest of another segment")
    return manifest


def decode_manifest(content: bytes, name: str) -> SegmentManifest:
    """Return the manifest in `content`. Errors use `name` for it. Raises JournalDamagedError."""
    try:
        fields = orjson.loads(content)
        if fields["format"] != FORMAT:
            raise ValueError(f"format {fields['format']}")
        manifest = SegmentManifest(
            stream=JournalStream(fields["stream"]).value,
            generation=number_in(fields["generation"]),
            number=number_in(fields["number"]),
            serials=_serials_in(fields),
            name=plain_name(fields["name"]),
            records=number_in(fields["records"]),
            content_bytes=number_in(fields["bytes"]),
            sha256=text_in(fields["sha256"]),
            previous=None if fields["previous"] is None else text_in(fields["previous"]),
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, RangeError) as error:
        raise JournalDamagedError(f"{name} is not a manifest that this version reads: {error!r}") from error
    if manifest.encode() != content:
        raise JournalDamagedError(f"{name} is not a manifest that this version writes")
    return manifest


def number_in(value: object) -> int:
    """Return a number from a file of the journal. Raises ValueError if it is not a non-negative 64-bit integer."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError(f"not a non-negative 64-bit integer: {str(value)[:80]}")
    return value


def text_in(value: object) -> str:
    """Return a text from a file of the journal. Raises ValueError if it is not a text."""
    if not isinstance(value, str):
        raise ValueError(f"not a text: {str(value)[:80]}")
    return value


def plain_name(value: object) -> str:
    """Return the name of a file in a folder. Raises ValueError if it is not a plain filename."""
    name = text_in(value)
    if _PLAIN_NAME.fullmatch(name) is None:
        raise ValueError(f"not a plain filename: {name!r}")
    return name


def write_head(storage: Storage, head: Head) -> None:
    """Replace the head of a stream."""
    storage.put(head_path(head.stream), head.encode())


def read_head(storage: Storage, stream: str) -> Head | None:
    """Return the head of a stream, or None if there is none yet. Raises JournalDamagedError."""
    path = head_path(stream)
    try:
        content = storage.get(path)
    except ObjectNotFoundError:
        return None
    try:
        fields = orjson.loads(content)
        if fields["format"] != FORMAT:
            raise ValueError(f"format {fields['format']}")
        found, takedowns, pruned = fields["open"], fields.get("takedowns"), fields.get("pruned")
        return Head(
            stream=JournalStream(fields["stream"]).value,
            generation=number_in(fields["generation"]),
            start=number_in(fields["start"]),
            end=number_in(fields["end"]),
            number=number_in(fields["number"]),
            digest=None if fields["digest"] is None else text_in(fields["digest"]),
            open=None if found is None else _open_in(found),
            takedowns=None
            if takedowns is None
            else LastTakedown(number_in(takedowns["number"]), text_in(takedowns["digest"])),
            pruned=None if pruned is None else Pruned(number_in(pruned["number"]), number_in(pruned["end"])),
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, RangeError) as error:
        raise JournalDamagedError(f"{storage.uri(path)} is not a head that this version reads: {error!r}") from error


def _serials_in(fields: Mapping[str, Any]) -> SerialRange:
    """Return the serials of a segment. Raises RangeError if there are none."""
    serials = SerialRange(number_in(fields["start"]), number_in(fields["end"]))
    if serials.start == serials.end:
        raise RangeError(f"a segment without serials: {serials}")
    return serials


def _open_in(fields: Mapping[str, Any]) -> OpenSegment:
    return OpenSegment(
        _serials_in(fields),
        plain_name(fields["name"]),
        number_in(fields["records"]),
        number_in(fields["bytes"]),
        text_in(fields["sha256"]),
    )


def open_manifest(head: Head, found: OpenSegment) -> SegmentManifest:
    """Return the open segment after the chain of `head`, in the form of a manifest."""
    return SegmentManifest(
        head.stream,
        head.generation,
        head.number + 1,
        found.serials,
        found.name,
        found.records,
        found.content_bytes,
        found.sha256,
        head.digest,
    )


def chained(manifest: SegmentManifest, size: int = 0) -> ChainedSegment:
    """Return the segment of a manifest in the form in which the catalog records it."""
    file = SegmentFile(
        manifest.stream,
        manifest.generation,
        manifest.serials,
        manifest.name,
        manifest.records,
        manifest.content_bytes,
        size,
        manifest.sha256,
    )
    return ChainedSegment(file, manifest.number, manifest.digest)
