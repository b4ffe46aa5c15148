"""Writes zips and tars field by field, so that each field can be wrong. Streams of bombs use little memory.

Archives that are only unusual are built by builders.py with the standard library. This module writes those that the
library rejects.
"""

import bz2
import lzma
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

BLOCK = 512
STORED, DEFLATED, DEFLATE64, BZIP2, LZMA, ZSTD, AES = 0, 8, 9, 12, 14, 93, 99
UTF8_FLAG, ENCRYPTED_FLAG, DESCRIPTOR_FLAG = 0x800, 0x1, 0x8
MAX_32 = 0xFFFFFFFF


def deflate(content: bytes) -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    return compressor.compress(content) + compressor.flush()


def deflated_zeros(size: int) -> bytes:
    """Return a raw deflate stream of `size` zeros (a multiple of 16 MiB) by repeating one flushed piece."""
    piece = 16 * 1024**2
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    compressed = compressor.compress(bytes(piece)) + compressor.flush(zlib.Z_FULL_FLUSH)
    return compressed * (size // piece) + b"\x03\x00"


@dataclass(frozen=True, slots=True)
class Entry:
    """One member of a zip. `data` are its bytes in the archive. Fields that are None get their true value.

    The `local_` fields are used in the local header if they differ from the central directory. If `offset` is set, the
    directory claims this offset and no local header is written.
    """

    name: bytes
    content: bytes = b""
    method: int = STORED
    data: bytes | None = None
    flags: int = UTF8_FLAG
    crc: int | None = None
    size: int | None = None
    compressed_size: int | None = None
    local_name: bytes | None = None
    local_size: int | None = None
    extra: bytes = b""
    local_extra: bytes = b""
    external_attr: int = 0o644 << 16
    disk: int = 0
    offset: int | None = None

    @property
    def stored(self) -> bytes:
        if self.data is not None:
            return self.data
        if self.method == DEFLATED:
            return deflate(self.content)
        return bz2.compress(self.content) if self.method == BZIP2 else self.content


def local_header(entry: Entry) -> bytes:
    name = entry.name if entry.local_name is None else entry.local_name
    stored = entry.stored
    sizes = (
        zlib.crc32(entry.content) if entry.crc is None else entry.crc,
        len(stored) if entry.compressed_size is None else entry.compressed_size,
        (len(entry.content) if entry.size is None else entry.size) if entry.local_size is None else entry.local_size,
    )
    if entry.flags & DESCRIPTOR_FLAG:
        sizes = (0, 0, 0)
    fields = (20, entry.flags, entry.method, 0, 0x21, *sizes, len(name), len(entry.local_extra))
    return struct.pack("<4s5H3L2H", b"PK\x03\x04", *fields) + name + entry.local_extra


def central_header(entry: Entry, offset: int) -> bytes:
    return (
        struct.pack(
            "<4s6H3L5H2L",
            b"PK\x01\x02",
            (3 << 8) | 20,
            20,
            entry.flags,
            entry.method,
            0,
            0x21,
            zlib.crc32(entry.content) if entry.crc is None else entry.crc,
            len(entry.stored) if entry.compressed_size is None else entry.compressed_size,
            len(entry.content) if entry.size is None else entry.size,
            len(entry.name),
            len(entry.extra),
            0,
            entry.disk,
            0,
            entry.external_attr,
            offset,
        )
        + entry.name
        + entry.extra
    )


def end_record(
    count: int, size: int, offset: int, *, disk: int = 0, comment: bytes = b"", comment_length: int | None = None
) -> bytes:
    length = len(comment) if comment_length is None else comment_length
    return struct.pack("<4s4H2LH", b"PK\x05\x06", disk, disk, count, count, size, offset, length) + comment


def zip64_end(count: int, size: int, offset: int, position: int) -> bytes:
    """Return the zip64 end record at `position`, and its locator."""
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, offset)
    return record + struct.pack("<4sLQL", b"PK\x06\x07", 0, position, 1)


def raw_zip(
    entries: Iterable[Entry],
    *,
    prefix: bytes = b"",
    prefix_counts: bool = False,
    after_directory: bytes = b"",
    count: int | None = None,
    size_error: int = 0,
    offset_error: int = 0,
    disk: int = 0,
    comment: bytes = b"",
    trailing: bytes = b"",
    zip64: bool = False,
    zip64_count: int | None = None,
    zip64_offset: int | None = None,
    zip64_position: int | None = None,
) -> bytes:
    """Return a zip of `entries`.

    Offsets exclude the `prefix` unless `prefix_counts` is set. With `zip64`, the end record refers to a zip64 record,
    whose fields can be wrong too.
    """
    out = bytearray()
    directory = bytearray()
    shift = len(prefix) if prefix_counts else 0
    number = 0
    for number, entry in enumerate(entries, 1):  # noqa: B007 - the last number is the count
        directory += central_header(entry, shift + len(out) if entry.offset is None else entry.offset)
        if entry.offset is None:
            out += local_header(entry) + entry.stored
            if entry.flags & DESCRIPTOR_FLAG:
                sizes = (zlib.crc32(entry.content), len(entry.stored), len(entry.content))
                out += struct.pack("<4s3L", b"PK\x07\x08", *sizes)
    offset = shift + len(out) + offset_error
    size = len(directory) + size_error
    directory += after_directory
    number = number if count is None else count
    end = end_record(number, size, offset, disk=disk, comment=comment)
    if zip64:
        position = shift + len(out) + len(directory)
        end = zip64_end(
            number if zip64_count is None else zip64_count,
            size,
            offset if zip64_offset is None else zip64_offset,
            position if zip64_position is None else zip64_position,
        ) + end_record(0xFFFF, MAX_32, MAX_32, comment=comment)
    return bytes(prefix + out + directory + end + trailing)


def zip64_extra(*values: int) -> bytes:
    return struct.pack(f"<2H{len(values)}Q", 1, 8 * len(values), *values)


def tar_number(value: int, width: int) -> bytes:
    """Return octal digits, or GNU's base 256 if the number is negative or too large."""
    if 0 <= value < 8 ** (width - 1):
        return f"{value:0{width - 1}o}".encode() + b"\0"
    if value >= 0:
        return b"\x80" + value.to_bytes(width - 1, "big")
    return b"\xff" + value.to_bytes(width - 1, "big", signed=True)


def tar_header(
    name: bytes,
    size: int = 0,
    kind: bytes = b"0",
    *,
    link: bytes = b"",
    prefix: bytes = b"",
    magic: bytes = b"ustar\x0000",
    size_field: bytes | None = None,
    tail: bytes | None = None,
    checksum_error: int = 0,
) -> bytes:
    """Return one header block. `size_field` replaces the written size, `tail` the fields after the device numbers."""
    size_field = tar_number(size, 12) if size_field is None else size_field
    numbers = tar_number(0o644, 8) + tar_number(0, 8) * 2 + size_field.ljust(12, b"\0")[:12] + tar_number(0, 12)
    start = name.ljust(100, b"\0")[:100] + numbers
    end = kind + link.ljust(100, b"\0")[:100] + magic + bytes(64) + tar_number(0, 8) * 2
    end = (end + (prefix if tail is None else tail)).ljust(BLOCK - 156, b"\0")
    checksum = sum(start) + 8 * 32 + sum(end) + checksum_error
    return start + f"{checksum:06o}".encode() + b"\0 " + end


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % BLOCK)


def tar_member(name: bytes, content: bytes = b"", kind: bytes = b"0", **header: bytes) -> bytes:
    return tar_header(name, len(content), kind, **header) + padded(content)  # type: ignore[arg-type]


def pax_record(key: bytes, value: bytes) -> bytes:
    length = len(key) + len(value) + 3
    while len(str(length)) + len(key) + len(value) + 3 != length:
        length = len(str(length)) + len(key) + len(value) + 3
    return b"%d %s=%s\n" % (length, key, value)


def pax_header(records: bytes, kind: bytes = b"x") -> bytes:
    return tar_member(b"PaxHeaders/x", records, kind)


def long_name(name: bytes, kind: bytes = b"L") -> bytes:
    return tar_member(b"././@LongLink", name + b"\0", kind, magic=b"ustar  \0")


def gzip_member(
    content: bytes = b"",
    *,
    deflated: bytes | None = None,
    flags: int = 0,
    header: bytes = b"",
    method: int = 8,
    crc: int | None = None,
    size: int | None = None,
) -> bytes:
    """Return one gzip member. `header` holds the optional fields that `flags` announces."""
    fields = struct.pack("<2sBBLBB", b"\x1f\x8b", method, flags, 0, 2, 255) + header
    tail = (zlib.crc32(content) if crc is None else crc, (len(content) if size is None else size) & MAX_32)
    return fields + (deflate(content) if deflated is None else deflated) + struct.pack("<2L", *tail)


def gzip_of_pieces(pieces: Iterable[tuple[bytes, int]]) -> bytes:
    """Return a gzip member of repeated pieces. Each piece is compressed once. CRC and size are wrong."""
    out = bytearray()
    for piece, times in pieces:
        compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
        out += (compressor.compress(piece) + compressor.flush(zlib.Z_FULL_FLUSH)) * times
    return gzip_member(deflated=bytes(out) + b"\x03\x00")


def xz_with_dictionary(content: bytes, dictionary_bits: int) -> bytes:
    """Return an xz stream whose header requests a dictionary of that size (40 is 4 GiB), regardless of its data."""
    stream = bytearray(lzma.compress(content, preset=0))
    header_size = (stream[12] + 1) * 4  # the block header follows the stream header of 12 bytes
    position = stream.index(b"\x21\x01", 12) + 2  # the LZMA2 filter and the size of its properties
    stream[position] = dictionary_bits
    end = 12 + header_size - 4
    stream[end : end + 4] = struct.pack("<L", zlib.crc32(stream[12:end]))
    return bytes(stream)
