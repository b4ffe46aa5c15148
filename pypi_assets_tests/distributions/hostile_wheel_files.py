"""Wheels with misleading small files, schemes and trees, each built by a small generator. Extends hostile_wheels.

`WHEEL_FILES` gives their content by class and name, like `hostile_wheels.WHEELS`, with the same promise.
"""

import zlib

from pypi_assets_tests.distributions.hostile_wheels import (
    DATA,
    INFO,
    METADATA,
    REST,
    SITE,
    Build,
    info,
    members,
    with_entries,
    with_files,
    with_metadata,
    with_rest,
)
from pypi_assets_tests.distributions.raw_archives import (
    DEFLATE64,
    DEFLATED,
    ENCRYPTED_FLAG,
    MAX_32,
    ZSTD,
    Entry,
    deflate,
    raw_zip,
    zip64_extra,
)

HEAD = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"


def scripts(*lines: bytes, group: bytes = b"console_scripts") -> Build:
    """Return a wheel with these lines in a group of entry points."""
    return with_rest(entry_points_txt=b"[" + group + b"]\n" + b"\n".join(lines) + b"\n")


SCRIPTS: dict[str, Build] = {
    "a blank in the name": scripts(b"de mo = demo:main"),
    "two blanks in the name": scripts(b"de  mo = demo:main"),
    "a semicolon first": scripts(b"; x = demo:main"),
    "two signs of equality": scripts(b"a == demo:main"),
    "no name": scripts(b"= demo:main"),
    "no reference": scripts(b"a ="),
    "blanks around the colon": scripts(b"a = demo : main"),
    "two functions": scripts(b"a = demo:b:c"),
    "no name of a function": scripts(b"a = demo:"),
    "no name of a module": scripts(b"a = :main"),
    "a relative module": scripts(b"a = .demo:main"),
    "a call": scripts(b"a = demo:main()"),
    "code behind the function": scripts(b"a = demo:main;import os"),
    "extras without an end": scripts(b"a = demo:main ["),
    "extras in the name": scripts(b"[a] = demo:main"),
    "a NUL in the name": scripts(b"a\0b = demo:main"),
    "a NUL in the reference": scripts(b"a = de\0mo:main"),
    "a NUL in the group": scripts(b"a = demo:main", group=b"console\0_scripts"),
    "an escape in the name": scripts(b"a\x1bb = demo:main"),
    "no width in the name": scripts("a\u200bb = demo:main".encode()),
    "a long name": scripts(b"a" * 300 + b" = demo:main"),
    "a name with a version, by pip alone": scripts(b"pip = demo:main", b"pip3 = demo:other"),
    "another name with a version": scripts(b"easy_install = demo:main"),
    "a backslash in the name": scripts(b"..\\a = demo:main"),
    "a window and none": scripts(b"a = demo:main", b"", b"[gui_scripts]", b"a = demo:other"),
    "blanks in a reference of another group": scripts(b"a = b  c", group=b"x"),
}

RECORDS: dict[str, Build] = {
    "a blank line": with_rest(RECORD=b"a,,\n\nb,,\n"),
    "a blank line first": with_rest(RECORD=b"\na,,\n"),
    "a blank line at the end": with_rest(RECORD=b"a,,\n\n"),
    "a blank line with returns": with_rest(RECORD=b"a,,\r\n\r\nb,,\r\n"),
    "two form feeds": with_rest(RECORD=b"a\x0c\x0cb,,\n"),
    "a line of blanks": with_rest(RECORD=b"a,,\n  \nb,,\n"),
    "another encoding": with_rest(RECORD=b"\xe9,,\n"),
    "two bytes a character": with_rest(RECORD="a,,\n".encode("utf-16")),
    "a long field": lambda: raw_zip(
        members(rest=[*REST[:2], Entry(INFO + b"RECORD", b"a" * 140_000 + b",,\n", DEFLATED)])
    ),
    "an open quote": with_rest(RECORD=b'"a,,\n'),
    "other files": with_rest(RECORD=b"/etc/passwd,,\n../x,,\ndemo/,,\n"),
    "more columns, and less": with_rest(RECORD=b"a,b,c,d\ne\n"),
    "the file twice": with_rest(RECORD=b"demo.py,,\ndemo.py,sha256=a,1\n"),
}

TREES: dict[str, Build] = {
    "scripts that are a file and a folder": with_files(DATA + b"scripts/a", DATA + b"scripts/a/b"),
    "headers that are a file and a folder": with_files(DATA + b"headers/a", DATA + b"headers/a/b"),
    "data that are a file and a folder": with_files(DATA + b"data/a", DATA + b"data/a/b"),
    "a file where scripts are installed": with_files(DATA + b"data/bin", DATA + b"scripts/a"),
    "data that are a file over a package": with_files(b"pack/a.py", DATA + SITE + b"pack"),
    "METADATA that is a folder too": with_entries(info(b"METADATA/x")),
    "WHEEL that is a folder too": with_entries(info(b"WHEEL/x")),
    "RECORD that is a folder too": with_entries(info(b"RECORD/x")),
    "INSTALLER that is a folder": with_entries(info(b"INSTALLER/x")),
    "the .dist-info folder that is a file": with_entries(Entry(INFO[:-1], b"x")),
    "a second .dist-info folder by a parent": with_files(b"x-1.dist-info/../evil.py"),
    "metadata by the data scheme": with_files(DATA + SITE + b"demo-1.0.dist-info/METADATA"),
    "modules of the standard library in C": with_files(DATA + b"data/lib/python3.11/lib-dynload/evil.so"),
    "a zip that Python looks into": with_files(DATA + b"data/lib/python311.zip"),
    "a folder called like that zip": with_files(DATA + b"data/lib/python311.zip/evil.py"),
    "the settings of an environment": with_files(DATA + b"data/pyvenv.cfg"),
    "the settings of Python's paths": with_files(DATA + b"data/python311._pth"),
    "a module in the prefix": with_files(DATA + b"data/evil.py"),
    "start-up code in the prefix": with_files(DATA + b"data/evil.pth"),
    "a library of Windows": with_files(DATA + b"data/DLLs/evil.pyd"),
    "the standard library of Windows": with_files(DATA + b"data/Lib/evil.py"),
    "a package of forty levels": with_files(b"/".join([b"d"] * 40) + b"/evil.py"),
    "a module with a name of 600 characters": with_files(b"/".join([b"d" * 99] * 6) + b"/evil.py"),
}

FIELDS: dict[str, Build] = {
    "Name in the next line": with_metadata(HEAD.replace(b": demo", b":\n demo")),
    "Name with a blank behind it": with_metadata(HEAD.replace(b"demo", b"demo ")),
    "Name with a tab behind it": with_metadata(HEAD.replace(b"demo", b"demo\t")),
    "a requirement with a control character": with_metadata(HEAD + b"Requires-Dist: real\x7f\n"),
    "a requirement with a separator in it": with_metadata(HEAD + b"Requires-Dist: real\x1f>=1\n"),
    "a requirement without width": with_metadata(HEAD + "Requires-Dist: real\u200b\n".encode()),
    "a requirement with a hard blank": with_metadata(HEAD + "Requires-Dist: real\u00a0>=1\n".encode()),
    "an extra with a control character": with_metadata(HEAD + b"Provides-Extra: a\x1bb\n"),
    "Wheel-Version in two lines": with_rest(WHEEL=b"Wheel-Version: 1.0\n x\n"),
    "Wheel-Version with many digits": with_rest(WHEEL=b"Wheel-Version: 1." + b"0" * 5000 + b"\n"),
    "Wheel-Version with zeros in front": with_rest(WHEEL=b"Wheel-Version: 0000000000001.0\n"),
    "requires.txt of another encoding": with_entries(info(b"requires.txt", b"\xe9\n")),
}

CLAIMS: dict[str, Build] = {
    "METADATA claims 4 GiB": with_metadata(data=deflate(METADATA), size=MAX_32),
    "METADATA claims 2 ** 60 bytes": with_metadata(data=deflate(METADATA), size=MAX_32, extra=zip64_extra(2**60)),
    "METADATA is stored, and claims 4 GiB": with_metadata(METADATA, method=0, size=MAX_32),
    "a start-up file claims 4 GiB": with_entries(
        Entry(b"evil.pth", b"import os\n", DEFLATED, data=deflate(b"import os\n"), size=MAX_32)
    ),
    "a licence claims 4 GiB": with_entries(Entry(INFO + b"LICENSE", b"x", size=MAX_32)),
    "an empty licence that no reader opens": with_entries(Entry(INFO + b"LICENSE", b"", DEFLATE64)),
    "an empty licence of Python 3.14": with_entries(Entry(INFO + b"LICENSE", b"", ZSTD)),
    "an empty licence that is encrypted": with_entries(Entry(INFO + b"LICENSE", b"", flags=ENCRYPTED_FLAG)),
    "an encrypted folder of licences": with_entries(Entry(INFO + b"licenses/", b"", flags=ENCRYPTED_FLAG)),
    "an empty module that no reader opens": with_entries(Entry(b"empty.py", b"", DEFLATE64)),
    "RECORD with a wrong CRC": lambda: raw_zip(
        members(rest=[*REST[:2], Entry(INFO + b"RECORD", b"a,,\n", crc=zlib.crc32(b"b"))])
    ),
}

FILE_CLASSES = {"scripts": SCRIPTS, "records": RECORDS, "trees": TREES, "fields": FIELDS, "claims": CLAIMS}
WHEEL_FILES = {f"{kind}: {name}": build for kind, each in FILE_CLASSES.items() for name, build in each.items()}
