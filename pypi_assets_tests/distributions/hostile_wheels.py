"""Wheels that readers see differently, each built by a small generator.

`WHEELS` gives their content by class and name. Each is called demo-1.0-py3-none-any.whl. Its record matches what pip
installs and resolves, or has an error or a note that begins with `ambiguous archive:`.
"""

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace

from pypi_assets_tests.builders import core_metadata
from pypi_assets_tests.distributions.raw_archives import (
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
    end_record,
    local_header,
    raw_zip,
    zip64_extra,
)

WHEEL = "demo-1.0-py3-none-any.whl"
INFO = b"demo-1.0.dist-info/"
DATA = b"demo-1.0.data/"
METADATA = core_metadata("demo", "1.0", requires_dist=["a>=1"]).encode()
OTHER_METADATA = core_metadata("demo", "1.0", requires_dist=["evil"]).encode()
WHEEL_FILE = b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
ENTRY_POINTS = b"[console_scripts]\ndemo = demo:main\n[group]\nname = demo\n"

MODULE = Entry(b"demo.py", b"x = 1\n", DEFLATED)
METADATA_ENTRY = Entry(INFO + b"METADATA", METADATA, DEFLATED)
REST = (
    Entry(INFO + b"WHEEL", WHEEL_FILE, DEFLATED),
    Entry(INFO + b"entry_points.txt", ENTRY_POINTS, DEFLATED),
    Entry(INFO + b"RECORD", b"demo.py,,\n", DEFLATED),
)
Build = Callable[[], bytes]


def members(*more: Entry, metadata: Entry = METADATA_ENTRY, rest: Iterable[Entry] = REST) -> list[Entry]:
    """Return the members of a valid wheel with `more` members inserted."""
    return [MODULE, metadata, *more, *rest]


def with_files(*names: bytes) -> Build:
    """Return a wheel with additional files of these names."""
    return lambda: raw_zip(members(*(Entry(name, b"x = 2\n") for name in names)))


def with_entries(*entries: Entry) -> Build:
    return lambda: raw_zip(members(*entries))


def after_all(*entries: Entry) -> Build:
    """Return a wheel with additional members after all others."""
    return lambda: raw_zip([*members(), *entries])


def with_metadata(content: bytes = METADATA, **fields: object) -> Build:
    return lambda: raw_zip(members(metadata=replace(METADATA_ENTRY, content=content, **fields)))  # type: ignore[arg-type]


def with_rest(**contents: bytes | None) -> Build:
    """Return a wheel with WHEEL, RECORD or entry_points.txt replaced, or removed if None."""
    names = {"WHEEL": WHEEL_FILE, "entry_points_txt": ENTRY_POINTS, "RECORD": b"demo.py,,\n"} | contents
    rest = [
        Entry(INFO + name.replace("_txt", ".txt").encode(), content)
        for name, content in names.items()
        if content is not None
    ]
    return lambda: raw_zip(members(rest=rest))


def info(name: bytes, content: bytes = b"") -> Entry:
    return Entry(INFO + name, content)


def unicode_path(name: bytes, raw: bytes, *, version: int = 1, cut: int = 100) -> bytes:
    """Return an extra field that names the member `raw` as `name`."""
    value = (struct.pack("<BL", version, zlib.crc32(raw)) + name)[:cut]
    return struct.pack("<HH", 0x7075, len(value)) + value


def lzma_member(content: bytes, dictionary: int = 2**16) -> bytes:
    """Return LZMA data as stored in a zip: version, length of the properties, properties."""
    filters = [{"id": lzma.FILTER_LZMA1, "dict_size": 2**16}]
    data = lzma.compress(content, lzma.FORMAT_RAW, filters=filters)
    return b"\x09\x04\x05\x00" + b"\x5d" + struct.pack("<L", dictionary) + data


def extensible_zip64(*, plain: bool = False, claimed: int | None = None, at_error: int = 0) -> Build:
    """Return a zip64 record with extensible data, which old Pythons ignore. `plain` makes the other record valid."""

    def build() -> bytes:
        whole = raw_zip(members())
        end = whole.rindex(b"PK\x05\x06")
        start = whole.index(b"PK\x01\x02")
        count, size = 5, end - start
        data = bytes(24)
        length = 44 + len(data) if claimed is None else claimed
        record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", length, 45, 45, 0, 0, count, count, size, start) + data
        locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, end + at_error, 1)
        last = end_record(count, size, start) if plain else end_record(0xFFFF, MAX_32, MAX_32)
        return whole[:end] + record + locator + last

    return build


def two_zip64_records() -> bytes:
    """Return a zip with two zip64 records. Old Pythons use the one before the locator, others the one it names."""
    first, second = raw_zip(members()), raw_zip([*members(), Entry(b"evil.py")])
    parts = []
    shift = 0
    for whole, count in ((first, 5), (second, 6)):
        end, start = whole.rindex(b"PK\x05\x06"), whole.index(b"PK\x01\x02")
        body = bytearray(whole[:end])
        position = start
        while position < end:
            (offset,) = struct.unpack_from("<L", body, position + 42)
            struct.pack_into("<L", body, position + 42, offset + shift)
            position += 46 + sum(struct.unpack_from("<3H", body, position + 28))
        parts.append((bytes(body), count, end - start, start + shift, shift + end))
        shift += end + 56
    (one, count, size, start, at), (two, count2, size2, start2, at2) = parts
    length = 56 + len(two) + 56 - 12
    far = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", length, 45, 45, 0, 0, count, count, size, start)
    near = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count2, count2, size2, start2)
    assert at2 == len(one) + 56 + len(two)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, at, 1)
    return one + far + two + near + locator + end_record(0xFFFF, MAX_32, MAX_32)


def repeated_zip64() -> bytes:
    """Return a member with its size in the second of two zip64 fields, since the first field leaves it unset."""
    extra = zip64_extra(MAX_32) + zip64_extra(len(METADATA))
    return with_metadata(size=MAX_32, extra=extra, local_extra=extra)()


def at_limit(extra: int) -> Build:
    """Return an end record with a comment of the longest allowed length plus `extra`, which can be negative."""
    return lambda: raw_zip(members(), comment=b"c" * (0xFFFF + extra)) if extra <= 0 else _long_tail(extra)


def _long_tail(extra: int) -> bytes:
    return raw_zip(members(), comment=b"c" * 0xFFFF, trailing=b"c" * extra)


def two_directories() -> bytes:
    """Return a zip with two directories: one right before the end record, one where the end record points."""
    first, second = raw_zip([*members(), Entry(b"evil.py")]), raw_zip(members())
    end = second.rindex(b"PK\x05\x06")
    start = second.index(b"PK\x01\x02")
    size = end - start
    body = first[: first.rindex(b"PK\x05\x06")] + second[:end]
    return body + end_record(5, size, first.index(b"PK\x01\x02"))


def shared_offset() -> bytes:
    """Return two members that share their content."""
    whole = [MODULE, METADATA_ENTRY, *REST]
    first = local_header(MODULE) + MODULE.stored
    return raw_zip(
        [*whole[1:], replace(MODULE, offset=0), Entry(b"twin.py", b"x = 1\n", DEFLATED, offset=0)],
        prefix=first,
        prefix_counts=True,
    )


def long_directory() -> bytes:
    """Return a zip whose last entry has a comment that runs past the end of the directory."""
    whole = bytearray(raw_zip(members()))
    last = whole.rindex(b"PK\x01\x02")
    struct.pack_into("<H", whole, last + 32, 10)
    return bytes(whole)


def negative_shift() -> bytes:
    """Return a zip in which all offsets, including the directory's, are 100 too large."""
    whole = bytearray(raw_zip(members()))
    end = whole.rindex(b"PK\x05\x06")
    (position,) = struct.unpack_from("<L", whole, end + 16)
    struct.pack_into("<L", whole, end + 16, position + 100)
    while position < end:
        (offset,) = struct.unpack_from("<L", whole, position + 42)
        struct.pack_into("<L", whole, position + 42, offset + 100)
        position += 46 + sum(struct.unpack_from("<3H", whole, position + 28))
    return bytes(whole)


SITE = b"data/lib/python3.11/site-packages/"
NAMES: dict[str, Build] = {
    "a parent in the middle": with_files(b"demo/../evil.py"),
    "a parent in a scheme": with_files(DATA + b"purelib/x/../evil.py"),
    "parents into another scheme": with_files(DATA + b"data/../purelib/evil.py"),
    "parents out of the .data folder": with_files(DATA + b"../evil.py"),
    "parents into another .data folder": with_files(DATA + b"x/../../y/purelib/evil.py"),
    "parents that leave": with_files(b"../evil.py"),
    "parents that leave deep inside": with_files(b"a/b/../../../evil.py"),
    "parents that come back by the folder's name": with_files(b"../site-packages/evil.py"),
    "parents from a scheme that leave": with_files(DATA + b"purelib/../../../evil.py"),
    "absolute": with_files(b"/evil.py"),
    "absolute with two slashes": with_files(b"//evil.py"),
    "a dot in front": with_files(b"./evil.py"),
    "dots between": with_files(b"pack/./evil.py"),
    "two slashes": with_files(b"pack//evil.py"),
    "a dot at the end": with_files(b"evil.py/."),
    "a dot in front of a .data folder": with_files(b"./" + DATA + b"purelib/evil.py"),
    "a parent in front of a .data folder": with_files(b"x/../" + DATA + b"purelib/evil.py"),
    "a dot alone": with_files(b"."),
    "no name": with_files(b""),
    "a NUL in the middle": with_files(b"evil.py\0.txt"),
    "a NUL after a folder": with_files(b"pack/\0evil.py"),
    "a NUL at the start": with_files(b"\0evil.py"),
    "backslashes": with_files(b"pack\\evil.py"),
    "backslashes to a parent": with_files(b"..\\evil.py"),
    "backslashes into the .data folder": with_files(b"demo-1.0.data\\purelib\\evil.py"),
    "two spellings of one path": with_files(b"pack/evil.py", b"pack//evil.py", b"./pack/evil.py"),
    "twice": with_files(b"evil.py", b"evil.py"),
    "a file in a scheme over one at the root": with_files(b"evil.py", DATA + b"purelib/evil.py"),
    "a file and a folder": with_files(b"pack", b"pack/evil.py"),
    "a folder and a file": with_files(b"pack/sub/evil.py", b"pack"),
    "a module and a folder of its name": with_files(b"demo.py/evil.py"),
    "a file in a .data folder alone": with_files(DATA + b"purelib"),
    "a file that is a .data folder": with_files(b"evil.data"),
    "an unknown scheme": with_files(DATA + b"stdlib/evil.py"),
    "a .data folder of another name": with_files(b"other.data/platlib/evil.py"),
    "capitals in a scheme": with_files(DATA + b"PureLib/evil.py"),
    "a name of 300 letters": with_files(b"e" * 300 + b".py"),
    "a name of 200 letters of two bytes": with_files("é".encode() * 200 + b".py"),
    "a name that is no UTF-8": with_files(b"\xff.py"),
    "a drive": with_files(b"C:/evil.py"),
    "a line's end": with_files(b"x\nother-1.dist-info/evil.py"),
    "a folder with content": with_entries(Entry(b"pack/", b"x = 1\n"), Entry(b"pack/evil.py")),
    "by Unicode Path": with_entries(Entry(b"good.py", extra=unicode_path(b"evil.py", b"good.py"))),
    "by Unicode Path, the same": with_entries(Entry(b"good.py", extra=unicode_path(b"good.py", b"good.py"))),
    "by Unicode Path, of another member": with_entries(Entry(b"good.py", extra=unicode_path(b"evil.py", b"x"))),
    "by Unicode Path, of another version": with_entries(
        Entry(b"good.py", extra=unicode_path(b"evil.py", b"good.py", version=2))
    ),
    "by Unicode Path, into a scheme": with_entries(Entry(b"good", extra=unicode_path(DATA + b"purelib/e.py", b"good"))),
    "by Unicode Path, no UTF-8": with_entries(Entry(b"good.py", extra=unicode_path(b"\xff", b"good.py"))),
    "by Unicode Path, cut": with_entries(Entry(b"good.py", extra=unicode_path(b"", b"good.py", cut=3))),
    "by Unicode Path, empty": with_entries(Entry(b"good.py", extra=unicode_path(b"", b"good.py"))),
}

METADATA_FILES: dict[str, Build] = {
    "METADATA with a dot in front": after_all(info(b"./METADATA", OTHER_METADATA)),
    "METADATA with two slashes": after_all(info(b"/METADATA", OTHER_METADATA)),
    "METADATA with a dot behind": after_all(info(b"METADATA/.", OTHER_METADATA)),
    "METADATA as a folder with content": after_all(info(b"METADATA/", OTHER_METADATA)),
    "METADATA by a parent": after_all(info(b"x/../METADATA", OTHER_METADATA)),
    "METADATA by a parent at the root": after_all(Entry(b"demo/../" + INFO + b"METADATA", OTHER_METADATA)),
    "METADATA with a dot in front of all": after_all(Entry(b"./" + INFO + b"METADATA", OTHER_METADATA)),
    "METADATA in purelib": after_all(Entry(DATA + b"purelib/" + INFO + b"METADATA", OTHER_METADATA)),
    "METADATA twice": after_all(info(b"METADATA", OTHER_METADATA)),
    "METADATA in lower case": after_all(info(b"metadata", OTHER_METADATA)),
    "METADATA after a NUL": after_all(info(b"METADATA\0x", OTHER_METADATA)),
    "entry_points.txt with a dot in front": after_all(info(b"./entry_points.txt", b"[console_scripts]\nevil = e:e\n")),
    "entry_points.txt in purelib": after_all(
        Entry(DATA + b"purelib/" + INFO + b"entry_points.txt", b"[console_scripts]\nevil = e:e\n")
    ),
    "entry_points.txt as a folder": after_all(info(b"entry_points.txt/", b"[console_scripts]\nevil = e:e\n")),
    "WHEEL with a dot in front": after_all(info(b"./WHEEL", b"Wheel-Version: 9\n")),
    "no WHEEL": with_rest(WHEEL=None),
    "WHEEL of version 2": with_rest(WHEEL=b"Wheel-Version: 2.0\n"),
    "WHEEL of version 1.9": with_rest(WHEEL=b"Wheel-Version: 1.9\n"),
    "WHEEL without version": with_rest(WHEEL=b"Generator: x\n"),
    "WHEEL with a BOM": with_rest(WHEEL=b"\xef\xbb\xbf" + WHEEL_FILE),
    "WHEEL that is no UTF-8": with_rest(WHEEL=WHEEL_FILE + b"X: \xff\n"),
    "WHEEL with a version that is none": with_rest(WHEEL=b"Wheel-Version: one\n"),
    "no RECORD": with_rest(RECORD=None),
    "METADATA with a BOM": with_metadata(b"\xef\xbb\xbf" + METADATA),
    "METADATA that is no UTF-8": with_metadata(METADATA.replace(b"\n\n", b"\nSummary: \xff\n\n")),
    "METADATA with a description that is no UTF-8": with_metadata(METADATA + b"\xff"),
    "METADATA of another project": with_metadata(METADATA.replace(b"demo", b"evil")),
    "METADATA of another version": with_metadata(METADATA.replace(b"1.0", b"2.0")),
    "METADATA without a name": with_metadata(METADATA.replace(b"Name: demo\n", b"")),
    "METADATA with two names": with_metadata(METADATA.replace(b"\n\n", b"\nName: evil\n\n")),
    "METADATA with a NUL in a requirement": with_metadata(METADATA.replace(b"a>=1", b"a\0b")),
    "METADATA with a folded requirement": with_metadata(METADATA.replace(b"a>=1", b"a\n  >=1")),
    "METADATA with a folded requirement in capitals": with_metadata(
        METADATA.replace(b"Requires-Dist: a>=1", b"REQUIRES-DIST: a\r\n\t>=1")
    ),
    "METADATA with a requirement in the next line": with_metadata(METADATA.replace(b" a>=1", b"\n  a>=1")),
    "METADATA with a line that is none": with_metadata(METADATA.replace(b"Version: 1.0", b"Version: 1.0\nrubbish")),
    "requires.txt next to METADATA": with_entries(info(b"requires.txt", b"evil\n")),
    "requires.txt instead of requirements": lambda: raw_zip(
        members(
            info(b"requires.txt", b"evil\n[x]\nmore\n"),
            metadata=replace(METADATA_ENTRY, content=core_metadata("demo", "1.0").encode()),
        )
    ),
    "PKG-INFO instead of METADATA": lambda: raw_zip(members(metadata=info(b"PKG-INFO", METADATA))),
    "PKG-INFO next to an empty METADATA": lambda: raw_zip(
        members(info(b"PKG-INFO", METADATA), metadata=replace(METADATA_ENTRY, content=b""))
    ),
    "entry points with a BOM": with_rest(entry_points_txt=b"\xef\xbb\xbf" + ENTRY_POINTS),
    "entry points with comments": with_rest(entry_points_txt=b"[console_scripts]\n# x = y:z\ndemo = demo:main # e\n"),
    "entry points without =": with_rest(entry_points_txt=b"[console_scripts]\ndemo\n"),
    "entry points before any group": with_rest(entry_points_txt=b"evil = e:e\n[console_scripts]\ndemo = demo:main\n"),
    "entry points in a group with blanks": with_rest(entry_points_txt=b"[ console_scripts ]\ndemo = demo:main\n"),
    "entry points in brackets of two": with_rest(entry_points_txt=b"[[console_scripts]]\ndemo = demo:main\n"),
    "an entry point twice": with_rest(entry_points_txt=b"[console_scripts]\nd = demo:one\nd = demo:two\n"),
    "an entry point without a function": with_rest(entry_points_txt=b"[console_scripts]\ndemo = demo\n"),
    "entry points that are no UTF-8": with_rest(entry_points_txt=ENTRY_POINTS + b"\xff = x:y\n"),
    "a second .dist-info": with_entries(Entry(b"other-2.dist-info/METADATA", OTHER_METADATA)),
    "a second .dist-info that is a file": with_entries(Entry(b"other-2.dist-info")),
    "a second .dist-info that is a folder": with_entries(Entry(b"other-2.dist-info/")),
    "a second .dist-info in capitals": with_entries(Entry(b"DEMO-1.0.dist-info/X")),
    "a second .dist-info by a parent": with_entries(Entry(b"demo/../other-2.dist-info/METADATA", OTHER_METADATA)),
    "a second .dist-info in purelib": with_entries(Entry(DATA + b"purelib/other-2.dist-info/METADATA", OTHER_METADATA)),
    "all below a dot": lambda: raw_zip([replace(entry, name=b"./" + entry.name) for entry in members()]),
    "all absolute": lambda: raw_zip([replace(entry, name=b"/" + entry.name) for entry in members()]),
    "a .dist-info of another project": lambda: raw_zip(
        [replace(entry, name=entry.name.replace(INFO, b"evil-1.0.dist-info/")) for entry in members()]
    ),
    "a .dist-info that begins like the project": lambda: raw_zip(
        [replace(entry, name=entry.name.replace(INFO, b"demo_evil-1.0.dist-info/")) for entry in members()]
    ),
}

ZIPS: dict[str, Build] = {
    "zip64 with extensible data": extensible_zip64(),
    "zip64 with extensible data, and a whole plain record": extensible_zip64(plain=True),
    "zip64 with extensible data of another length": extensible_zip64(claimed=44),
    "zip64 with a locator that is off": extensible_zip64(at_error=1),
    "two zip64 records": two_zip64_records,
    "a zip64 locator that points nowhere": lambda: raw_zip(members(), zip64=True, zip64_position=2**40),
    "repeated zip64 marks": repeated_zip64,
    "zip64 in a wheel of a few bytes": lambda: raw_zip(members(), zip64=True),
    "an end record at the limit": at_limit(0),
    "an end record behind the limit of newer Pythons": at_limit(1),
    "an end record behind all limits": at_limit(2),
    "an end record in the comment": lambda: raw_zip(members(), comment=end_record(0, 0, 0)),
    "a wheel in the comment of another": lambda: raw_zip(
        [*members(), Entry(b"evil.py")], comment=raw_zip(members(), prefix=b"")
    ),
    "two wheels one after the other": lambda: raw_zip(members()) + raw_zip([*members(), Entry(b"evil.py")]),
    "two directories": two_directories,
    "trailing bytes": lambda: raw_zip(members(), trailing=b"x" * 100),
    "bytes in front": lambda: raw_zip(members(), prefix=b"#!/bin/sh\n" * 20),
    "bytes in front that count": lambda: raw_zip(members(), prefix=b"#!/bin/sh\n" * 20, prefix_counts=True),
    "an offset beyond the directory": negative_shift,
    "a count that is wrong": lambda: raw_zip(members(), count=2),
    "another disk": lambda: raw_zip(members(), disk=1),
    "a member on another disk": with_entries(Entry(b"evil.py", disk=7)),
    "METADATA on another disk": with_metadata(disk=7),
    "an extra field that runs past its end": with_entries(Entry(b"good.py", extra=b"\x99\x99\xff\xff")),
    "an extra field of three bytes": with_entries(Entry(b"good.py", extra=b"\x99\x99\x00")),
    "a zip64 field that is cut short": with_entries(Entry(b"good.py", size=MAX_32, extra=zip64_extra(6)[:-1] + b"")),
    "a zip64 field without use": with_entries(Entry(b"good.py", b"x", extra=zip64_extra(9, 9), local_extra=b"")),
    "an encrypted member": with_entries(Entry(b"good.py", b"x" * 20, flags=ENCRYPTED_FLAG)),
    "an encrypted member without content": with_entries(Entry(b"good.py", flags=ENCRYPTED_FLAG)),
    "a strongly encrypted member": with_entries(Entry(b"good.py", b"x" * 20, flags=0x40)),
    "a patch": with_entries(Entry(b"good.py", b"x" * 20, flags=0x20)),
    "a method that nobody reads": with_entries(Entry(b"good.py", b"x" * 20, DEFLATE64)),
    "a method of Python 3.14": with_entries(Entry(b"good.py", b"x" * 20, ZSTD)),
    "METADATA by LZMA": with_metadata(method=LZMA, data=lzma_member(METADATA)),
    "METADATA by LZMA with a dictionary of 4 GiB": with_metadata(method=LZMA, data=lzma_member(METADATA, 2**32 - 1)),
    "METADATA by bzip2": with_metadata(method=BZIP2, data=bz2.compress(METADATA)),
    "METADATA claims more": with_metadata(size=len(METADATA) + 50),
    "METADATA claims less, with the CRC of that": with_metadata(
        data=deflate(METADATA), size=40, crc=zlib.crc32(METADATA[:40])
    ),
    "METADATA claims less": with_metadata(data=deflate(METADATA), size=40),
    "METADATA claims nothing": with_metadata(data=deflate(METADATA), size=0, crc=0),
    "METADATA is stored, and claims less": with_metadata(
        METADATA, method=STORED, size=40, crc=zlib.crc32(METADATA[:40])
    ),
    "METADATA is stored, and claims more": with_metadata(METADATA, method=STORED, size=500),
    "METADATA with bytes after its deflate stream": with_metadata(data=deflate(METADATA) + b"more"),
    "METADATA with a deflate stream that has no end": with_metadata(data=zlib.compress(METADATA, 0)[2:-4]),
    "METADATA with a wrong CRC": with_metadata(crc=1),
    "METADATA with another name in its own header": with_metadata(local_name=INFO + b"metadata"),
    "METADATA with another size in its own header": with_metadata(local_size=7),
    "METADATA with a data descriptor": with_metadata(flags=DESCRIPTOR_FLAG),
    "METADATA with the mode of a link": with_metadata(external_attr=0o120777 << 16),
    "a module with the mode of a link": with_entries(Entry(b"evil.py", b"demo.py", external_attr=0o120777 << 16)),
    "a module with the mode of a folder": with_entries(Entry(b"evil.py", b"x = 1\n", external_attr=0o40755 << 16)),
    "two members in one place": shared_offset,
    "a directory with a long last entry": long_directory,
    "a version that nobody reads": lambda: raw_zip(members()).replace(
        central_header(MODULE, 0)[:8], b"PK\x01\x02\x14\x03\x63\x00"
    ),
    "the directory in another order": lambda: raw_zip(
        [*members()[1:], replace(MODULE, offset=0)], prefix=local_header(MODULE) + MODULE.stored, prefix_counts=True
    ),
}

IMPORTABLE: dict[str, Build] = {
    "start-up code": with_entries(Entry(b"evil.pth", b"import os; os.getpid()\n")),
    "a further path": with_entries(Entry(b"evil.pth", b"hidden\n"), Entry(b"hidden/secret.py")),
    "a further path outside": with_entries(Entry(b"evil.pth", b"../../evil\n/evil\n")),
    "start-up code in a scheme": with_entries(Entry(DATA + b"platlib/evil.pth", b"import\tos\n")),
    "start-up code by a parent": with_entries(Entry(b"x/../evil.pth", b"import os\n")),
    "site-packages by the data scheme": with_files(DATA + SITE + b"evil.py"),
    "site-packages by the data scheme, start-up code": with_files(DATA + SITE + b"evil.pth"),
    "site-packages by the data scheme on Windows": with_files(DATA + b"data/Lib/site-packages/evil.py"),
    "dist-packages by the data scheme": with_files(DATA + b"data/local/lib/python3.11/dist-packages/evil.py"),
    "the standard library by the data scheme": with_files(DATA + b"data/lib/python3.11/evil.py"),
    "a module without a window": with_files(b"pack/evil.pyw"),
    "scripts": with_files(DATA + b"scripts/evil", DATA + b"scripts/evil.py"),
    "scripts by the data scheme": with_files(DATA + b"data/bin/evil"),
    "headers": with_files(DATA + b"headers/evil.h"),
    "another distribution": with_entries(
        Entry(b"evil-9.egg-info/PKG-INFO", b"Metadata-Version: 2.1\nName: evil\nVersion: 9\n"),
        Entry(b"evil-9.egg-info/entry_points.txt", ENTRY_POINTS),
    ),
    "another distribution, a file": with_entries(
        Entry(b"evil-9.egg-info", b"Metadata-Version: 2.1\nName: evil\nVersion: 9\n")
    ),
    "another distribution in capitals": with_entries(
        Entry(b"evil-9.DIST-INFO/METADATA", b"Metadata-Version: 2.1\nName: evil\nVersion: 9\n")
    ),
    "another distribution in a scheme": with_files(DATA + b"platlib/evil-9.Egg-Info/PKG-INFO"),
    "another distribution, a file in a scheme": with_files(DATA + b"purelib/evil-9.dist-info"),
    "another distribution by the data scheme": with_files(DATA + SITE + b"evil-9.egg-info/PKG-INFO"),
    "another distribution, a file by the data scheme": with_files(DATA + SITE + b"evil-9.EGG-INFO"),
    "another distribution in the prefix": with_files(DATA + b"data/evil-9.egg-info"),
    "its own direct_url.json": with_entries(
        Entry(INFO + b"direct_url.json", b'{"url": "https://elsewhere/evil.zip", "archive_info": {}}')
    ),
    "a module that is imported at each start": with_files(b"sitecustomize.py"),
    "a package that is imported at each start": with_files(b"usercustomize/__init__.py"),
}

CLASSES = {"names": NAMES, "metadata files": METADATA_FILES, "zip": ZIPS, "importable": IMPORTABLE}
WHEELS = {f"{kind}: {name}": build for kind, each in CLASSES.items() for name, build in each.items()}
