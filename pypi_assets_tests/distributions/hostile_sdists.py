"""More odd sdists: links, and data after the compressed stream."""

import bz2
import lzma
from collections.abc import Callable
from functools import partial

from pypi_assets_tests.distributions.hostile_tars import (
    DOUBT,
    ERROR,
    SAME,
    SETUP,
    START,
    TOP,
    TarCase,
    case,
    link,
    module,
    tar,
)
from pypi_assets_tests.distributions.raw_archives import BLOCK, tar_member

EVIL = TOP + b"evil.py"
WITHOUT_END = START + tar_member(TOP + b"demo.py", b"x = 1\n")
MORE = module(EVIL) + bytes(2 * BLOCK)


def next_to_setup(top: bytes, *, kind: bytes, target: bytes) -> bytes:
    """Return a link next to setup.py in an archive whose names all begin with `top`."""
    return tar(link(top + b"evil.py", target, kind), start=tar_member(top + b"setup.py", SETUP), end=bytes(2 * BLOCK))


TARGETS = (
    case("targets: a file with a slash", DOUBT, link(EVIL, b"setup.py/")),
    case("targets: a file with a slash and a dot", DOUBT, link(EVIL, b"setup.py/.")),
    case("targets: back from a folder that is not there", DOUBT, link(EVIL, b"none/../setup.py")),
    case("targets: back from a file", DOUBT, link(EVIL, b"PKG-INFO/../setup.py")),
    case("targets: back from a folder", SAME, module(TOP + b"sub/a.py"), link(EVIL, b"sub/../setup.py")),
    case("targets: back from a linked folder", DOUBT, link(TOP + b"sub", b"."), link(EVIL, b"sub/../setup.py")),
    case("targets: doubled slashes", SAME, link(EVIL, b".//setup.py")),
    case("targets: hard by an absolute name", DOUBT, link(EVIL, b"/" + TOP + b"setup.py", b"1")),
    case("targets: hard by a backslash", DOUBT, link(EVIL, b"demo-1.0\\setup.py", b"1")),
    case("targets: hard to itself", DOUBT, link(EVIL, EVIL, b"1")),
    *(
        TarCase(
            f"targets: below {top.decode()}, {name}", outcome, partial(next_to_setup, top, kind=kind, target=target)
        )
        for top, name, outcome, kind, target in (
            (TOP, "symbolic", SAME, b"2", b"setup.py"),
            (TOP, "hard", SAME, b"1", TOP + b"setup.py"),
            (b"./", "symbolic", DOUBT, b"2", b"setup.py"),
            (TOP + b"./", "symbolic", DOUBT, b"2", b"setup.py"),
            (b"demo-1.0\\", "symbolic", DOUBT, b"2", b"setup.py"),
            (b"demo-1.0\\", "hard", DOUBT, b"1", TOP + b"setup.py"),
            (b"/demo-1.0/", "symbolic", SAME, b"2", b"setup.py"),
            (b"/demo-1.0/", "hard", DOUBT, b"1", TOP + b"setup.py"),
        )
    ),
)


def _alone(content: bytes) -> bytes:
    return lzma.compress(content, lzma.FORMAT_ALONE)


def followed(
    name: str, outcome: str, compress: Callable[[bytes], bytes], suffix: str, rest: bytes
) -> tuple[TarCase, ...]:
    """Return two cases with trailing data, after a whole tar and after an unfinished tar."""
    whole, part = compress(WITHOUT_END + bytes(2 * BLOCK)), compress(WITHOUT_END)
    filename = f"demo-1.0.tar.{suffix}"
    return (
        TarCase(f"rest: {name}, behind a whole tar", outcome, lambda: whole + rest, filename),
        TarCase(f"rest: {name}, behind a part", outcome, lambda: part + rest, filename),
    )


RESTS = (
    *followed("lzma behind xz", DOUBT, lzma.compress, "xz", _alone(MORE)),
    *followed("the start of xz", DOUBT, lzma.compress, "xz", b"\xfd7z"),
    *followed("four zeros behind xz", DOUBT, lzma.compress, "xz", bytes(4)),
    *followed("rubbish behind xz", DOUBT, lzma.compress, "xz", b"rubbish and more of it"),
    *followed("an empty part of xz", SAME, lzma.compress, "xz", lzma.compress(b"")),
    *followed("xz behind lzma", DOUBT, _alone, "lzma", lzma.compress(MORE)),
    *followed("four zeros behind lzma", DOUBT, _alone, "lzma", bytes(4)),
    *followed("rubbish behind lzma", DOUBT, _alone, "lzma", b"rubbish and more of it"),
    *followed("an empty part of lzma", SAME, _alone, "lzma", _alone(b"")),
    *followed("the start of bzip2", DOUBT, bz2.compress, "bz2", b"B"),
    *followed("a zero behind bzip2", DOUBT, bz2.compress, "bz2", b"\0"),
    *followed("rubbish behind bzip2", DOUBT, bz2.compress, "bz2", b"rubbish"),
    *followed("an empty part of bzip2", SAME, bz2.compress, "bz2", bz2.compress(b"")),
    *followed("a cut part of bzip2", ERROR, bz2.compress, "bz2", bz2.compress(MORE)[:-7]),
)

CASES = (*TARGETS, *RESTS)
