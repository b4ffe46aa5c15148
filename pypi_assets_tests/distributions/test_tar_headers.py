"""Tar headers in any sequence: names, kinds, offsets and content match tarfile, or there is a doubt or an error.

`TAR_HEADER_SECONDS` sets the processor time of the comparison.
"""

import io
import os
import tarfile
import time
from random import Random

import pytest

from pypi_assets.distributions.archives import BLOCK, BadTarError, TarStream
from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.tar_headers import TarMember, content_of, read_members, skip_content
from pypi_assets.distributions.unpacked_tree import Doubts, MemberKind
from pypi_assets_tests.distributions.raw_archives import long_name, padded, pax_header, pax_record, tar_header
from pypi_assets_tests.examples import first_seed

SECONDS = float(os.environ.get("TAR_HEADER_SECONDS", "5"))
NAMES = (b"a", b"b/c", b"d/", b"", b"/e", b"n" * 100, b"f\0g", b"h\xff", b"./i", b"j//k/", "é".encode())
VALUES = (*NAMES, b"0", b"1", b"512", b"513", b"1000", b"-1", b" 5", b"x", b"0,5", b"0,5,600,9", b"1e3", b"BINARY")
KEYS = (b"path", b"path", b"linkpath", b"size", b"size", b"mtime", b"comment", b"hdrcharset", b"uid", b"a\n9 path")
SPARSE_KEYS = (b"name", b"size", b"realsize", b"map", b"major", b"minor", b"offset", b"numbytes", b"numblocks", b"x")
KINDS = (b"0", b"0", b"0", b"\0", b"1", b"2", b"3", b"5", b"6", b"7", b"S", b"V", b"x")
FIELDS = (
    b"0000644\0",
    b"   644 \0",
    b"\x80" + bytes(7),
    b"\xff" * 8,
    b"\x81" + bytes(7),
    b"rubbish\0",
    bytes(8),
    b"-1\0 \0 \0 ",
)
FORMS = {
    tarfile.REGTYPE: MemberKind.FILE,
    tarfile.AREGTYPE: MemberKind.FILE,
    tarfile.CONTTYPE: MemberKind.FILE,
    tarfile.GNUTYPE_SPARSE: MemberKind.FILE,
    tarfile.SYMTYPE: MemberKind.SYMBOLIC_LINK,
    tarfile.LNKTYPE: MemberKind.HARD_LINK,
    tarfile.DIRTYPE: MemberKind.FOLDER,
}


def drawn_pax(random: Random) -> bytes:
    records = b""
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        key = random.choice(KEYS) if random.random() < 0.7 else b"GNU.sparse." + random.choice(SPARSE_KEYS)
        records += pax_record(key, random.choice(VALUES))
    if random.random() < 0.08:
        at = random.randrange(len(records) + 1)
        records = records[:at] + random.choice((b"\0", b"\n", b"9 ", b"5 a=\n", b"=")) + records[at + 1 :]
    if random.random() < 0.1:
        return sparse_records(random)
    return records


def sparse_records(random: Random) -> bytes:
    """Return the records of a valid sparse file in any order. Some records may be missing."""
    fields = [(b"major", b"1"), (b"minor", b"0"), (b"name", b"s/p"), (b"realsize", b"700"), (b"size", b"700")]
    fields += [(b"map", b"0,5,600,9"), (b"offset", b"3"), (b"numbytes", b"4")]
    chosen = random.sample(fields, random.randrange(len(fields) + 1))
    return b"".join(pax_record(b"GNU.sparse." + key, value) for key, value in chosen)


def drawn_header(random: Random) -> bytes:
    kind, size = random.choice(KINDS), random.choice((0, 0, 5, 512, 600, 1024, 3000))
    kind = kind if random.random() < 0.97 else bytes([random.randrange(256)])
    tail = None
    if kind == b"S":
        pairs = b"".join(b"%011o\0" % random.choice((0, 3, 5, 600)) for _ in range(random.choice((0, 2, 4, 8))))
        extends = b"\1" if random.random() < 0.1 else b"\0"
        tail = bytes(41) + pairs.ljust(96, b"\0") + extends + b"%011o\0" % random.choice((0, 700, 2000))
    prefix = random.choice((b"", b"", b"", b"pre", b"pre/"))
    magic = random.choice((b"ustar\x0000", b"ustar  \0", bytes(8)))
    header = bytearray(
        tar_header(random.choice(NAMES), size, kind, link=random.choice(NAMES), prefix=prefix, magic=magic, tail=tail)
    )
    if random.random() < 0.1:
        field = random.choice(FIELDS)
        at = random.choice((100, 108, 116, 124, 136, 329, 337))
        header[at : at + 8] = field.ljust(8)
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
    has_content = kind not in {b"1", b"2", b"3", b"5", b"6"}
    texts = (bytes(size), b"1\n0\n5\n".ljust(size, b"c")[:size], random.randbytes(size))
    return bytes(header) + (padded(random.choice(texts)) if has_content else b"")


def drawn_tar(random: Random) -> bytes:
    """Return headers in any order, mostly valid, occasionally cut or with foreign blocks between them."""
    parts = []
    for _ in range(random.randrange(1, 7)):
        for _ in range(random.choice((0, 0, 0, 1, 1, 2))):
            kind = random.random()
            if kind < 0.5:
                parts.append(pax_header(drawn_pax(random), random.choice((b"x", b"x", b"x", b"X", b"g"))))
            else:
                parts.append(long_name(random.choice(NAMES), random.choice((b"L", b"K"))))
        parts.append(drawn_header(random))
    if random.random() < 0.1:
        parts.insert(random.randrange(len(parts)), bytes(BLOCK))
    whole = b"".join(parts) + bytes(random.choice((0, 0, 1024, 100)))
    return whole[: random.randrange(len(whole))] if random.random() < 0.05 else whole


def by_tarfile(content: bytes) -> list[tuple[object, ...]]:
    """Return name, kind, offset, target and content of each member, read by tarfile as pip calls it."""
    members = []
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:", encoding="utf-8") as archive:
        for info in archive.getmembers():
            kind = FORMS.get(info.type, MemberKind.SPECIAL)
            file = _written(archive, info) if kind is MemberKind.FILE else None
            target = info.linkname if info.issym() or info.islnk() else ""
            members.append((info.name, kind, info.offset_data, target, file))
    return members


def _written(archive: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    """Return the content that tarfile's makefile writes."""
    source = archive.fileobj
    assert source is not None
    source.seek(info.offset_data)
    if info.sparse is None:  # type: ignore[attr-defined]
        return source.read(info.size)
    target = io.BytesIO()
    for offset, size in info.sparse:  # type: ignore[attr-defined]
        target.seek(offset)
        target.write(source.read(size))
    return target.getvalue().ljust(info.size, b"\0")[: info.size]


def as_read(content: bytes) -> tuple[list[tuple[object, ...]], Doubts]:
    tar = TarStream(iter([content]))
    doubts = Doubts()
    members: list[tuple[object, ...]] = []
    for member in read_members(tar, doubts):
        file = content_of(tar, member) if member.kind is MemberKind.FILE else skip_content(tar, member)
        target = member.target if member.kind in {MemberKind.SYMBOLIC_LINK, MemberKind.HARD_LINK} else ""
        members.append((member.name, member.kind, start_of(member, content), target, file))
    return members, doubts


def start_of(member: TarMember, content: bytes) -> int:
    """Return the offset of the content in tarfile: after the sparse map."""
    if not member.has_map:
        return member.start
    count = int(content[member.start :].partition(b"\n")[0])
    lines = content[member.start :].split(b"\n", 2 * count + 1)[:-1]
    return member.start + len(padded(b"\n".join((*lines, b""))))


def check(seed: int) -> str:
    """Compare both readings of a drawn tar. Raise AssertionError if they differ without a doubt or an error."""
    content = drawn_tar(Random(seed))
    try:
        members, doubts = as_read(content)
    except (BadTarError, LimitExceededError):
        return "error"
    if doubts.notes:
        return "doubt"
    try:
        expected = by_tarfile(content)
    except Exception as error:
        raise AssertionError(f"seed {seed}: tarfile refuses it, {error!r}") from error
    assert members == expected, f"seed {seed}"
    return "same"


@pytest.mark.nightly
def test_drawn_headers_match_tarfile_or_are_in_doubt():
    first = int(os.environ.get("TAR_HEADER_SEED", first_seed()))
    started = time.process_time()
    counts = dict.fromkeys(("same", "doubt", "error"), 0)
    seed = first
    while time.process_time() - started < SECONDS or min(counts.values()) < 20:  # until each kind is frequent
        counts[check(seed)] += 1
        seed += 1
    print(counts, first)  # noqa: T201 - the result of a long run


def test_drawn_headers_are_deterministic(subtests: pytest.Subtests):
    for seed in range(200):
        with subtests.test(seed=seed):
            check(seed)
