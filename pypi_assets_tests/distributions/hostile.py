"""Hostile and odd distributions, each built by a small generator, with the expected outcome and cost.

Each file gives an error record or a correct record, in bounded time and memory. `CASES` lists all of them.
"""

import bz2
import gzip
import lzma
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import EllipsisType

from pypi_assets.distributions.limits import MIB, ReadLimits
from pypi_assets.distributions.record import ErrorKind
from pypi_assets_tests.builders import Content, core_metadata, tar_bytes, zip_bytes
from pypi_assets_tests.distributions.hostile_sources import (
    MANY,
    PYPROJECTS,
    SETUP,
    SETUP_CFGS,
    SETUP_SCRIPTS,
    built_by,
    setuptools_find,
)
from pypi_assets_tests.distributions.raw_archives import (
    AES,
    BLOCK,
    BZIP2,
    DEFLATE64,
    DEFLATED,
    DESCRIPTOR_FLAG,
    ENCRYPTED_FLAG,
    LZMA,
    MAX_32,
    STORED,
    ZSTD,
    Entry,
    central_header,
    deflate,
    deflated_zeros,
    end_record,
    gzip_member,
    gzip_of_pieces,
    local_header,
    long_name,
    padded,
    pax_header,
    pax_record,
    raw_zip,
    tar_header,
    tar_member,
    tar_number,
    xz_with_dictionary,
    zip64_end,
    zip64_extra,
)

WHEEL = "demo-1.0-py3-none-any.whl"
SDIST = "demo-1.0.tar.gz"
ZIP_SDIST = "demo-1.0.zip"
EGG = "demo-1.0-py2.7.egg"
DIST_INFO = "demo-1.0.dist-info"
PKG_INFO = core_metadata("demo", "1.0", requires_dist=["a"])
STATIC_PKG_INFO = core_metadata("demo", "1.0", metadata_version="2.2", requires_dist=["a"])
OLD_PKG_INFO = core_metadata("demo", "1.0", metadata_version="1.0")
CORRUPT = ErrorKind.CORRUPT_ARCHIVE
NO_METADATA = ErrorKind.NO_METADATA
BAD_METADATA = ErrorKind.BAD_METADATA
LIMIT = ErrorKind.LIMIT_EXCEEDED
UNSUPPORTED = ErrorKind.UNSUPPORTED_KIND
END_OF_TAR = bytes(2 * BLOCK)


ANY = ...
"""Stands for any value."""


@dataclass(frozen=True, slots=True)
class Case:
    """One file and the expected record.

    `expected` is the error's kind. Without an error, `modules` and `requires` are the record's values, and each text in
    `notes` is part of one of its notes. `seconds` is processor time: a generous bound, not a benchmark.
    """

    name: str
    filename: str
    build: Callable[[], bytes]
    expected: ErrorKind | None = None
    modules: tuple[str, ...] | EllipsisType | None = ("demo",)
    requires: tuple[str, ...] | EllipsisType | None = ("a",)
    notes: tuple[str, ...] = ()
    limits: ReadLimits = field(default_factory=ReadLimits)
    seconds: float = 5.0


# Parts of the cases


def entries(*more: Entry, metadata: Entry | None = None, module: bytes = b"demo.py") -> list[Entry]:
    """Return the members of a valid wheel, with `more` between the module and the metadata."""
    kept = metadata or Entry(f"{DIST_INFO}/METADATA".encode(), PKG_INFO.encode(), DEFLATED)
    return [Entry(module, b"x = 1\n", DEFLATED), *more, kept]


def metadata_entry(content: bytes = PKG_INFO.encode(), method: int = DEFLATED, **fields: object) -> Entry:
    return Entry(f"{DIST_INFO}/METADATA".encode(), content, method, **fields)  # type: ignore[arg-type]


def wheel(metadata: Content = PKG_INFO, files: Mapping[str, Content] | None = None, **info: Content) -> bytes:
    """Return a wheel with this METADATA. `info` are other .dist-info files, with `_` for the dot."""
    members: dict[str, Content] = dict(files) if files is not None else {"demo.py": "x = 1\n"}
    members |= {f"{DIST_INFO}/{name.replace('_txt', '.txt')}": content for name, content in info.items()}
    return zip_bytes(members | {f"{DIST_INFO}/METADATA": metadata})


def modules_wheel(*names: str) -> bytes:
    return wheel(files=dict.fromkeys(names, ""))


def sdist(files: Mapping[str, Content], pkg_info: Content | None = PKG_INFO, suffix: str = "tar.gz") -> bytes:
    members = {} if pkg_info is None else {"demo-1.0/PKG-INFO": pkg_info}
    return tar_bytes(members | {f"demo-1.0/{name}": content for name, content in files.items()}, format=suffix)


def setup_sdist(setup_script: Content, **files: Content) -> bytes:
    """Return an sdist whose requirements and modules are declared in setup.py only."""
    members = {"setup.py": setup_script, "demo.py": "", "other/__init__.py": ""}
    return sdist(members | {name.replace("_cfg", ".cfg"): content for name, content in files.items()}, OLD_PKG_INFO)


def setup_cfg_sdist(setup_cfg: Callable[[], Content]) -> bytes:
    return setup_sdist(f"{SETUP}setup()\n", setup_cfg=setup_cfg())


def pyproject_sdist(pyproject: Content, files: Mapping[str, Content] | None = None) -> bytes:
    return sdist({"pyproject.toml": pyproject, "demo.py": ""} | dict(files or {}), STATIC_PKG_INFO)


SDIST_START = tar_member(b"demo-1.0/PKG-INFO", STATIC_PKG_INFO.encode())
SDIST_MODULE = tar_member(b"demo-1.0/demo.py", b"x = 1\n")


def raw_sdist(*parts: bytes, start: bytes = SDIST_START, end: bytes = SDIST_MODULE + END_OF_TAR) -> bytes:
    """Return a .tar.gz of the given tar blocks, between PKG-INFO and the module."""
    return gzip.compress(start + b"".join(parts) + end, mtime=0)


PLAIN_TAR = SDIST_START + SDIST_MODULE + END_OF_TAR


# Bombs


def nested_zips() -> bytes:
    """Return zips in zips in zips, like 42.zip: 16 of 16 of 16 of 16 MiB of zeros."""
    inner = raw_zip([Entry(b"0", data=deflated_zeros(16 * MIB), method=DEFLATED, size=16 * MIB, crc=0)])
    for _ in range(3):
        inner = zip_bytes({f"{number}.zip": inner for number in range(16)})
    return raw_zip(entries(Entry(b"lib.zip", inner)))


def full_overlap() -> bytes:
    """Return thousands of names for one local header and one kernel of zeros (Fifield's full overlap)."""
    kernel = Entry(b"0.py", data=deflated_zeros(16 * MIB), method=DEFLATED, size=16 * MIB, crc=0)
    start = local_header(kernel) + kernel.stored
    named = [
        Entry(b"%d.bin" % number, b"", DEFLATED, data=b"", size=16 * MIB, crc=0, offset=0) for number in range(5000)
    ]
    return raw_zip([*entries(), *named], prefix=start, prefix_counts=True)


def quoted_overlap(kernel: Entry) -> bytes:
    """Return members that overlap (Fifield's quoted overlap).

    Each member is a stored deflate block that quotes the next local header. All members end in the same kernel.
    """
    chain = [kernel]
    body, content = local_header(kernel) + kernel.stored, kernel.content
    lengths = [len(body)]
    for number in range(300):
        quoted = local_header(chain[-1])
        content = quoted + content
        data = struct.pack("<BHH", 0, len(quoted), len(quoted) ^ 0xFFFF) + body
        quoting = Entry(b"q%d.bin" % number, b"", DEFLATED, data, size=len(content), crc=zlib.crc32(content))
        chain.append(quoting)
        body = local_header(quoting) + data
        lengths.append(len(body))
    # an entry's length is its distance from the end
    overlapping = [
        Entry(
            entry.name, b"", DEFLATED, entry.stored, size=size_of(entry), crc=crc_of(entry), offset=len(body) - length
        )
        for entry, length in zip(chain, lengths, strict=True)
    ]
    honest = [entry for entry in entries() if entry.name != kernel.name]
    return raw_zip([*honest, *overlapping], prefix=body, prefix_counts=True)


def size_of(entry: Entry) -> int:
    return len(entry.content) if entry.size is None else entry.size


def crc_of(entry: Entry) -> int:
    return zlib.crc32(entry.content) if entry.crc is None else entry.crc


def metadata_overlap() -> bytes:
    """Return a wheel whose METADATA, entry_points.txt and top_level.txt share one local header."""
    kept = metadata_entry()
    start = local_header(kept) + kept.stored
    twins = [
        Entry(f"{DIST_INFO}/{name}".encode(), PKG_INFO.encode(), DEFLATED, offset=0)
        for name in ("METADATA", "entry_points.txt", "top_level.txt")
    ]
    return raw_zip([Entry(b"demo.py"), *twins], prefix=start, prefix_counts=True)


def many_members(count: int) -> bytes:
    """Return a wheel with `count` more members, all empty. It is assembled without handling each member."""
    honest = raw_zip(entries())
    directory = honest.index(b"PK\1\2")
    local = local_header(Entry(b"0000000"))[:30]
    central = central_header(Entry(b"0000000"), 0)[:42]
    names = [b"%07d" % number for number in range(count)]
    start = honest[:directory] + b"".join([local + name for name in names])
    positions = range(directory, len(start), len(local) + 7)
    listed = [central + struct.pack("<L", at) + name for at, name in zip(positions, names, strict=True)]
    listing = honest[directory : honest.index(b"PK\5\6")] + b"".join(listed)
    end = zip64_end(count + 2, len(listing), len(start), len(start) + len(listing))
    return start + listing + end + end_record(0xFFFF, MAX_32, MAX_32)


def gzip_bomb(zeros: int, start: bytes = SDIST_START) -> bytes:
    """Return PKG-INFO and then a member of `zeros` zeros (a multiple of 16 MiB)."""
    big = tar_header(b"demo-1.0/zeros.bin", zeros)
    return gzip_of_pieces([(start + big, 1), (bytes(16 * MIB), zeros // (16 * MIB)), (END_OF_TAR, 1)])


def million_members() -> bytes:
    """Return a tar of a million empty members in a few kilobytes."""
    piece = b"".join(tar_header(b"demo-1.0/%d.bin" % number) for number in range(1000))
    return gzip_of_pieces([(SDIST_START, 1), (piece, 1000), (END_OF_TAR, 1)])


def pax_chain(count: int) -> bytes:
    return raw_sdist(pax_header(pax_record(b"comment", b"x")) * count)


# Zips


def with_directory_name(name: bytes, local: bytes) -> bytes:
    """Return a wheel whose METADATA is called `name` in the directory and `local` in its own header."""
    return raw_zip([Entry(b"demo.py"), Entry(name, PKG_INFO.encode(), DEFLATED, local_name=local)])


def cut(content: Callable[[], bytes], place: Callable[[bytes], int]) -> bytes:
    whole = content()
    return whole[: place(whole)]


def duplicated_metadata() -> bytes:
    first = core_metadata("demo", "1.0", requires_dist=["first"])
    return raw_zip(entries(metadata_entry(first.encode())))


def zip64_wheel() -> bytes:
    """Return a wheel with all zip64 features: an end record, and a member with sizes and offset in an extra field."""
    content = PKG_INFO.encode()
    first = Entry(b"demo.py", b"x = 1\n", STORED)
    offset = len(local_header(first)) + len(first.stored)
    kept = metadata_entry(content)
    sizes = (len(content), len(kept.stored))
    body = local_header(first) + first.stored
    local = metadata_entry(content, size=MAX_32, compressed_size=MAX_32, local_extra=zip64_extra(*sizes))
    body += local_header(local) + kept.stored
    listed = metadata_entry(content, size=MAX_32, compressed_size=MAX_32, extra=zip64_extra(*sizes, offset))
    directory = central_header(first, 0) + central_header(listed, MAX_32)
    end = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 2, 2, len(directory), len(body))
    end += struct.pack("<4sLQL", b"PK\x06\x07", 0, len(body) + len(directory), 1)
    return body + directory + end + end_record(0xFFFF, MAX_32, MAX_32)


def fake_end_in_comment() -> bytes:
    """Return an archive whose comment ends with an empty archive's end record, which only zipfile finds first."""
    return raw_zip(entries(), comment=end_record(0, 0, 0))


COUNTS = "entries and has 2"
ZIP_CASES = (
    Case("zip: nothing but an end record", WHEEL, lambda: raw_zip([]), NO_METADATA),
    Case("zip: no byte at all", WHEEL, bytes, CORRUPT),
    Case("zip: an html page", WHEEL, lambda: b"<html>not found</html>" * 100, CORRUPT),
    Case("zip: zips in zips are not inflated", WHEEL, nested_zips),
    Case(
        "zip: a member claims 10 GB and has 10 bytes",
        WHEEL,
        lambda: raw_zip(entries(Entry(b"big.bin", bytes(10), size=MAX_32, extra=zip64_extra(10 * 1024**3)))),
    ),
    Case(
        "zip: a member of 10 GB of zeros",
        WHEEL,
        lambda: raw_zip(
            entries(
                Entry(
                    b"big.bin",
                    data=deflated_zeros(10 * 1024 * MIB),
                    method=DEFLATED,
                    size=MAX_32,
                    extra=zip64_extra(10 * 1024**3),
                )
            )
        ),
    ),
    Case(
        "zip: METADATA of 1 GB, as claimed",
        WHEEL,
        lambda: raw_zip(entries(metadata=metadata_entry(b"", data=deflated_zeros(1024 * MIB), size=1024 * MIB))),
        LIMIT,
    ),
    Case(
        "zip: METADATA of 1 GB that claims 100 bytes",
        WHEEL,
        lambda: raw_zip(entries(metadata=metadata_entry(b"", data=deflated_zeros(1024 * MIB), size=100))),
        CORRUPT,
    ),
    Case(
        "zip: METADATA claims 4 GB",
        WHEEL,
        lambda: raw_zip(entries(metadata=metadata_entry(size=MAX_32 - 1))),
        notes=(f"ambiguous archive: demo-1.0.dist-info/METADATA claims {MAX_32 - 1} bytes and has",),
    ),
    Case(
        "zip: METADATA claims 4 GB, and has more than is read",
        WHEEL,
        lambda: raw_zip(entries(metadata=metadata_entry(size=MAX_32 - 1, data=deflate(bytes(20 * MIB))))),
        LIMIT,
    ),
    Case(
        "zip: METADATA claims 2**63 bytes",
        WHEEL,
        lambda: raw_zip(entries(metadata=metadata_entry(size=MAX_32, extra=zip64_extra(2**63)))),
        notes=(f"ambiguous archive: demo-1.0.dist-info/METADATA claims {2**63} bytes and has",),
    ),
    Case(
        "zip: METADATA claims more bytes than it has",
        WHEEL,
        lambda: raw_zip(entries(metadata=metadata_entry(size=len(PKG_INFO) + 100))),
        notes=("claims 164 bytes and has 64",),
    ),
    Case(
        "zip: METADATA claims no bytes and has some",
        WHEEL,
        lambda: raw_zip(entries(metadata=metadata_entry(size=0))),
        CORRUPT,
    ),
    Case(
        "zip: METADATA's compressed size runs past the end",
        WHEEL,
        lambda: raw_zip(entries(metadata=metadata_entry(compressed_size=1_000_000, method=STORED, size=1_000_000))),
        CORRUPT,
    ),
    Case(
        "zip: METADATA's compressed size is too small",
        WHEEL,
        lambda: raw_zip(entries(metadata=metadata_entry(compressed_size=10))),
        CORRUPT,
    ),
    Case("zip: full overlap", WHEEL, full_overlap, CORRUPT),
    Case(
        "zip: quoted overlap around a kernel of zeros",
        WHEEL,
        lambda: quoted_overlap(Entry(b"k.bin", bytes(65536), DEFLATED)),
        CORRUPT,
    ),
    Case("zip: quoted overlap around METADATA", WHEEL, lambda: quoted_overlap(metadata_entry()), CORRUPT),
    Case("zip: three kept names for one local header", WHEEL, metadata_overlap, CORRUPT),
    Case("zip: zip64, honestly", WHEEL, zip64_wheel),
    Case("zip: zip64 end record", WHEEL, lambda: raw_zip(entries(), zip64=True)),
    Case(
        "zip: zip64 locator that points nowhere",
        WHEEL,
        lambda: raw_zip(entries(), zip64=True, zip64_position=2**60),
        None,
    ),
    Case(
        "zip: zip64 directory at 2**60",
        WHEEL,
        lambda: raw_zip(entries(), zip64=True, zip64_offset=2**60),
        CORRUPT,
    ),
    Case(
        "zip: zip64 counts 2**60",
        WHEEL,
        lambda: raw_zip(entries(), zip64=True, zip64_count=2**60),
        notes=(COUNTS,),
    ),
    Case(
        "zip: zip64 extra field cut short",
        WHEEL,
        lambda: raw_zip(entries(metadata=metadata_entry(size=MAX_32, extra=zip64_extra(100)[:7]))),
        CORRUPT,
    ),
    Case(
        "zip: encrypted METADATA",
        WHEEL,
        lambda: raw_zip(entries(metadata=metadata_entry(flags=ENCRYPTED_FLAG))),
        CORRUPT,
    ),
    Case("zip: AES", WHEEL, lambda: raw_zip(entries(metadata=metadata_entry(method=AES))), CORRUPT),
    Case(
        "zip: an encrypted member that is not needed",
        WHEEL,
        lambda: raw_zip(entries(Entry(b"x.bin", b"secret", flags=ENCRYPTED_FLAG))),
        CORRUPT,
    ),
    Case("zip: the second of two disks", WHEEL, lambda: raw_zip(entries(), disk=1), CORRUPT),
    Case(
        "zip: METADATA lies on another disk", WHEEL, lambda: raw_zip(entries(metadata=metadata_entry(disk=3))), CORRUPT
    ),
    Case("zip: the first of a spanned archive", WHEEL, lambda: b"PK\x07\x08" + raw_zip(entries())[:200], CORRUPT),
    Case(
        "zip: two METADATA, the last one counts",
        WHEEL,
        duplicated_metadata,
        notes=("1 member names occur again",),
    ),
    Case(
        "zip: names that differ by case alone",
        WHEEL,
        lambda: modules_wheel("demo.py", "Demo.py", "DEMO/__init__.py"),
        modules=("DEMO", "Demo", "demo"),
    ),
    Case(
        "zip: METADATA and metadata",
        WHEEL,
        lambda: wheel(metadata="rubbish", files={"demo.py": "", f"{DIST_INFO}/metadata": PKG_INFO}),
        BAD_METADATA,
    ),
    Case(
        "zip: absolute and .. names",
        WHEEL,
        lambda: modules_wheel("demo.py", "/abs.py", "../up.py", "x/../../up2.py", "//net/share.py"),
        notes=("member names that lead out of the archive",),
    ),
    Case(
        "zip: drive names and backslashes",
        WHEEL,
        lambda: modules_wheel("demo.py", "C:/evil.py", "C:\\evil.py", "..\\up.py", "back\\slash.py", "aux:stream.py"),
    ),
    Case(
        "zip: METADATA is a symlink",
        WHEEL,
        lambda: raw_zip(entries(metadata=metadata_entry(b"/etc/passwd", external_attr=0o120777 << 16))),
        BAD_METADATA,
    ),
    Case(
        "zip: members that are symlinks, devices and fifos",
        WHEEL,
        lambda: raw_zip(
            entries(
                Entry(b"link.bin", b"/etc/passwd", external_attr=0o120777 << 16),
                Entry(b"device.bin", external_attr=0o060644 << 16),
                Entry(b"fifo.bin", external_attr=0o010644 << 16),
            )
        ),
    ),
    Case("zip: cut in the first local header", WHEEL, lambda: raw_zip(entries())[:20], CORRUPT),
    Case("zip: cut in METADATA", WHEEL, partial(cut, wheel, lambda whole: whole.index(b"METADATA") + 20), CORRUPT),
    Case("zip: cut before the directory", WHEEL, partial(cut, wheel, lambda whole: whole.index(b"PK\1\2")), CORRUPT),
    Case("zip: cut in the directory", WHEEL, partial(cut, wheel, lambda whole: whole.index(b"PK\1\2") + 60), CORRUPT),
    Case("zip: cut before the end record", WHEEL, partial(cut, wheel, lambda whole: whole.index(b"PK\5\6")), CORRUPT),
    Case("zip: cut in the end record", WHEEL, partial(cut, wheel, lambda whole: len(whole) - 1), CORRUPT),
    Case("zip: only its end record is left", WHEEL, lambda: wheel()[-22:], CORRUPT),
    Case("zip: trailing bytes", WHEEL, lambda: raw_zip(entries(), trailing=b"trailing"), modules=("demo",)),
    Case("zip: 100 KB of trailing bytes", WHEEL, lambda: raw_zip(entries(), trailing=bytes(100_000)), CORRUPT),
    Case("zip: a comment of 65,535 bytes", WHEEL, lambda: raw_zip(entries(), comment=b"c" * 65535)),
    Case("zip: an end record in the comment", WHEEL, fake_end_in_comment, CORRUPT),
    Case("zip: a program in front", WHEEL, lambda: raw_zip(entries(), prefix=b"#!/bin/sh\n" * 1000)),
    Case(
        "zip: a program in front that the offsets count",
        WHEEL,
        lambda: raw_zip(entries(), prefix=b"MZ" * 1000, prefix_counts=True),
    ),
    Case("zip: directory offset too large", WHEEL, lambda: raw_zip(entries(), offset_error=7), CORRUPT),
    Case("zip: directory size too large", WHEEL, lambda: raw_zip(entries(), size_error=50), CORRUPT),
    Case("zip: directory size too small", WHEEL, lambda: raw_zip(entries(), size_error=-50), CORRUPT),
    Case("zip: directory size larger than the file", WHEEL, lambda: raw_zip(entries(), size_error=10**6), CORRUPT),
    Case(
        "zip: directory count too large",
        WHEEL,
        lambda: raw_zip(entries(), count=9),
        notes=(COUNTS,),
    ),
    Case(
        "zip: directory count too small",
        WHEEL,
        lambda: raw_zip(entries(), count=1),
        notes=(COUNTS,),
    ),
    Case(
        "zip: a signature after the directory",
        WHEEL,
        lambda: raw_zip(entries(), after_directory=b"PK\5\5\0\0"),
        CORRUPT,
    ),
    Case("zip: METADATA with a wrong CRC", WHEEL, lambda: raw_zip(entries(metadata=metadata_entry(crc=1))), CORRUPT),
    Case(
        "zip: METADATA's local header has another name",
        WHEEL,
        lambda: with_directory_name(f"{DIST_INFO}/METADATA".encode(), f"{DIST_INFO}/metadata".encode()),
        CORRUPT,
    ),
    Case(
        "zip: METADATA's local header is none",
        WHEEL,
        lambda: raw_zip([*entries(), metadata_entry(offset=3)]),
        CORRUPT,
    ),
    Case(
        "zip: METADATA lies after the end",
        WHEEL,
        lambda: raw_zip([Entry(b"demo.py"), metadata_entry(offset=10**6)]),
        CORRUPT,
    ),
    Case(
        "zip: METADATA lies in the directory",
        WHEEL,
        lambda: raw_zip([Entry(b"demo.py"), metadata_entry(offset=len(local_header(Entry(b"demo.py"))))]),
        CORRUPT,
    ),
    Case("zip: data descriptors", WHEEL, lambda: raw_zip(entries(metadata=metadata_entry(flags=DESCRIPTOR_FLAG)))),
    Case(
        "zip: METADATA by deflate64",
        WHEEL,
        lambda: raw_zip(entries(metadata=metadata_entry(method=DEFLATE64))),
        CORRUPT,
    ),
    Case("zip: METADATA by lzma", WHEEL, lambda: raw_zip(entries(metadata=metadata_entry(method=LZMA))), CORRUPT),
    Case("zip: METADATA by zstd", WHEEL, lambda: raw_zip(entries(metadata=metadata_entry(method=ZSTD))), CORRUPT),
    Case("zip: METADATA by bzip2", WHEEL, lambda: raw_zip(entries(metadata=metadata_entry(method=BZIP2)))),
    Case(
        "zip: METADATA's deflate data are rubbish",
        WHEEL,
        lambda: raw_zip(entries(metadata=metadata_entry(data=b"\xff" * 100))),
        CORRUPT,
    ),
    Case("zip: 100,000 members", WHEEL, partial(many_members, 100_000), seconds=8),
    Case("zip: 250,000 members", WHEEL, partial(many_members, 250_000), LIMIT, seconds=8),
    Case("zip: a name of 65,535 bytes", WHEEL, lambda: raw_zip(entries(Entry(b"a/" * 32767 + b"b"))), LIMIT),
    Case("zip: a name with a NUL", WHEEL, lambda: raw_zip(entries(Entry(b"other.bin\0.py"))), modules=ANY),
    Case("zip: a name without a letter", WHEEL, lambda: raw_zip(entries(Entry(b"")))),
    Case("zip: a name that is no UTF-8", WHEEL, lambda: raw_zip(entries(Entry(b"\xff\xfe.bin"))), modules=ANY),
    Case("zip: a name with a surrogate", WHEEL, lambda: raw_zip(entries(Entry(b"\xed\xa0\x80.bin"))), modules=ANY),
    Case(
        "zip: a name in code page 437",
        WHEEL,
        lambda: raw_zip(entries(Entry(b"dem\x94.py", flags=0))),
        modules=("demo", "demö"),
    ),
    Case("zip: a wheel that is a tar", WHEEL, lambda: tar_bytes({f"{DIST_INFO}/METADATA": PKG_INFO}), CORRUPT),
)


# Tars


def sparse_old_gnu(name: bytes, data: bytes, real_size: int, offset: int = 0) -> bytes:
    """Return an old GNU sparse member, with its map in the header. `data` start at `offset` of `real_size` bytes."""
    sparse_map = tar_number(offset, 12) + tar_number(len(data), 12) + bytes(24 * 3) + b"\0" + tar_number(real_size, 12)
    tail = bytes(41) + sparse_map  # preceded by times, offset, long names and an unused byte
    return tar_header(name, len(data), b"S", magic=b"ustar  \0", tail=tail) + padded(data)


def sparse_pax(version: str, name: bytes, data: bytes, real_size: int) -> bytes:
    """Return a sparse member of one of the three kinds in GNU tar's pax headers. `data` are at its start."""
    size = b"%d" % real_size
    if version == "0.0":
        records = pax_record(b"GNU.sparse.size", size) + pax_record(b"GNU.sparse.numblocks", b"1")
        records += pax_record(b"GNU.sparse.offset", b"0") + pax_record(b"GNU.sparse.numbytes", b"%d" % len(data))
    elif version == "0.1":
        records = pax_record(b"GNU.sparse.size", size) + pax_record(b"GNU.sparse.numblocks", b"1")
        records += pax_record(b"GNU.sparse.map", b"0,%d" % len(data)) + pax_record(b"GNU.sparse.name", name)
        name = b"GNUSparseFile.0/x"
    else:
        records = pax_record(b"GNU.sparse.major", b"1") + pax_record(b"GNU.sparse.minor", b"0")
        records += pax_record(b"GNU.sparse.name", name) + pax_record(b"GNU.sparse.realsize", size)
        name, data = b"GNUSparseFile.0/x", padded(b"1\n0\n%d\n" % len(data)) + data
    return pax_header(records) + tar_member(name, data)


SPARSE_MODULE = b"demo-1.0/sparse.py"


def sparse_pkg_info(sparse: Callable[[bytes, bytes, int], bytes]) -> bytes:
    content = STATIC_PKG_INFO.encode()
    return raw_sdist(start=sparse(b"demo-1.0/PKG-INFO", content, len(content)))


def member_kinds() -> bytes:
    """Return links, devices, fifos, and vendor-specific kinds. A link to a module is a module."""
    links = [tar_header(b"demo-1.0/l%d.py" % kind, kind=b"%d" % kind, link=b"/etc/passwd") for kind in (1, 2)]
    nodes = [tar_header(b"demo-1.0/n%d.py" % kind, kind=b"%d" % kind) for kind in (3, 4, 5, 6)]
    return raw_sdist(*links, *nodes, tar_header(b"volume.py", kind=b"V"), tar_header(b"demo-1.0/c.bin", kind=b"7"))


def linked_pkg_info(kind: bytes) -> bytes:
    target = tar_member(b"demo-1.0/info.txt", STATIC_PKG_INFO.encode())
    return raw_sdist(start=target + tar_header(b"demo-1.0/PKG-INFO", kind=kind, link=b"demo-1.0/info.txt"))


def gzipped(plain: bytes) -> bytes:
    return gzip.compress(plain, mtime=0)


TAR_CASES = (
    Case("tar: no byte at all", SDIST, bytes, CORRUPT),
    Case("tar: nothing but its end", SDIST, lambda: gzipped(END_OF_TAR), NO_METADATA),
    Case("tar: 1 GB of zeros and no member", SDIST, lambda: gzip_of_pieces([(bytes(16 * MIB), 64)]), LIMIT),
    Case("tar: a member of 10 GB of zeros", SDIST, lambda: gzip_bomb(10 * 1024 * MIB), LIMIT),
    Case("tar: a member claims 8 EB", SDIST, lambda: raw_sdist(tar_header(b"demo-1.0/big.bin", 2**63)), CORRUPT),
    Case("tar: a member claims 2**90 bytes", SDIST, lambda: raw_sdist(tar_header(b"demo-1.0/big.bin", 2**86)), CORRUPT),
    Case("tar: a size of -512", SDIST, lambda: raw_sdist(tar_header(b"demo-1.0/back.bin", -512)), CORRUPT),
    Case("tar: a size of -1", SDIST, lambda: raw_sdist(tar_header(b"demo-1.0/back.bin", -1)), CORRUPT),
    Case(
        "tar: a size that is no number",
        SDIST,
        lambda: raw_sdist(tar_header(b"demo-1.0/x.bin", size_field=b"12 rubbish")),
        CORRUPT,
    ),
    Case("tar: a million members", SDIST, million_members, LIMIT, limits=ReadLimits(max_members=20_000)),
    Case("tar: 5,000 pax headers in a row", SDIST, partial(pax_chain, 5000), CORRUPT),
    Case("tar: 5,000 long names in a row", SDIST, lambda: raw_sdist(long_name(b"x") * 5000), CORRUPT),
    Case("tar: 900 pax headers in a row", SDIST, partial(pax_chain, 900), CORRUPT),
    Case("tar: a pax header of 4 GB", SDIST, lambda: raw_sdist(tar_header(b"x", 2**32, b"x"), end=b""), LIMIT),
    Case("tar: a pax header of 20 MB", SDIST, lambda: raw_sdist(pax_header(bytes(20 * MIB))), LIMIT),
    Case(
        "tar: a global pax header",
        SDIST,
        lambda: raw_sdist(start=pax_header(pax_record(b"comment", b"0" * 40), b"g") + SDIST_START),
    ),
    Case(
        "tar: 5,000 global pax headers",
        SDIST,
        lambda: raw_sdist(b"".join(pax_header(pax_record(b"key%d" % number, b"x"), b"g") for number in range(5000))),
    ),
    Case(
        "tar: a global pax header that renames all",
        SDIST,
        lambda: raw_sdist(pax_header(pax_record(b"path", b"demo-1.0/renamed.py"), b"g")),
        modules=ANY,
    ),
    Case(
        "tar: a global pax header that sizes all",
        SDIST,
        lambda: raw_sdist(pax_header(pax_record(b"size", b"512"), b"g"), tar_member(b"demo-1.0/empty.py")),
        modules=("demo", "empty"),
    ),
    Case(
        "tar: pax path",
        SDIST,
        lambda: raw_sdist(pax_header(pax_record(b"path", b"demo-1.0/other.py")), tar_member(b"x.bin")),
        modules=("demo", "other"),
    ),
    Case(
        "tar: pax path that leads out",
        SDIST,
        lambda: raw_sdist(pax_header(pax_record(b"path", b"demo-1.0/../../evil.py")), tar_member(b"x.bin")),
        notes=("member names that lead out of the archive",),
    ),
    Case(
        "tar: pax path that is no UTF-8",
        SDIST,
        lambda: raw_sdist(
            pax_header(pax_record(b"hdrcharset", b"BINARY") + pax_record(b"path", b"demo-1.0/\xff.bin")),
            tar_member(b"x.bin"),
        ),
    ),
    Case(
        "tar: pax size",
        SDIST,
        lambda: raw_sdist(pax_header(pax_record(b"size", b"600")), tar_header(b"demo-1.0/x.bin"), padded(b"x" * 600)),
    ),
    Case(
        "tar: pax size after the end",
        SDIST,
        lambda: raw_sdist(pax_header(pax_record(b"size", b"9" * 15)), tar_header(b"demo-1.0/x.bin")),
        CORRUPT,
    ),
    Case(
        "tar: pax size that is negative",
        SDIST,
        lambda: raw_sdist(pax_header(pax_record(b"size", b"-1024")), tar_header(b"demo-1.0/x.bin")),
        CORRUPT,
    ),
    Case(
        "tar: pax size of 5,000 digits",
        SDIST,
        lambda: raw_sdist(pax_header(pax_record(b"size", b"9" * 5000)), tar_header(b"demo-1.0/x.bin")),
        CORRUPT,
    ),
    Case("tar: pax record of length 0", SDIST, lambda: raw_sdist(pax_header(b"0 a=b\n")), CORRUPT),
    Case("tar: pax record that is too long", SDIST, lambda: raw_sdist(pax_header(b"999 a=b\n")), CORRUPT),
    Case("tar: pax record without a number", SDIST, lambda: raw_sdist(pax_header(b"x a=b\n")), CORRUPT),
    Case("tar: pax record without =", SDIST, lambda: raw_sdist(pax_header(b"6 abc\n")), CORRUPT),
    Case("tar: pax length of 10,000 digits", SDIST, lambda: raw_sdist(pax_header(b"9" * 10_000 + b" a=b\n")), CORRUPT),
    Case(
        "tar: long name",
        SDIST,
        lambda: raw_sdist(long_name(b"demo-1.0/" + b"p" * 120 + b".py"), tar_member(b"x.bin")),
        modules=("demo", "p" * 120),
    ),
    Case(
        "tar: long link",
        SDIST,
        lambda: raw_sdist(long_name(b"/etc/" * 50, b"K"), tar_header(b"demo-1.0/l.bin", kind=b"2")),
    ),
    Case("tar: long name of 10 MB", SDIST, lambda: raw_sdist(long_name(b"x" * 10 * MIB), tar_member(b"x")), LIMIT),
    Case(
        "tar: a name longer than the limit", SDIST, lambda: raw_sdist(long_name(b"x" * 5000), tar_member(b"x")), LIMIT
    ),
    Case("tar: long name and then the end", SDIST, lambda: raw_sdist(long_name(b"x" * 200), end=b""), CORRUPT),
    Case("tar: links, devices, fifos, unknown kinds", SDIST, member_kinds, modules=ANY),
    Case("tar: PKG-INFO is a symlink", SDIST, partial(linked_pkg_info, b"2"), NO_METADATA),
    Case("tar: PKG-INFO is a hard link", SDIST, partial(linked_pkg_info, b"1"), requires=("a",)),
    Case(
        "tar: the top folder is a symlink",
        SDIST,
        lambda: raw_sdist(start=tar_header(b"demo-1.0", kind=b"2", link=b"/etc") + SDIST_START),
    ),
    Case(
        "tar: a sparse module of 8 TB, old GNU",
        SDIST,
        lambda: raw_sdist(sparse_old_gnu(SPARSE_MODULE, b"x = 1\n", 8 * 1024**4)),
        modules=("demo", "sparse"),
    ),
    *(
        Case(
            f"tar: a sparse module of 8 TB, pax {version}",
            SDIST,
            partial(lambda version: raw_sdist(sparse_pax(version, SPARSE_MODULE, b"x = 1\n", 8 * 1024**4)), version),
            modules=("demo", "sparse"),
        )
        for version in ("0.0", "0.1", "1.0")
    ),
    Case("tar: sparse PKG-INFO, old GNU", SDIST, partial(sparse_pkg_info, sparse_old_gnu)),
    *(
        Case(f"tar: sparse PKG-INFO, pax {version}", SDIST, partial(sparse_pkg_info, partial(sparse_pax, version)))
        for version in ("0.0", "0.1", "1.0")
    ),
    Case(
        "tar: PKG-INFO with a hole of 8 TB",
        SDIST,
        lambda: raw_sdist(start=sparse_old_gnu(b"demo-1.0/PKG-INFO", b"x", 8 * 1024**4, 8 * 1024**4 - 1)),
        LIMIT,
    ),
    Case(
        "tar: a sparse map that goes on after the end",
        SDIST,
        lambda: raw_sdist(
            tar_header(SPARSE_MODULE, 6, b"S", magic=b"ustar  \0", tail=bytes(41) + bytes(24 * 4) + b"\1"), end=b""
        ),
        CORRUPT,
    ),
    Case(
        "tar: a pax sparse map of 200,000 holes",
        SDIST,
        lambda: raw_sdist(
            pax_header(pax_record(b"GNU.sparse.map", b"0,0," * 200_000 + b"0,0")), tar_member(SPARSE_MODULE)
        ),
        modules=ANY,
    ),
    Case("tar: cut in a header", SDIST, lambda: gzipped(PLAIN_TAR[:700]), CORRUPT),
    Case("tar: cut in PKG-INFO", SDIST, lambda: gzipped(PLAIN_TAR[: BLOCK + 20]), CORRUPT),
    Case("tar: cut in the padding", SDIST, lambda: gzipped(SDIST_START + SDIST_MODULE[: BLOCK + 100]), CORRUPT),
    Case("tar: no end", SDIST, lambda: raw_sdist(end=SDIST_MODULE)),
    Case("tar: half an end", SDIST, lambda: raw_sdist(end=SDIST_MODULE + bytes(BLOCK))),
    Case("tar: another tar after the end", SDIST, lambda: raw_sdist(end=SDIST_MODULE + END_OF_TAR + SDIST_MODULE)),
    Case("tar: rubbish after the end", SDIST, lambda: raw_sdist(end=SDIST_MODULE + END_OF_TAR + b"rubbish" * 999)),
    Case("tar: rubbish from the start", SDIST, lambda: gzipped(b"rubbish " * 999), CORRUPT),
    Case(
        "tar: a wrong checksum in the middle",
        SDIST,
        lambda: raw_sdist(tar_header(b"demo-1.0/x.bin", checksum_error=1)),
        CORRUPT,
    ),
    Case(
        "tar: headers of 1979",
        SDIST,
        lambda: raw_sdist(start=tar_member(b"demo-1.0/PKG-INFO", STATIC_PKG_INFO.encode(), magic=bytes(8))),
    ),
    Case(
        "tar: a name in two fields",
        SDIST,
        lambda: raw_sdist(tar_header(b"split.py", prefix=b"demo-1.0")),
        modules=("demo", "split"),
    ),
    Case("tar: a name with a NUL", SDIST, lambda: raw_sdist(tar_header(b"demo-1.0/x.bin\0.py"))),
    Case("tar: no name", SDIST, lambda: raw_sdist(tar_header(b""))),
    Case(
        "tar: a file that is named like a folder",
        SDIST,
        lambda: raw_sdist(tar_header(b"demo-1.0/folder.py/")),
        modules=("demo", "folder"),
        notes=("end in a slash",),
    ),
    Case(
        "tar: ./ in front of every name",
        SDIST,
        lambda: tar_bytes({"./demo-1.0/PKG-INFO": STATIC_PKG_INFO, "./demo-1.0/./demo.py": "", "./": ""}),
    ),
    Case(
        "tar: absolute and .. names",
        SDIST,
        lambda: raw_sdist(*(tar_member(name) for name in (b"/abs.py", b"../up.py", b"demo-1.0/../../up.py", b".."))),
        notes=("member names that lead out of the archive",),
    ),
    Case(
        "tar: drive names and backslashes",
        SDIST,
        lambda: raw_sdist(*(tar_member(b"demo-1.0/" + name) for name in (b"C:evil.py", b"back\\slash.py", b"a:b.py"))),
    ),
    Case(
        "tar: two PKG-INFO, the last one counts",
        SDIST,
        lambda: raw_sdist(
            start=tar_member(b"demo-1.0/PKG-INFO", core_metadata("demo", "1.0", requires_dist=["first"]).encode())
            + SDIST_START
        ),
        notes=("1 member names occur again",),
    ),
    Case("tar: PKG-INFO beyond its limit", SDIST, lambda: sdist({"demo.py": ""}, PKG_INFO + "x" * 9 * MIB), LIMIT),
    Case(
        "tar: many metadata files beyond their limit",
        SDIST,
        lambda: sdist({f"d{number}.egg-info/PKG-INFO": PKG_INFO + " " * 5 * MIB for number in range(4)}),
        LIMIT,
    ),
    Case("tar: an sdist without a top folder", SDIST, lambda: tar_bytes({"PKG-INFO": STATIC_PKG_INFO, "demo.py": ""})),
    Case(
        "tar: a hundred top folders",
        SDIST,
        lambda: raw_sdist(*(tar_member(b"top%d/m.py" % number) for number in range(100))),
    ),
    Case(
        "tar: folders 1,500 deep",
        SDIST,
        lambda: sdist({"d/" * 1500 + "x.py": "", "demo.py": ""}, STATIC_PKG_INFO),
        modules=ANY,
    ),
)


# Compressions


def optional_header_fields() -> bytes:
    header = struct.pack("<H", 5) + b"extra" + b"name\0" + b"comment\0"
    flags = 4 | 8 | 16 | 2
    start = struct.pack("<2sBBLBB", b"\x1f\x8b", 8, flags, 0, 2, 255) + header
    return gzip_member(PLAIN_TAR, flags=flags, header=header + struct.pack("<H", zlib.crc32(start) & 0xFFFF))


def compress_bomb(compress: Callable[[bytes], bytes]) -> bytes:
    """Return a gigabyte of zeros as many compressed parts after PKG-INFO."""
    start = SDIST_START + tar_header(b"demo-1.0/zeros.bin", 1024 * MIB)
    return compress(start) + compress(bytes(16 * MIB)) * 64


def damaged(content: bytes, from_end: int) -> bytes:
    return content[:-from_end] + bytes([content[-from_end] ^ 0x55]) + content[len(content) - from_end + 1 :]


def lzma_of(content: bytes) -> bytes:
    """Compress in xz's older format, which has no checksums."""
    return lzma.compress(content, lzma.FORMAT_ALONE, preset=0)


XZ_BOMB_LIMITS = ReadLimits(ratio_free_bytes=32 * MIB)
COMPRESSION_CASES = (
    Case("gzip: it is a zip", SDIST, lambda: zip_bytes({"demo-1.0/PKG-INFO": STATIC_PKG_INFO, "demo-1.0/demo.py": ""})),
    Case("gzip: it is bzip2", SDIST, lambda: bz2.compress(PLAIN_TAR)),
    Case("gzip: it is xz", SDIST, lambda: lzma.compress(PLAIN_TAR)),
    Case("gzip: it is a plain tar", SDIST, lambda: PLAIN_TAR),
    Case("gzip: it is an html page", SDIST, lambda: b"<!doctype html>" * 200, CORRUPT),
    Case("gzip: it is lzma", SDIST, lambda: lzma_of(PLAIN_TAR)),
    Case("compress: .tar.Z", "demo-1.0.tar.Z", lambda: b"\x1f\x9d\x90" + bytes(100), UNSUPPORTED),
    Case("zstd: .tar.gz", SDIST, lambda: b"\x28\xb5\x2f\xfd" + bytes(100), UNSUPPORTED),
    Case("7z: .zip", ZIP_SDIST, lambda: b"7z\xbc\xaf\x27\x1c" + bytes(100), UNSUPPORTED),
    Case("rar: .zip", ZIP_SDIST, lambda: b"Rar!\x1a\7\0" + bytes(100), UNSUPPORTED),
    Case("zip: .zip that is a .tar.gz", ZIP_SDIST, lambda: raw_sdist()),
    Case("gzip: twice", SDIST, lambda: gzipped(gzipped(PLAIN_TAR)), CORRUPT),
    Case("gzip: all optional header fields", SDIST, optional_header_fields),
    Case(
        "gzip: an extra field that goes on after the end",
        SDIST,
        lambda: gzip_member(flags=4, header=b"\xff\xff")[:40],
        CORRUPT,
    ),
    Case("gzip: a name of 10 MB without an end", SDIST, lambda: gzip_member(flags=8, header=b"n" * 10 * MIB), CORRUPT),
    Case("gzip: a method that is none", SDIST, lambda: gzip_member(PLAIN_TAR, method=7), CORRUPT),
    Case("gzip: nothing but a header", SDIST, lambda: gzip_member()[:10], CORRUPT),
    Case("gzip: an empty member", SDIST, gzip_member, CORRUPT),
    Case("gzip: a wrong CRC", SDIST, lambda: gzip_member(PLAIN_TAR, crc=1), CORRUPT),
    Case("gzip: a wrong size", SDIST, lambda: gzip_member(PLAIN_TAR, size=1), CORRUPT),
    Case("gzip: without its last byte", SDIST, lambda: gzipped(PLAIN_TAR)[:-1], CORRUPT),
    Case("gzip: without its tail", SDIST, lambda: gzipped(PLAIN_TAR)[:-8], CORRUPT),
    Case("gzip: the first half", SDIST, lambda: gzipped(PLAIN_TAR)[: len(gzipped(PLAIN_TAR)) // 2], CORRUPT),
    Case("gzip: rubbish deflate data", SDIST, lambda: gzip_member(deflated=b"\xff" * 999), CORRUPT),
    Case("gzip: several members", SDIST, lambda: gzip_member(PLAIN_TAR[:700]) + gzip_member(PLAIN_TAR[700:])),
    Case("gzip: a member a byte", SDIST, lambda: b"".join(gzip_member(bytes([byte])) for byte in PLAIN_TAR)),
    Case("gzip: 50,000 empty members", SDIST, lambda: gzip_member() * 50_000 + gzipped(PLAIN_TAR)),
    Case("gzip: trailing zeros", SDIST, lambda: gzipped(PLAIN_TAR) + bytes(MIB)),
    Case(
        "gzip: trailing rubbish",
        SDIST,
        lambda: gzipped(PLAIN_TAR) + b"rubbish",
        notes=("bytes after the end of the compressed data",),
    ),
    Case("gzip: a broken member after the end", SDIST, lambda: gzipped(PLAIN_TAR) + b"\x1f\x8b\x08broken", CORRUPT),
    Case(
        "bzip2: many streams",
        "demo-1.0.tar.bz2",
        lambda: b"".join(bz2.compress(PLAIN_TAR[start : start + 10]) for start in range(0, len(PLAIN_TAR), 10)),
    ),
    Case("bzip2: cut", "demo-1.0.tar.bz2", lambda: bz2.compress(PLAIN_TAR)[:-5], CORRUPT),
    Case("bzip2: damaged", "demo-1.0.tar.bz2", lambda: damaged(bz2.compress(PLAIN_TAR), 40), CORRUPT),
    Case("bzip2: a bomb", "demo-1.0.tar.bz2", partial(compress_bomb, bz2.compress), LIMIT, limits=XZ_BOMB_LIMITS),
    Case(
        "xz: a bomb",
        "demo-1.0.tar.xz",
        partial(compress_bomb, partial(lzma.compress, preset=0)),
        LIMIT,
        limits=XZ_BOMB_LIMITS,
    ),
    Case("xz: a dictionary of 4 GB", "demo-1.0.tar.xz", lambda: xz_with_dictionary(PLAIN_TAR, 40), CORRUPT),
    Case("xz: a dictionary of 64 MB", "demo-1.0.tar.xz", lambda: xz_with_dictionary(PLAIN_TAR, 28)),
    Case(
        "xz: many streams",
        "demo-1.0.tar.xz",
        lambda: b"".join(
            lzma.compress(PLAIN_TAR[start : start + 50]) + bytes(4) for start in range(0, len(PLAIN_TAR), 50)
        ),
    ),
    Case("xz: cut", "demo-1.0.tar.xz", lambda: lzma.compress(PLAIN_TAR)[:-5], CORRUPT),
    Case("xz: damaged", "demo-1.0.tar.xz", lambda: damaged(lzma.compress(PLAIN_TAR), 60), CORRUPT),
    Case("xz: it is lzma", "demo-1.0.tar.xz", lambda: lzma_of(PLAIN_TAR)),
    Case("lzma: a bomb", "demo-1.0.tar.lzma", partial(compress_bomb, lzma_of), LIMIT, limits=XZ_BOMB_LIMITS),
    Case("lzma: a dictionary of 1 GB", "demo-1.0.tar.lzma", lambda: b"]\0\0\0\x40" + lzma_of(PLAIN_TAR)[5:], CORRUPT),
    Case("lzma: cut", "demo-1.0.tar.lzma", lambda: lzma_of(PLAIN_TAR)[:-5], CORRUPT),
)


# Core metadata and the files next to it

HEADERS = "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"


def requirements_wheel(*requirements: str) -> bytes:
    return wheel(core_metadata("demo", "1.0", requires_dist=requirements))


def egg(pkg_info: Content | None = OLD_PKG_INFO, **info: Content) -> bytes:
    members: dict[str, Content] = {"demo.py": ""}
    members |= {f"EGG-INFO/{name.replace('_txt', '.txt')}": content for name, content in info.items()}
    return zip_bytes(members if pkg_info is None else members | {"EGG-INFO/PKG-INFO": pkg_info})


METADATA_CASES = (
    Case("metadata: empty", WHEEL, partial(wheel, ""), BAD_METADATA),
    Case("metadata: random bytes", WHEEL, lambda: wheel(deflate(bytes(9999)) * 9), BAD_METADATA),
    Case("metadata: UTF-16", WHEEL, lambda: wheel(PKG_INFO.encode("utf-16")), BAD_METADATA),
    Case("metadata: a byte order mark", WHEEL, lambda: wheel(b"\xef\xbb\xbf" + PKG_INFO.encode()), BAD_METADATA),
    Case(
        "metadata: Latin-1",
        WHEEL,
        lambda: wheel((HEADERS + "Summary: \xe9\n").encode("latin-1")),
        requires=(),
        notes=("not UTF-8",),
    ),
    Case("metadata: NUL bytes", WHEEL, lambda: wheel(PKG_INFO.replace("Name: demo", "Name: de\0mo")), notes=("NUL",)),
    Case("metadata: lines end in CR", WHEEL, lambda: wheel(PKG_INFO.replace("\n", "\r"))),
    Case("metadata: lines end in CR LF", WHEEL, lambda: wheel(PKG_INFO.replace("\n", "\r\n"))),
    Case("metadata: a blank line in front", WHEEL, lambda: wheel("\n" + PKG_INFO), BAD_METADATA),
    Case("metadata: a header of 1 MB", WHEEL, lambda: wheel(f"{HEADERS}Summary: {'x' * MIB}\n"), requires=()),
    Case("metadata: a header of 7 MB", WHEEL, lambda: wheel(f"{HEADERS}Summary: {'x' * 7 * MIB}\n"), LIMIT),
    Case("metadata: a header of 10 MB", WHEEL, lambda: wheel(f"{HEADERS}Summary: {'x' * 10 * MIB}\n"), LIMIT),
    Case(
        "metadata: a header of 200,000 lines",
        WHEEL,
        lambda: wheel(f"{HEADERS}Summary: x\n" + " y\n" * 200_000),
        requires=(),
    ),
    Case("metadata: a description of a line of 7 MB", WHEEL, lambda: wheel(f"{PKG_INFO}{'x' * 7 * MIB}")),
    Case("metadata: 200,000 blank headers", WHEEL, lambda: wheel(HEADERS + "X:\n" * 200_000), requires=()),
    Case(
        "metadata: 50,000 requirements",
        WHEEL,
        lambda: requirements_wheel(*(f"p{number}>={number}" for number in range(50_000))),
        requires=tuple(f"p{number}>={number}" for number in range(50_000)),
    ),
    Case(
        "metadata: 100,000 requirements",
        WHEEL,
        lambda: requirements_wheel(*(f"p{number}>={number}" for number in range(100_000))),
        LIMIT,
    ),
    Case("metadata: one requirement 20,000 times", WHEEL, lambda: requirements_wheel(*["a"] * MANY)),
    Case("metadata: a requirement of 1 MB", WHEEL, lambda: requirements_wheel("a" * MIB), requires=ANY),
    Case(
        "metadata: a requirement with 20,000 clauses",
        WHEEL,
        lambda: requirements_wheel("a" + ",".join(f">={number}" for number in range(MANY))),
        requires=ANY,
    ),
    Case(
        "metadata: a marker 20,000 parentheses deep",
        WHEEL,
        lambda: requirements_wheel(f"a; {'(' * MANY}os_name == 'x'{')' * MANY}"),
        requires=ANY,
    ),
    Case(
        "metadata: a marker of 20,000 terms",
        WHEEL,
        lambda: requirements_wheel("a; " + " or ".join(["os_name == 'x'"] * MANY)),
        requires=ANY,
    ),
    Case("metadata: requirements of old", WHEEL, lambda: requirements_wheel("lxml (>=3.3.4)", "b (1.0)"), requires=ANY),
    Case("metadata: a requirement of spaces", WHEEL, lambda: requirements_wheel("a" + " " * MIB + "b"), requires=ANY),
    Case("metadata: a version of 20,000 digits", WHEEL, lambda: requirements_wheel("a>=" + "1" * MANY), requires=ANY),
    Case(
        "metadata: a version of 20,000 parts",
        WHEEL,
        lambda: requirements_wheel("a>=" + "1." * MANY + "1"),
        requires=ANY,
    ),
    Case(
        "metadata: a URL of 1 MB", WHEEL, lambda: requirements_wheel("a @ https://" + "x/" * (MIB // 2)), requires=ANY
    ),
    Case(
        "metadata: Version of 20,000 digits",
        WHEEL,
        lambda: wheel(core_metadata("demo", "1" * MANY, requires_dist=["a"])),
        notes=("another version",),
    ),
    Case(
        "metadata: Name of 1 MB",
        WHEEL,
        lambda: wheel(core_metadata("d" * MIB, "1.0", requires_dist=["a"])),
        modules=ANY,
    ),
    Case(
        "metadata: Requires-Python of 1 MB",
        WHEEL,
        lambda: wheel(core_metadata("demo", "1.0", requires_dist=["a"], requires_python=">=3," * 250_000 + ">=3")),
    ),
    Case(
        "metadata: control characters", WHEEL, lambda: wheel(f"{PKG_INFO[:-1]}Summary: \x1b[31m\x07\x85\u2028\u202e\n")
    ),
    Case(
        "metadata: 20,000 extras",
        WHEEL,
        lambda: wheel(core_metadata("demo", "1.0", requires_dist=["a"], provides_extra=map(str, range(MANY)))),
    ),
    Case(
        "dist-info: two that fit",
        WHEEL,
        lambda: wheel(files={"demo.py": "", "Demo-1.0.0.dist-info/METADATA": PKG_INFO}),
        BAD_METADATA,
    ),
    Case(
        "dist-info: two that both fit inexactly",
        WHEEL,
        lambda: zip_bytes({"Demo-1.0.dist-info/METADATA": PKG_INFO, "DEMO-1.0.dist-info/METADATA": PKG_INFO}),
        BAD_METADATA,
    ),
    Case("dist-info: none", WHEEL, lambda: zip_bytes({"demo.py": ""}), NO_METADATA),
    Case("dist-info: below a folder", WHEEL, lambda: zip_bytes({f"x/{DIST_INFO}/METADATA": PKG_INFO}), NO_METADATA),
    Case(
        "dist-info: of another project",
        WHEEL,
        lambda: zip_bytes({"demo.py": "", "other-2.0.dist-info/METADATA": PKG_INFO.replace("demo", "other")}),
        notes=("another project",),
    ),
    Case(
        "dist-info: 1,000 of them",
        WHEEL,
        lambda: zip_bytes({f"d{number}-1.0.dist-info/METADATA": PKG_INFO for number in range(1000)}),
        BAD_METADATA,
    ),
    Case(
        "entry points: 20,000 lines",
        WHEEL,
        lambda: wheel(entry_points_txt="[x]\n" + "".join(f"e{number} = a:b\n" for number in range(MANY))),
    ),
    Case(
        "entry points: 20,000 groups",
        WHEEL,
        lambda: wheel(entry_points_txt="".join(f"[g{n}]\na=b\n" for n in range(MANY))),
    ),
    Case(
        "entry points: rubbish",
        WHEEL,
        lambda: wheel(entry_points_txt=b"[[[\n]\n= =\n[]\na\n\xff\0[x\ny]=\n[z]\n=b\nb="),
    ),
    Case("top level: 20,000 names", WHEEL, lambda: wheel(top_level_txt="\n".join(f"t{n}" for n in range(MANY)))),
    Case("top level: a line of 1 MB", WHEEL, lambda: wheel(top_level_txt="x" * MIB)),
    Case("top level: a line of 7 MB", WHEEL, lambda: wheel(top_level_txt="x" * 7 * MIB), LIMIT),
    Case("top level: a line of spaces and #", WHEEL, lambda: wheel(top_level_txt=" #" * (MIB // 2))),
    Case("egg: no EGG-INFO", EGG, partial(egg, None), NO_METADATA),
    Case("egg: nothing required", EGG, egg, requires=()),
    Case("egg: a tar", EGG, lambda: tar_bytes({"EGG-INFO/PKG-INFO": PKG_INFO}), CORRUPT),
    Case(
        "egg: EGG-INFO in lower case",
        EGG,
        lambda: zip_bytes({"demo.py": "", "egg-info/PKG-INFO": PKG_INFO}),
        NO_METADATA,
    ),
    Case("egg: EGG-INFO is a file", EGG, lambda: zip_bytes({"demo.py": "", "EGG-INFO": PKG_INFO}), NO_METADATA),
    Case("egg: rubbish PKG-INFO", EGG, partial(egg, "rubbish"), BAD_METADATA),
    Case(
        "requires.txt: broken sections",
        EGG,
        lambda: egg(requires_txt="a\n[\n]\n[:]\n[x\n[:bad marker]\nb\n[x:y:z]\nc\n[[x]]\nd\n[]\ne\n=\n;\n@\n; x\n"),
        requires=ANY,
    ),
    Case("requires.txt: random bytes", EGG, lambda: egg(requires_txt=deflate(bytes(range(256)) * 99)), requires=ANY),
    Case(
        "requires.txt: 20,000 lines",
        EGG,
        lambda: egg(requires_txt="".join(f"r{n}\n" for n in range(MANY))),
        requires=ANY,
    ),
    Case(
        "requires.txt: 20,000 sections",
        EGG,
        lambda: egg(requires_txt="".join(f"[e{n}]\n" for n in range(MANY))),
        requires=(),
    ),
    Case("requires.txt: a section of 3 MB", EGG, lambda: egg(requires_txt=f"[x:{'or ' * MIB}]\na\nb\n"), LIMIT),
    Case("requires.txt: a section of 30 KB", EGG, lambda: egg(requires_txt=f"[x:{'or ' * 10_000}]\na\n"), requires=ANY),
)


# Sdists: setup.py, pyproject.toml, setup.cfg


def setup_case(name: str, script: Callable[[], Content]) -> Case:
    return Case(f"setup.py: {name}", SDIST, lambda: setup_sdist(script()), None, ANY, ANY)


A_NAMES = {f"{'a' * 60}{number}/{'a' * 60}/__init__.py": "" for number in range(50)}


def pyproject_case(name: str, pyproject: Callable[[], Content]) -> Case:
    return Case(f"pyproject.toml: {name}", SDIST, lambda: pyproject_sdist(pyproject(), A_NAMES), None, ANY, ANY)


def many_patterns() -> bytes:
    """Return 1,500 patterns for 1,500 folders. Matching each pattern with each folder costs their product."""
    patterns = [f"*x{number}y*" for number in range(1500)]
    return pyproject_sdist(
        setuptools_find(include=patterns, exclude=patterns), {f"p{number}/__init__.py": "" for number in range(1500)}
    )


SDIST_CASES = (
    *(setup_case(name, script) for name, script in SETUP_SCRIPTS.items()),
    *(pyproject_case(name, pyproject) for name, pyproject in PYPROJECTS.items()),
    Case("pyproject.toml: 1,500 patterns and 1,500 packages", SDIST, many_patterns, LIMIT),
    *(
        Case(f"setup.cfg: {name}", SDIST, partial(setup_cfg_sdist, content), None, ANY, ANY)
        for name, content in SETUP_CFGS.items()
    ),
    Case(
        "egg-info: 1,000 of them",
        SDIST,
        lambda: sdist({"demo.py": ""} | {f"d{n}.egg-info/PKG-INFO": PKG_INFO for n in range(1000)}, STATIC_PKG_INFO),
        modules=ANY,
    ),
    Case(
        "egg-info: SOURCES.txt and top_level.txt that lead out",
        SDIST,
        lambda: sdist(
            {
                "demo.py": "",
                "demo.egg-info/SOURCES.txt": "../../etc/passwd\n/etc/x.py\n" + "x" * MIB + "\ndemo.py\n",
                "demo.egg-info/top_level.txt": "..\n/etc\n\0\n../../x\ndemo\na.b.c\nclass\n" + "y" * MIB,
            },
            STATIC_PKG_INFO,
        ),
        modules=ANY,
    ),
    Case(
        "egg-info: 20,000 top-level names",
        SDIST,
        lambda: sdist(
            {"demo.py": "", "demo.egg-info/top_level.txt": "".join(f"t{n}\n" for n in range(MANY))}, STATIC_PKG_INFO
        ),
        modules=ANY,
    ),
)


LONG = "x" * 200_000
LINES = [f"r{number}" for number in range(2000)]


def poetry_extras() -> str:
    """Return 500 extras with the same 500 requirements, whose markers name all extras."""
    needs = "".join(f"r{number} = {{version = '1', optional = true}}\n" for number in range(500))
    extras = "".join(f"e{number} = {LINES[:500]}\n" for number in range(100))
    return f"[tool.poetry]\nname = 'demo'\n[tool.poetry.dependencies]\n{needs}[tool.poetry.extras]\n{extras}"


REPEATED_REQUIREMENTS: dict[str, Callable[[], dict[str, Content]]] = {
    "requires.txt": lambda: {"demo.egg-info/requires.txt": "\n".join([f"[x:os_name == '{LONG}']", *LINES])},
    "setup.cfg's extras": lambda: {"setup.cfg": "\n ".join([f"[options.extras_require]\n{LONG} =", *LINES])},
    "setup.py's extras": lambda: {"setup.py": f"setup(name='demo', extras_require={{'{LONG[:50_000]}': {LINES}}})"},
    "pyproject's extras": lambda: {
        "pyproject.toml": f"[project]\nname = 'demo'\n[project.optional-dependencies]\n{LONG} = {LINES}"
    },
}
REPEATED: dict[str, Callable[[], dict[str, Content]]] = {
    "poetry's extras": lambda: {"pyproject.toml": poetry_extras()},
    "setup.py's package_dir": lambda: {
        "setup.py": f"setup(name='demo', packages={LINES}, package_dir={{'': '{LONG[:100_000]}'}})"
    },
    "setup.cfg's package_dir": lambda: {
        "setup.py": "setup()",
        "setup.cfg": f"[options]\npackage_dir =\n  = {LONG}\npackages = {','.join(LINES)}",
    },
    "poetry's folders": lambda: {
        "pyproject.toml": "[build-system]\nbuild-backend = 'poetry.core.masonry.api'\n"
        "[tool.poetry]\nname = 'demo'\npackages = ["
        + ", ".join(f"{{include = 'demo.py', to = '{LONG[:200]}{number}'}}" for number in range(1000))
        + "]"
    },
}
"""Small files in which one part is repeated by all others: the work must not be their product."""


def repeated_case(name: str, files: Callable[[], dict[str, Content]], expected: ErrorKind | None) -> Case:
    return Case(f"repeated: {name}", SDIST, lambda: sdist({"demo.py": "", **files()}, OLD_PKG_INFO), expected, ANY, ANY)


TREE: dict[str, Content] = {"demo/__init__.py": ""} | {f"demo/p{number}/m.py": "" for number in range(1500)}
TIMES = 1500
WIDE_TREE: dict[str, Content] = {f"top{number}/x/m.py": "" for number in range(1500)}
FOLDERS: dict[str, Callable[[], dict[str, Content]]] = {
    "scikit-build": lambda: TREE | built("scikit_build_core.build", packages_table("tool.scikit-build.wheel.packages")),
    "maturin": lambda: TREE | built("maturin", f"[tool.maturin]\npython-packages = {['demo'] * TIMES}"),
    "poetry": lambda: (
        TREE
        | built(
            "poetry.core.masonry.api",
            "[tool.poetry]\npackages = ["
            + ", ".join(f"{{include = 'demo', to = 't{number}'}}" for number in range(TIMES))
            + "]",
        )
    ),
    "hatchling": lambda: (
        TREE
        | built(
            "hatchling.build",
            "[tool.hatch.build.targets.wheel.force-include]\n"
            + "".join(f"'{'./' * (number % 40)}demo{'/' * (number // 40)}' = 't{number}'\n" for number in range(TIMES)),
        )
    ),
    "uv": lambda: (
        TREE | built("uv_build", f"[tool.uv.build-backend]\nmodule-root = ''\nmodule-name = {['demo'] * TIMES}")
    ),
    "setuptools": lambda: TREE | built("setuptools.build_meta", setuptools_find(where=["."] * TIMES)),
    "top_level.txt": lambda: (
        WIDE_TREE
        | {"setup.py": "setup()", "demo.egg-info/top_level.txt": "".join(f"x{number}\n" for number in range(TIMES))}
    ),
}
"""Settings that name the same folders repeatedly: TIMES the files."""
BUILD_FILES: dict[str, Callable[[], dict[str, Content]]] = {
    "CMake's variables": lambda: (
        built("scikit_build_core.build")
        | {"CMakeLists.txt": f"set(A {LONG[:90_000]})\n{MODULE}install(TARGETS m DESTINATION {'${A}' * 20_000})"}
    ),
    "CMake's spaces": lambda: (
        built("scikit_build_core.build") | {"CMakeLists.txt": f"{MODULE}install(TARGETS {' ' * 190_000}"}
    ),
    "CMake's commands": lambda: (
        built("scikit_build_core.build") | {"CMakeLists.txt": MODULE + "install(TARGETS a " * 10_000}
    ),
    "meson's names": lambda: (
        built("mesonpy") | {"meson.build": f"a = ['{LONG}']\n{REPEAT * 14}py.install_sources('x.py', subdir: a)\n"}
    ),
    "meson's assignments": lambda: built("mesonpy") | {"meson.build": "a = " * 100_000},
    "meson's calls": lambda: built("mesonpy") | {"meson.build": "a = install_data(" * 20_000},
    "Cargo's keys": lambda: built("maturin") | {"Cargo.toml": f"a{'.a' * 500} = 1\n" * 1800},
}
MODULE = "pybind11_add_module(m a.c)\n"
REPEAT = "a = [a, a]\n"


def built(backend: str, settings: str = "") -> dict[str, Content]:
    return {"pyproject.toml": built_by(backend, settings)}


def packages_table(name: str) -> str:
    return f"[{name}]\n" + "".join(f"t{number} = 'demo'\n" for number in range(TIMES))


REPEATED_CASES = (
    *(repeated_case(f"folders of {name}", files, LIMIT) for name, files in FOLDERS.items()),
    *(repeated_case(name, files, None) for name, files in BUILD_FILES.items()),
    *(repeated_case(name, files, LIMIT) for name, files in REPEATED_REQUIREMENTS.items()),
    *(repeated_case(name, files, None) for name, files in REPEATED.items()),
)


# Names of modules and of files


def deep_names(count: int) -> list[str]:
    """Return modules that each have 30 parent packages: names of 8 KB for one path of 500 characters."""
    return [f"a{number:014d}/" + "bbbbbbbbbbbbbbb/" * 29 + "c.py" for number in range(count)]


NAME_CASES = (
    Case(
        "module names: keywords and what is no identifier",
        WHEEL,
        lambda: modules_wheel("demo.py", "1a.py", "a-b.py", "a b.py", ".py", "..py", "a..py", "a.b.py", "-/x.py"),
    ),
    Case(
        "module names: homoglyphs",
        WHEEL,
        lambda: modules_wheel("demo.py", "d\u0435mo.py"),
        modules=("demo", "d\u0435mo"),
    ),
    Case(
        "module names: bidi, joiners, control characters",
        WHEEL,
        lambda: modules_wheel("demo.py", "a\u202eb.py", "a\u200db.py", "a\x1bb.py", "a\nb.py", "\ufeff.py"),
    ),
    Case(
        "module names: packages 1,500 deep", WHEEL, lambda: modules_wheel("demo.py", "p/" * 1500 + "x.py"), modules=ANY
    ),
    Case("module names: packages 5,000 deep", WHEEL, lambda: modules_wheel("demo.py", "p/" * 5000 + "x.py"), LIMIT),
    Case(
        "module names: one of 2,000 characters",
        WHEEL,
        lambda: modules_wheel("demo.py", f"{'x' * 2000}.py"),
        modules=ANY,
    ),
    Case(
        "module names: 13,000 files, 300,000 modules",
        WHEEL,
        lambda: modules_wheel(*(f"a{number}/" + "b/" * 22 + "c.py" for number in range(13_000))),
        LIMIT,
    ),
    Case("module names: 50 MB of names", WHEEL, lambda: modules_wheel(*deep_names(6000)), LIMIT),
    Case("module names: 8 MB of names", WHEEL, lambda: modules_wheel("demo.py", *deep_names(1000)), modules=ANY),
    Case(
        "module names: a module hides its package",
        WHEEL,
        lambda: modules_wheel("demo.py", "demo/sub/deep.py"),
    ),
    Case(
        "module names: data folders that lead out",
        WHEEL,
        lambda: modules_wheel(
            "demo.py", "demo-1.0.data/purelib/../../x.py", "demo-1.0.data/data/d.py", "demo-1.0.data/purelib/p.py"
        ),
        modules=("demo", "p"),
        notes=("member names that lead out of the archive",),
    ),
    Case(
        "module names: a package that is a file",
        WHEEL,
        lambda: modules_wheel("demo.py", "a.py", "a.py/b.py", "a.py/c/d.py"),
        modules=ANY,
    ),
)

LONG_FILENAME = f"{'d' * 2000}-1.0.tar.gz"
FILENAME_CASES = (
    *(
        Case(f"filename: {suffix} is not read", f"demo-1.0.{suffix}", lambda: b"MZ" * 999, UNSUPPORTED)
        for suffix in ("win32.exe", "win-amd64-py3.8.msi", "noarch.rpm", "dmg", "linux-x86_64.tar.gz", "txt", "tar.zst")
    ),
    Case("filename: .deb is not read", "python3-demo_1.0_all.deb", lambda: b"!<arch>\n", UNSUPPORTED),
    Case("filename: of 2,000 characters", LONG_FILENAME, raw_sdist, UNSUPPORTED),
    Case("filename: control characters", "de\x1b[31mmo\n-1.0.tar.gz", raw_sdist, UNSUPPORTED),
    Case("filename: surrogates", "demo\udc80-1.0.tar.gz", raw_sdist, UNSUPPORTED),
    Case("filename: a NUL", "demo-1.0.tar.gz\0.whl", raw_sdist, UNSUPPORTED),
    Case("filename: path separators", "../../demo-1.0.tar.gz", raw_sdist, UNSUPPORTED),
    Case("filename: backslashes", "..\\demo-1.0.tar.gz", raw_sdist, UNSUPPORTED),
    Case("filename: empty", "", raw_sdist, UNSUPPORTED),
    Case("filename: nothing but a suffix", ".tar.gz", raw_sdist),
    Case("filename: no version", "demo.tar.gz", raw_sdist),
    Case("filename: no name", "-1.0.tar.gz", raw_sdist),
    Case("filename: dashes alone", "-----.whl", wheel),
    Case("filename: 900 dashes", f"demo{'-1' * 450}.tar.gz", raw_sdist, modules=ANY),
    Case("filename: a version of 900 digits", f"demo-{'1' * 900}.tar.gz", raw_sdist),
    Case("filename: a wheel of two parts", "demo-1.0.whl", wheel),
    Case("filename: a wheel of nine parts", "demo-1.0-1-2-3-4-py3-none-any.whl", wheel, modules=ANY),
    Case("filename: capitals", "DEMO-1.0-PY3-NONE-ANY.WHL", wheel, modules=ANY),
)

CASES: tuple[Case, ...] = (
    *ZIP_CASES,
    *TAR_CASES,
    *COMPRESSION_CASES,
    *METADATA_CASES,
    *SDIST_CASES,
    *REPEATED_CASES,
    *NAME_CASES,
    *FILENAME_CASES,
)
