"""Draws zips with odd headers and compares each read with Python's zipfile.

    python -m pypi_assets_tests.distributions.zip_differences [--seconds 60] [--seed 0]

Everything that zipfile reads is read here, or there is an error or a note of doubt. So there is for everything that
zipfile rejects. Zips that zipfile reads but that have an error here are counted by error text.
"""

import argparse
import io
import sys
import time
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from random import Random

from pypi_assets.distributions.archives import keep
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import Budget, LimitExceededError, ReadLimits
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets.distributions.sources import SeekableFileSource
from pypi_assets.distributions.zip_directory import BadZipError, TailWindow, find_directory
from pypi_assets.distributions.zip_entries import sizes_at, walk_entries
from pypi_assets.distributions.zips import extract_zip
from pypi_assets_tests.distributions.hostile_wheels import lzma_member, unicode_path
from pypi_assets_tests.distributions.raw_archives import (
    BZIP2,
    DEFLATED,
    LZMA,
    MAX_32,
    STORED,
    Entry,
    end_record,
    raw_zip,
    zip64_extra,
)

NAMES = (b"a", b"b.py", b"c/d.py", b"c/", b"./a", b"x\0y", "é".encode(), b"\xff", b"", b"a/../b.py", b"d\\e", b"/f")
FIELDS = (b"", b"", b"", b"\x99\x99\x02\x00ab", b"\x99\x99\x09\x00a", b"abc", b"\x55\x54\x05\x00abcde")
SIZES = (None, None, None, None, 0, 1, 7, 100, MAX_32)
FLAGS = (0x800, 0x800, 0x800, 0, 0x808, 0x801, 0x820, 0x840)
METHODS = (STORED, STORED, DEFLATED, DEFLATED, BZIP2, LZMA, 9, 93)


class AllNames:
    """Collects names unchanged up to a NUL."""

    def __init__(self, extract: Extract, budget: Budget) -> None:
        self.names: list[str] = []
        self.positions: list[int] = []
        self.places: dict[str, int] = {}

    def add_all(self, names: list[str], places: list[int]) -> None:
        cut = [name.partition("\0")[0] for name in names]
        self.names += cut
        self.positions += places
        self.places |= dict(zip(cut, places, strict=True))

    def finish(self) -> None:
        """Do nothing: names are compared unchanged."""


def drawn_entry(random: Random) -> Entry:
    name = random.choice(NAMES)
    content = random.choice((b"", b"x = 1\n", b"0" * 100, bytes(range(256))))
    method = random.choice(METHODS) if random.random() < 0.5 else STORED
    data = lzma_member(content) if method == LZMA else None
    odd = random.random() < 0.4
    extra = random.choice(FIELDS)
    size, compressed = (random.choice(SIZES), random.choice(SIZES)) if odd else (None, None)
    if odd and random.random() < 0.5:
        numbers = [random.choice((0, len(content), 7, MAX_32)) for _ in range(random.randrange(4))]
        extra += zip64_extra(*numbers) * random.randrange(1, 3)
    if odd and random.random() < 0.3:
        raw = random.choice((name, b"z"))
        extra += unicode_path(random.choice(NAMES), raw, version=random.choice((1, 1, 2)), cut=random.choice((3, 99)))
    cut = content[:size] if size is not None and size < len(content) and random.random() < 0.5 else content
    return Entry(
        name,
        content,
        method,
        data,
        flags=random.choice(FLAGS) if odd else 0x800,
        crc=zlib.crc32(cut) if random.random() < 0.95 else 1,
        size=size,
        compressed_size=compressed,
        local_name=random.choice((None, name, b"a")) if odd else None,
        extra=extra,
        local_extra=random.choice(FIELDS),
        external_attr=random.choice((0o644, 0o120777, 0o40755)) << 16,
        disk=random.choice((0, 0, 0, 0xFFFF, 3)) if odd else 0,
        offset=random.choice((None, 0, 30)) if random.random() < 0.05 else None,
    )


def drawn_zip(random: Random) -> bytes:
    entries = [drawn_entry(random) for _ in range(random.randrange(1, 5))]
    changes: dict[str, object] = {}
    if random.random() < 0.4:
        choices: dict[str, tuple[object, ...]] = {
            "prefix": (b"", b"#!/bin/sh\n" * 3),
            "prefix_counts": (False, True),
            "comment": (b"", b"text", end_record(0, 0, 0), end_record(0, 0, 0, comment_length=9)),
            "trailing": (b"", b"", b"\0" * 9),
            "size_error": (0, 0, 0, 1, -1, 46),
            "offset_error": (0, 0, 0, 1, 30),
            "count": (None, 1, 0xFFFF),
            "zip64": (False, True),
            "zip64_count": (None, 7),
            "zip64_position": (None, None, 0, 40, 2**40),
            "after_directory": (b"", b"", b"PK\5\5\0\0"),
        }
        for name in random.sample(sorted(choices), random.randrange(1, 4)):
            changes[name] = random.choice(choices[name])
    content = bytearray(raw_zip(entries, **changes))  # type: ignore[arg-type]
    for _ in range(random.choice((0, 0, 0, 1, 2, 4))):
        at = random.randrange(len(content))
        content[at : at + 1] = random.choice((b"\0", b"\xff", bytes([random.randrange(256)]), b"PK\1\2", b"PK\6\7"))
    return bytes(content)


def by_zipfile(content: bytes) -> tuple[list[tuple[str, int]], dict[str, bytes | None]] | None:
    """Return names with the offsets of their members, and contents.

    The result is None if zipfile rejects the zip. The content of a rejected member is None.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            contents: dict[str, bytes | None] = {}
            for name in archive.namelist():
                try:
                    contents[name] = archive.read(name)
                except Exception:  # noqa: BLE001 - an installer fails at any error
                    contents[name] = None
            return [(info.filename, info.header_offset) for info in archive.infolist()], contents
    except Exception:  # noqa: BLE001 - as above
        return None


def by_reader(content: bytes) -> tuple[list[tuple[str, int]], Extract]:
    budget = Budget(ReadLimits())
    extract = extract_zip(SeekableFileSource(io.BytesIO(content)), list, budget, AllNames)
    places: list[tuple[str, int]] = []
    names = AllNames(extract, budget)
    try:
        directory = find_directory(TailWindow(SeekableFileSource(io.BytesIO(content)), 0), budget, [])
        walk_entries(directory, names, budget, Extract())
        starts = [sizes_at(directory.content, position)[2] + directory.shift for position in names.positions]
        places = list(zip(names.names, starts, strict=True))
    except (BadZipError, LimitExceededError):
        pass
    return places, extract


def difference(content: bytes) -> tuple[str | None, str | None]:
    """Return the silent difference, if any, and the error here if zipfile reads the whole zip."""
    theirs = by_zipfile(content)
    places, extract = by_reader(content)
    has_doubt = extract.error is not None or any(note.startswith(AMBIGUOUS) for note in extract.notes)
    if theirs is None or None in theirs[1].values():
        return (None, None) if has_doubt else ("zipfile refuses it", None)
    if extract.error is not None:
        return None, extract.error.text
    if has_doubt:
        return None, None
    if places != theirs[0]:
        return f"names or places: {places} instead of {theirs[0]}", None
    kept = Extract()
    for name, read in theirs[1].items():
        keep(kept, name, read or b"", Budget(ReadLimits()))
    return (None, None) if extract.files == kept.files else ("contents", None)


def drawn_differences(seconds: float, seed: int) -> Iterator[tuple[bytes, str | None, str | None]]:
    random = Random(seed)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(20):
            content = drawn_zip(random)
            yield (content, *difference(content))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    count = silent = 0
    reasons: Counter[str] = Counter()
    for content, problem, reason in drawn_differences(arguments.seconds, arguments.seed):
        count += 1
        if problem is not None:
            silent += 1
            if silent <= 10:
                sys.stdout.write(f"{problem:.300}: {content.hex()}\n")
        if reason is not None:
            reasons[" ".join(reason.partition("BadZipFile: ")[2].split()[:6])] += 1
    sys.stdout.write(f"{count} zips in {time.process_time():.0f} s of processor time, {silent} silent differences\n")
    for reason, number in reasons.most_common():
        sys.stdout.write(f"  {number:7} errors where zipfile reads: {reason}\n")
    sys.exit(silent > 0)


if __name__ == "__main__":
    main()
