"""Sdists that archive readers see differently, each built by a small generator: names, links, headers, kinds.

Each is compared with the files that pip unpacks. `outcome` is the expected record: SAME means pip's tree without a
doubt, DOUBT a note that begins with `ambiguous archive:`, ERROR an error.
"""

import bz2
import gzip
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pypi_assets_tests.builders import core_metadata, zip_bytes
from pypi_assets_tests.distributions.raw_archives import (
    BLOCK,
    DEFLATE64,
    DEFLATED,
    ENCRYPTED_FLAG,
    Entry,
    long_name,
    padded,
    pax_header,
    pax_record,
    raw_zip,
    tar_header,
    tar_member,
    tar_number,
)

SAME, DOUBT, ERROR = "same", "doubt", "error"
TAR, ZIP = "demo-1.0.tar.gz", "demo-1.0.zip"
INFO = core_metadata("demo", "1.0", metadata_version="2.2", requires_dist=["honest"]).encode()
EVIL_INFO = core_metadata("demo", "1.0", metadata_version="2.2", requires_dist=["evil"]).encode()
SETUP = b"from setuptools import setup\nsetup(name='demo', py_modules=['demo'])\n"
EVIL_SETUP = b"from setuptools import setup\nsetup(name='demo', py_modules=['demo', 'evil'])\n"
START = tar_member(b"demo-1.0/PKG-INFO", INFO) + tar_member(b"demo-1.0/setup.py", SETUP)
END = tar_member(b"demo-1.0/demo.py", b"x = 1\n") + bytes(2 * BLOCK)


@dataclass(frozen=True, slots=True)
class TarCase:
    name: str
    outcome: str
    build: Callable[[], bytes]
    filename: str = TAR
    modules: tuple[str, ...] | None = None
    """The expected modules, checked for any outcome if given."""
    requires: tuple[str, ...] | None = None


def tar(*parts: bytes, start: bytes = START, end: bytes = END) -> bytes:
    return gzip.compress(start + b"".join(parts) + end, 1, mtime=0)


def case(name: str, outcome: str, *parts: bytes, start: bytes = START, end: bytes = END, **expected: object) -> TarCase:
    return TarCase(name, outcome, partial(tar, *parts, start=start, end=end), **expected)  # type: ignore[arg-type]


def module(name: bytes, kind: bytes = b"0") -> bytes:
    return tar_member(name, b"y = 2\n", kind)


def link(name: bytes, target: bytes, kind: bytes = b"2") -> bytes:
    return tar_header(name, kind=kind, link=target)


def pax(*fields: tuple[bytes, bytes], kind: bytes = b"x") -> bytes:
    return pax_header(b"".join(pax_record(*field) for field in fields), kind)


def folder(name: bytes) -> bytes:
    return tar_header(name, kind=b"5")


TOP = b"demo-1.0/"
FOLDERS = folder(b"demo-1.0/sub/")

NAME_CASES = (
    case("names: ..", SAME, FOLDERS, module(TOP + b"sub/../evil.py")),
    case("names: .. from a folder that is not there", DOUBT, module(TOP + b"none/../evil.py")),
    case("names: .. over setup.py", SAME, FOLDERS, tar_member(TOP + b"sub/../setup.py", EVIL_SETUP)),
    case("names: .. over PKG-INFO", SAME, FOLDERS, tar_member(TOP + b"sub/../PKG-INFO", EVIL_INFO), requires=("evil",)),
    case("names: .. out of the top folder", DOUBT, module(TOP + b"../evil.py")),
    case("names: .. out of the archive", DOUBT, module(TOP + b"../../evil.py")),
    case("names: ..  in front", DOUBT, module(b"../evil.py")),
    case("names: all below ..", SAME, start=tar_member(b"../setup.py", SETUP), end=module(b"../d.py") + bytes(1024)),
    case("names: ./ over PKG-INFO", SAME, tar_member(TOP + b"./PKG-INFO", EVIL_INFO), requires=("evil",)),
    case("names: // over PKG-INFO", DOUBT, tar_member(TOP + b"/PKG-INFO", EVIL_INFO), requires=("evil",)),
    case("names: // inside over a module", SAME, module(TOP + b"p/a.py"), module(TOP + b"p//a.py")),
    case("names: /./ inside", SAME, module(TOP + b"./a/././b.py")),
    case("names: ends in /.", DOUBT, module(TOP + b"a.py/.")),
    case("names: ends in /..", DOUBT, FOLDERS, module(TOP + b"sub/..")),
    case("names: absolute", DOUBT, module(b"/evil.py")),
    case("names: absolute in the top folder", SAME, module(b"/demo-1.0/evil.py"), modules=("demo",)),
    case("names: absolute over setup.py", SAME, tar_member(b"//demo-1.0/setup.py", EVIL_SETUP)),
    case("names: a backslash as the separator", SAME, module(b"demo-1.0\\evil.py")),
    case("names: a backslash over setup.py", SAME, tar_member(b"demo-1.0\\setup.py", EVIL_SETUP)),
    case("names: a backslash behind the top folder", DOUBT, module(TOP + b"pkg\\evil.py")),
    case("names: a backslash in front", SAME, module(b"\\demo-1.0/evil.py")),
    case("names: twice, the last one counts", SAME, tar_member(TOP + b"setup.py", EVIL_SETUP)),
    case("names: setup.py alone at the root", SAME, start=tar_member(b"setup.py", SETUP)),
    case("names: a project at the root", SAME, tar_member(b"setup.py", EVIL_SETUP)),
    case("names: a stray file at the root", DOUBT, module(b"._demo-1.0")),
    case("names: an empty folder next to the top folder", DOUBT, folder(b"other/")),
    case("names: the folder . alone", DOUBT, folder(b"./")),
    case("names: ./ in front of all", DOUBT, start=tar_member(b"./demo-1.0/setup.py", SETUP), end=bytes(1024)),
    case("names: ./ in front of some", DOUBT, module(b"./demo-1.0/evil.py")),
    case("names: one file at the root", DOUBT, start=tar_member(b"setup.py", SETUP), end=bytes(1024)),
    case("names: the top folder is a file too", DOUBT, module(b"demo-1.0")),
    case("names: a file below a file", DOUBT, module(TOP + b"demo.txt"), module(TOP + b"demo.txt/evil.py")),
    case("names: a folder over a file", DOUBT, module(TOP + b"a.py"), folder(TOP + b"a.py/")),
    case("names: a file over a folder", DOUBT, folder(TOP + b"a.py"), module(TOP + b"a.py")),
    case("names: a file over a folder that others need", DOUBT, module(TOP + b"a/b.py"), module(TOP + b"a")),
    case("names: a part of 300 bytes", DOUBT, long_name(TOP + b"n" * 297 + b".py"), module(b"x")),
    case("names: a part of 90 letters and 270 bytes", DOUBT, long_name(TOP + "\u20ac".encode() * 90), module(b"x")),
    case("names: 4,000 bytes", DOUBT, long_name(TOP + b"n/" * 300 + b"a" * 200 + b"/" + b"b/" * 1520), module(b"x")),
    case("names: 450 folders deep", DOUBT, long_name(TOP + b"d/" * 450 + b"a.py"), module(b"x")),
    case("names: no UTF-8", DOUBT, module(TOP + b"ev\xffil.py")),
    case("names: two that differ in a wrong byte", DOUBT, module(TOP + b"e\xfe.py"), module(TOP + b"e\xff.py")),
    case("names: none", DOUBT, module(b"")),
    case("names: blanks", SAME, module(TOP + b" .py"), module(b"demo-1.0/ /x.py")),
    case("names: a line end", SAME, module(TOP + b"a\nb.py"), module(TOP + b"\n")),
    case("names: a hidden folder", SAME, module(TOP + b".hidden/a.py"), module(TOP + b"...")),
)

TYPE_CASES = (
    case("types: a file that ends in /", DOUBT, module(TOP + b"evil.py/")),
    case("types: setup.py/", DOUBT, tar_member(TOP + b"setup.py/", EVIL_SETUP)),
    case("types: a pax path that ends in /", SAME, pax((b"path", TOP + b"evil.py/")), module(b"x")),
    case(
        "types: a pax path PKG-INFO/",
        SAME,
        pax((b"path", TOP + b"PKG-INFO/")),
        tar_member(b"x", EVIL_INFO),
        requires=("evil",),
    ),
    case("types: a long name that ends in /", DOUBT, long_name(TOP + b"evil.py/"), module(b"x")),
    case("types: an old file that ends in /", SAME, tar_header(TOP + b"evil.py/", kind=b"\0")),
    case("types: an old file with a pax path", DOUBT, pax((b"path", TOP + b"evil.py")), tar_header(b"x/", kind=b"\0")),
    case("types: an old file with a long name", DOUBT, long_name(TOP + b"evil.py/"), tar_header(b"x", kind=b"\0")),
    case("types: contiguous", SAME, module(TOP + b"evil.py", b"7")),
    case("types: unknown", DOUBT, module(TOP + b"evil.py", b"Z")),
    case("types: a volume's label", DOUBT, tar_header(TOP + b"label", kind=b"V")),
    case("types: a device", DOUBT, tar_header(TOP + b"evil.py", kind=b"3")),
    case("types: a fifo over setup.py", DOUBT, tar_header(TOP + b"setup.py", kind=b"6")),
    case("types: a folder with content", SAME, tar_header(TOP + b"evil", 512, b"5")),
    case(
        "types: a folder with a pax size",
        ERROR,
        pax((b"size", b"512")),
        tar_header(TOP + b"d", kind=b"5"),
        b"x" * BLOCK,
    ),
)

LINK_CASES = (
    case("links: a symbolic link to a module", SAME, link(TOP + b"evil.py", b"demo.py")),
    case(
        "links: PKG-INFO to a file before it",
        SAME,
        start=tar_member(TOP + b"setup.py", SETUP)
        + tar_member(TOP + b"i.txt", EVIL_INFO)
        + link(TOP + b"PKG-INFO", b"i.txt"),
        requires=("evil",),
    ),
    case(
        "links: PKG-INFO to a file behind it",
        SAME,
        start=tar_member(TOP + b"setup.py", SETUP)
        + link(TOP + b"PKG-INFO", b"i.txt")
        + tar_member(TOP + b"i.txt", EVIL_INFO),
        requires=("evil",),
    ),
    case(
        "links: setup.py to a file in a folder",
        SAME,
        link(TOP + b"setup.py", b"sub/evil.txt"),
        tar_member(TOP + b"sub/evil.txt", EVIL_SETUP),
    ),
    case(
        "links: a link over setup.py",
        SAME,
        link(TOP + b"setup.py", b"evil.txt"),
        tar_member(TOP + b"evil.txt", EVIL_SETUP),
    ),
    case("links: a chain", SAME, link(TOP + b"a.py", b"b.py"), link(TOP + b"b.py", b"demo.py")),
    case("links: a file through a link", DOUBT, link(TOP + b"a", b"setup.py"), tar_member(TOP + b"a", EVIL_SETUP)),
    case("links: a folder", DOUBT, module(TOP + b"sub/a.py"), link(TOP + b"evil", b"sub")),
    case(
        "links: a folder, and a file through it",
        DOUBT,
        FOLDERS,
        link(TOP + b"evil", b"sub"),
        module(TOP + b"evil/b.py"),
    ),
    case("links: the folder that it lies in", DOUBT, link(TOP + b"self", b".")),
    case("links: the top folder as .", DOUBT, link(b"demo-1.0", b"."), start=b"", end=START + END),
    case("links: two in a circle", DOUBT, link(TOP + b"a.py", b"b.py"), link(TOP + b"b.py", b"a.py")),
    case("links: nowhere", DOUBT, link(TOP + b"evil.py", b"none.py")),
    case("links: out", DOUBT, link(TOP + b"evil.py", b"../../etc/passwd")),
    case("links: absolute", DOUBT, link(TOP + b"evil.py", b"/etc/passwd")),
    case("links: out and back", DOUBT, link(TOP + b"evil.py", b"../demo-1.0/demo.py")),
    case("links: .. inside", SAME, FOLDERS, link(TOP + b"sub/evil.py", b"../demo.py")),
    case("links: over a folder", DOUBT, FOLDERS, link(TOP + b"sub", b"demo.py")),
    case(
        "links: doubling folders",
        DOUBT,
        *(
            part
            for n in range(6)
            for part in (
                folder(TOP + b"d%d/" % n),
                link(TOP + b"d%d/a" % n, b"../d%d" % (n + 1)),
                link(TOP + b"d%d/b" % n, b"../d%d" % (n + 1)),
            )
        ),
        module(TOP + b"d6/x.py"),
    ),
    case(
        "links: folders doubled 30 times",
        ERROR,
        *(
            part
            for n in range(30)
            for part in (link(TOP + b"d%d/a" % n, b"../d%d" % (n + 1)), link(TOP + b"d%d/b" % n, b"../d%d" % (n + 1)))
        ),
        module(TOP + b"d30/x.py"),
    ),
    case("links: hard", SAME, module(TOP + b"a.py"), link(TOP + b"evil.py", TOP + b"a.py", b"1")),
    case(
        "links: PKG-INFO by a hard link",
        SAME,
        tar_member(TOP + b"i.txt", EVIL_INFO),
        start=b"",
        end=link(TOP + b"PKG-INFO", TOP + b"i.txt", b"1") + tar_member(TOP + b"setup.py", SETUP) + END,
        requires=("evil",),
    ),
    case(
        "links: hard over PKG-INFO",
        DOUBT,
        tar_member(TOP + b"i.txt", EVIL_INFO),
        link(TOP + b"PKG-INFO", TOP + b"i.txt", b"1"),
    ),
    case(
        "links: hard, and written afterwards",
        DOUBT,
        link(TOP + b"other.py", TOP + b"setup.py", b"1"),
        tar_member(TOP + b"other.py", EVIL_SETUP),
    ),
    case("links: hard to what comes later", DOUBT, link(TOP + b"evil.py", TOP + b"demo.py", b"1")),
    case(
        "links: hard to a symbolic one",
        DOUBT,
        link(TOP + b"s.py", b"setup.py"),
        link(TOP + b"evil.py", TOP + b"s.py", b"1"),
    ),
    case("links: hard to a folder", DOUBT, FOLDERS, link(TOP + b"evil", TOP + b"sub", b"1")),
    case("links: hard without the top folder", DOUBT, link(TOP + b"evil.py", b"setup.py", b"1")),
    case("links: hard by another spelling", SAME, link(TOP + b"evil.py", TOP + b"./setup.py", b"1")),
    case("links: hard with content", SAME, tar_header(TOP + b"evil.py", 512, b"1", link=TOP + b"setup.py")),
    case("links: pax linkpath", SAME, pax((b"linkpath", b"setup.py")), link(TOP + b"evil.py", b"none")),
    case("links: long link", SAME, long_name(b"setup.py", b"K"), link(TOP + b"evil.py", b"none")),
)


def sparse(*fields: tuple[bytes, bytes], data: bytes = EVIL_INFO, name: bytes = b"x", kind: bytes = b"x") -> bytes:
    return pax(*fields, kind=kind) + tar_member(name, data)


MAJOR, MINOR = (b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0")
NAME = (b"GNU.sparse.name", TOP + b"PKG-INFO")
SIZE = (b"GNU.sparse.size", b"%d" % len(EVIL_INFO))
REAL_SIZE = (b"GNU.sparse.realsize", b"%d" % len(EVIL_INFO))
MAP = (b"GNU.sparse.map", b"0,%d" % len(EVIL_INFO))
MAP_TEXT = padded(b"1\n0\n%d\n" % len(EVIL_INFO))
BROKEN = tar_header(TOP + b"a.py")


def with_field(at: int, field: bytes) -> bytes:
    """Return a header with these bytes at this position, and a correct checksum."""
    header = bytearray(tar_header(TOP + b"evil.py"))
    header[at : at + len(field)] = field
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def signed(name: bytes) -> bytes:
    header = bytearray(tar_header(name))
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(memoryview(header).cast("b"))
    return bytes(header)


def padded_pax(content: bytes, behind: bytes) -> bytes:
    """Return a pax header whose records continue past its size."""
    return tar_header(b"x", len(content), b"x") + (content + behind).ljust(BLOCK, b"\0")


HEADER_CASES = (
    case("sparse: map, size and name", SAME, sparse(NAME, SIZE, MAP), requires=("evil",)),
    case("sparse: 1.0", SAME, sparse(MAJOR, MINOR, NAME, REAL_SIZE, data=MAP_TEXT + EVIL_INFO), requires=("evil",)),
    case("sparse: major without minor", DOUBT, sparse(MAJOR, NAME, (b"GNU.sparse.realsize", b"20"), data=EVIL_INFO)),
    case("sparse: major 2", DOUBT, sparse((b"GNU.sparse.major", b"2"), MINOR, NAME)),
    case(
        "sparse: path behind the name", SAME, sparse(NAME, SIZE, MAP, (b"path", TOP + b"evil.py")), requires=("honest",)
    ),
    case(
        "sparse: path before the name", SAME, sparse((b"path", TOP + b"evil.py"), NAME, SIZE, MAP), requires=("evil",)
    ),
    case("sparse: a size of its own", ERROR, sparse(NAME, REAL_SIZE, MAP, (b"size", b"%d" % len(EVIL_INFO)))),
    case("sparse: a global map", ERROR, sparse(MAP, SIZE, kind=b"g", name=TOP + b"x.py")),
    case("sparse: a global name", ERROR, pax(NAME, kind=b"g"), tar_member(TOP + b"x", EVIL_INFO)),
    case(
        "sparse: a global size, and a pax header",
        ERROR,
        pax(SIZE, kind=b"g"),
        pax((b"path", TOP + b"y.py")),
        module(b"x"),
    ),
    case("sparse: name alone", DOUBT, sparse(NAME)),
    case("sparse: a name that ends in /", DOUBT, sparse((b"GNU.sparse.name", TOP + b"PKG-INFO/"), SIZE, MAP)),
    case("sparse: pairs that are none", ERROR, sparse(NAME, SIZE, (b"GNU.sparse.offset", b"0"))),
    case(
        "sparse: a pair in a value",
        ERROR,
        sparse(
            NAME,
            SIZE,
            (b"comment", b"\n22 GNU.sparse.offset=5\n"),
            (b"GNU.sparse.offset", b"0"),
            (b"GNU.sparse.numbytes", b"9"),
        ),
    ),
    case("sparse: a map beyond the size", ERROR, sparse(NAME, (b"GNU.sparse.size", b"5"), MAP)),
    case(
        "sparse: a map that is no number, of a module",
        ERROR,
        sparse((b"path", TOP + b"a.py"), SIZE, (b"GNU.sparse.map", b"x")),
    ),
    case(
        "sparse: 1.0 without a map, of a module", ERROR, sparse(MAJOR, MINOR, (b"path", TOP + b"a.py"), data=b"rubbish")
    ),
    case("sparse: on a folder", ERROR, pax(MAP, SIZE), folder(TOP + b"d/")),
    case("pax: an empty path", DOUBT, pax((b"path", b"")), module(TOP + b"evil.py")),
    case("pax: the path /", DOUBT, pax((b"path", b"/")), module(TOP + b"evil.py")),
    case("pax: a path with a NUL", DOUBT, pax((b"path", TOP + b"evil.py\0.txt")), module(b"x")),
    case("pax: a path twice", SAME, pax((b"path", TOP + b"a.txt"), (b"path", TOP + b"evil.py")), module(b"x")),
    case("pax: two headers", DOUBT, pax((b"path", TOP + b"evil.py")), pax((b"path", TOP + b"a.txt")), module(b"x")),
    case(
        "pax: a path and a long name", DOUBT, long_name(TOP + b"a.txt"), pax((b"path", TOP + b"evil.py")), module(b"x")
    ),
    case(
        "pax: a long name and a path", DOUBT, pax((b"path", TOP + b"a.txt")), long_name(TOP + b"evil.py"), module(b"x")
    ),
    case(
        "pax: a keyword with a line end",
        SAME,
        pax_header(pax_record(b"a\n30 path", TOP + b"evil.py")),
        module(TOP + b"a.txt"),
    ),
    case(
        "pax: a record behind the size",
        DOUBT,
        padded_pax(b"5 a=\n", pax_record(b"path", TOP + b"evil.py")),
        module(TOP + b"a.txt"),
    ),
    case(
        "pax: a record behind a NUL",
        SAME,
        pax_header(pax_record(b"a", b"") + b"\0" + pax_record(b"path", b"evil.py")),
        module(TOP + b"a.txt"),
    ),
    case(
        "pax: a record that is too short", ERROR, pax_header(b"10 path=" + TOP + b"evil.py\n"), module(TOP + b"a.txt")
    ),
    case("pax: a path without a line end", ERROR, pax_header(b"26 path=demo-1.0/evil.pyX\0"), module(TOP + b"a.txt")),
    case("pax: a size that is too large", ERROR, pax((b"size", b"5000")), module(TOP + b"a.py")),
    case(
        "pax: a size that hides a member",
        SAME,
        pax((b"size", b"512")),
        tar_header(TOP + b"a.txt"),
        module(TOP + b"evil.py")[:BLOCK],
    ),
    case(
        "pax: a size that is no number",
        ERROR,
        pax((b"size", b" 512")),
        tar_header(TOP + b"a.txt"),
        module(TOP + b"evil.py")[:BLOCK],
    ),
    case("pax: a size in the header alone", SAME, tar_member(TOP + b"a.txt", module(TOP + b"evil.py"))),
    case(
        "pax: a sparse file larger than any file",
        ERROR,
        pax((b"GNU.sparse.major", b"9"), (b"GNU.sparse.size", b"9" * 20)),
        module(TOP + b"evil.py"),
    ),
    case(
        "pax: a sparse file with a hole larger than any file",
        ERROR,
        pax((b"GNU.sparse.map", b"0,1," + b"9" * 19 + b",0"), (b"GNU.sparse.realsize", b"1")),
        tar_member(TOP + b"evil.txt", b"x"),
    ),
    case("pax: a time that is none", DOUBT, pax((b"mtime", b"inf")), module(TOP + b"evil.py")),
    case("pax: a time in the future", DOUBT, pax((b"mtime", b"9" * 30)), module(TOP + b"evil.py")),
    case("pax: a character set", DOUBT, pax((b"hdrcharset", b"\xff"), (b"path", TOP + b"evil.py")), module(b"x")),
    case(
        "pax: a character set behind the records",
        DOUBT,
        pax_header(pax_record(b"path", TOP + b"evil.py") + b"\0007 hdrcharset=\xff\n", b"x"),
        module(b"x"),
    ),
    case("pax: BINARY", SAME, pax((b"hdrcharset", b"BINARY"), (b"path", TOP + "é.py".encode())), module(b"x")),
    case("global: a path", DOUBT, pax((b"path", TOP + b"evil.py"), kind=b"g"), module(TOP + b"a.txt")),
    case("global: a link's path", DOUBT, pax((b"linkpath", b"setup.py"), kind=b"g"), link(TOP + b"evil.py", b"none")),
    case("global: a size", DOUBT, pax((b"size", b"512"), kind=b"g"), module(TOP + b"a.txt"), module(TOP + b"evil.py")),
    case(
        "global: a size of 0 before setup.py",
        DOUBT,
        pax((b"size", b"0"), kind=b"g"),
        tar_member(TOP + b"setup.py", EVIL_SETUP),
    ),
    case(
        "global: a size, and a pax header",
        DOUBT,
        pax((b"size", b"1536"), kind=b"g"),
        pax((b"path", TOP + b"a.txt")),
        module(b"x"),
        module(TOP + b"evil.py"),
    ),
    case("global: a comment", SAME, pax((b"comment", b"0" * 40), kind=b"g"), module(TOP + b"evil.py")),
    case("global: 400 in a row", DOUBT, *[pax((b"comment", b"0"), kind=b"g")] * 400, module(TOP + b"evil.py")),
    case("global: at the end", ERROR, end=pax((b"comment", b"0"), kind=b"g") + bytes(1024)),
    case("numbers: a mode that is none", ERROR, with_field(100, b"rubbish\0")),
    case("numbers: a user that is none", ERROR, with_field(108, b"99999999")),
    case("numbers: a device that is none", ERROR, with_field(329, b"rubbish\0")),
    case("numbers: a time that is none", ERROR, with_field(136, b"rubbish\0")),
    case("numbers: a time of 2**80", DOUBT, with_field(136, tar_number(2**80, 12))),
    case("numbers: a group in base 256", SAME, with_field(116, tar_number(2**40, 8))),
    case("numbers: a size in base 256", SAME, with_field(124, b"\x80" + bytes(11))),
    case("numbers: a size in another base 256", ERROR, with_field(124, b"\x81" + bytes(11))),
    case("numbers: a size with an underscore", SAME, with_field(124, b"0_000\0")),
    case("numbers: a negative size", ERROR, with_field(124, b"-1\0")),
    case("numbers: blanks", SAME, with_field(100, b"   644 \0 "[:8])),
    case("numbers: a signed checksum", SAME, signed(TOP + "évil.py".encode())),
    case(
        "numbers: a wrong checksum behind the last member",
        ERROR,
        tar_header(TOP + b"x", checksum_error=1),
        end=bytes(1024),
    ),
    case("end: half a header", ERROR, module(TOP + b"evil.py"), end=END[:-1024] + tar_header(TOP + b"x.py")[:100]),
    case("end: half an empty block", SAME, module(TOP + b"evil.py"), end=END[:-1024] + bytes(100)),
    case("end: none", SAME, module(TOP + b"evil.py"), end=END[:-1024]),
    case("end: an empty block, and members behind it", SAME, bytes(BLOCK), module(TOP + b"evil.py")),
    case("end: a pax header", ERROR, end=pax((b"path", b"x")) + bytes(1024)),
    case("end: the last member is cut", ERROR, end=tar_header(TOP + b"demo.py", 600) + b"x" * 600),
    case("old: no magic", SAME, tar_header(TOP + b"evil.py", magic=bytes(8))),
    case("old: a prefix without a magic", SAME, tar_header(b"evil.py", prefix=TOP[:-1], magic=bytes(8))),
    case("old: a prefix in GNU's format", DOUBT, tar_header(b"evil.py", prefix=b"14332", magic=b"ustar  \0")),
    case(
        "old: a sparse file with a prefix",
        SAME,
        tar_header(TOP + b"evil.py", kind=b"S", magic=b"ustar  \0", tail=bytes(150)),
    ),
)

PLAIN = START + END
OTHER_ZIP = zip_bytes({"demo-1.0/PKG-INFO": EVIL_INFO, "demo-1.0/setup.py": EVIL_SETUP, "demo-1.0/evil.py": ""})

KIND_CASES = (
    TarCase("kinds: a zip behind a tar", DOUBT, lambda: tar() + OTHER_ZIP),
    TarCase("kinds: a zip behind a tar, named .zip", DOUBT, lambda: tar() + OTHER_ZIP, ZIP, requires=("evil",)),
    TarCase("kinds: a zip behind a plain tar, named .zip", DOUBT, lambda: PLAIN + OTHER_ZIP, ZIP, requires=("evil",)),
    TarCase("kinds: a zip behind a plain tar", DOUBT, lambda: PLAIN + OTHER_ZIP, "demo-1.0.tar"),
    TarCase(
        "kinds: a zip in a member of a plain tar",
        DOUBT,
        lambda: START + tar_member(TOP + b"x.zip", OTHER_ZIP) + END,
        "demo-1.0.tar",
    ),
    TarCase("kinds: a tar behind a zip", SAME, lambda: OTHER_ZIP + PLAIN[:100], ZIP, requires=("evil",)),
    TarCase("kinds: a zip, named .tar.gz", DOUBT, lambda: OTHER_ZIP),
    TarCase("kinds: a tar, named .zip", DOUBT, tar, ZIP),
    TarCase("kinds: a plain tar, named .zip", DOUBT, lambda: PLAIN, ZIP),
    TarCase("kinds: a plain tar, named .tar.gz", DOUBT, lambda: PLAIN),
    TarCase("kinds: bzip2, named .tar.gz", DOUBT, lambda: bz2.compress(PLAIN)),
    TarCase("kinds: gzip, named .tar.bz2", DOUBT, tar, "demo-1.0.tar.bz2"),
    TarCase("kinds: gzip, named .tar", SAME, tar, "demo-1.0.tar"),
    TarCase("kinds: xz, named .tar.xz", SAME, lambda: lzma.compress(PLAIN), "demo-1.0.tar.xz"),
    TarCase("kinds: xz, named .txz", SAME, lambda: lzma.compress(PLAIN), "demo-1.0.txz"),
    TarCase("kinds: bzip2, named .TBZ", SAME, lambda: bz2.compress(PLAIN), "demo-1.0.TBZ"),
    TarCase("kinds: lzma, named .tar.lzma", SAME, lambda: lzma.compress(PLAIN, lzma.FORMAT_ALONE), "demo-1.0.tar.lzma"),
    TarCase("kinds: gzip twice", ERROR, lambda: gzip.compress(tar())),
    TarCase("kinds: two gzip members", SAME, lambda: gzip.compress(PLAIN[:700]) + gzip.compress(PLAIN[700:])),
    TarCase(
        "kinds: a second tar in a second gzip member",
        SAME,
        lambda: tar() + gzip.compress(START + module(TOP + b"evil.py") + END),
    ),
    TarCase(
        "kinds: a second tar in a second gzip member, the first without an end",
        SAME,
        lambda: gzip.compress(START) + gzip.compress(module(TOP + b"evil.py") + END),
    ),
    TarCase("kinds: rubbish behind gzip", DOUBT, lambda: gzip.compress(START) + b"rubbish"),
    TarCase(
        "kinds: zeros and a second bzip2 stream",
        DOUBT,
        lambda: bz2.compress(START) + bytes(8) + bz2.compress(module(TOP + b"evil.py") + END),
        "demo-1.0.tar.bz2",
    ),
    TarCase(
        "kinds: a second bzip2 stream",
        SAME,
        lambda: bz2.compress(START) + bz2.compress(module(TOP + b"evil.py") + END),
        "demo-1.0.tar.bz2",
    ),
    TarCase(
        "kinds: zeros and a second xz stream",
        DOUBT,
        lambda: lzma.compress(START) + bytes(8) + lzma.compress(module(TOP + b"evil.py") + END),
        "demo-1.0.tar.xz",
    ),
)


def zip_case(name: str, outcome: str, *names: bytes, contents: bytes = EVIL_INFO, **expected: object) -> TarCase:
    first = [Entry(TOP + b"PKG-INFO", INFO, DEFLATED), Entry(TOP + b"setup.py", SETUP, DEFLATED)]
    entries = [*first, Entry(TOP + b"demo.py"), *(Entry(name, contents, DEFLATED) for name in names)]
    return TarCase(f"zip: {name}", outcome, lambda: raw_zip(entries), ZIP, **expected)  # type: ignore[arg-type]


ZIP_CASES = (
    zip_case("honest", SAME, TOP + b"other.py", requires=("honest",)),
    zip_case("..", SAME, TOP + b"sub/../evil.py"),
    zip_case(".. over PKG-INFO", SAME, TOP + b"sub/../PKG-INFO", requires=("evil",)),
    zip_case("./ over PKG-INFO", SAME, TOP + b"./PKG-INFO", requires=("evil",)),
    zip_case("// over PKG-INFO", DOUBT, TOP + b"/PKG-INFO"),
    zip_case("// inside over PKG-INFO of an .egg-info", SAME, TOP + b"demo.egg-info//PKG-INFO"),
    zip_case("twice", SAME, TOP + b"PKG-INFO", requires=("evil",)),
    zip_case("absolute", DOUBT, b"/evil.py"),
    zip_case("absolute in the top folder", SAME, b"/demo-1.0/PKG-INFO", requires=("evil",)),
    zip_case("out", DOUBT, b"../evil.py"),
    zip_case("out of the top folder", DOUBT, TOP + b"../evil.py"),
    zip_case("a backslash as the separator", SAME, b"demo-1.0\\PKG-INFO"),
    zip_case("a backslash at the end", DOUBT, TOP + b"evil.py\\"),
    zip_case("a backslash inside", DOUBT, TOP + b"pkg\\evil.py"),
    zip_case("a stray file", DOUBT, b"evil.py"),
    zip_case("another folder", DOUBT, b"other/"),
    zip_case("a file below a file", DOUBT, TOP + b"setup.py/evil.py"),
    zip_case("a folder over a file", DOUBT, TOP + b"setup.py/"),
    zip_case("a NUL", SAME, TOP + b"PKG-INFO\0.txt", requires=("evil",)),
    zip_case("a part of 300 bytes", DOUBT, TOP + b"n" * 300),
    zip_case("ends in /.", DOUBT, TOP + b"a/."),
    TarCase(
        "zip: an empty member that is encrypted",
        DOUBT,
        lambda: raw_zip([Entry(TOP + b"setup.py", SETUP), Entry(TOP + b"evil.py", flags=ENCRYPTED_FLAG)]),
        ZIP,
    ),
    TarCase(
        "zip: an empty member of a method that nobody reads",
        DOUBT,
        lambda: raw_zip([Entry(TOP + b"setup.py", SETUP), Entry(TOP + b"evil.py", b"", DEFLATE64)]),
        ZIP,
    ),
    TarCase(
        "zip: all with backslashes",
        SAME,
        lambda: raw_zip([Entry(b"demo-1.0\\setup.py", SETUP), Entry(b"demo-1.0\\PKG-INFO", EVIL_INFO)]),
        ZIP,
    ),
)

CASES = (*NAME_CASES, *TYPE_CASES, *LINK_CASES, *HEADER_CASES, *KIND_CASES, *ZIP_CASES)
