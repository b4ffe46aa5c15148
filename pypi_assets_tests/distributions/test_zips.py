"""The zip reader: reads the same as zipfile, in few ranges. A zip that two readers could see differently is corrupt."""

import hashlib
import io
import random
import struct
import zipfile
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.distributions.limits import MIB, Budget, ReadLimits
from pypi_assets.distributions.metadata import headers_of
from pypi_assets.distributions.record import ErrorKind
from pypi_assets.distributions.sources import MismatchError, SeekableFileSource
from pypi_assets.distributions.zips import extract_zip
from pypi_assets_tests.builders import core_metadata, zip_bytes
from pypi_assets_tests.distributions.raw_archives import (
    BZIP2,
    DEFLATED,
    DESCRIPTOR_FLAG,
    LZMA,
    MAX_32,
    STORED,
    UTF8_FLAG,
    Entry,
    raw_zip,
    zip64_extra,
)
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import mentions

METADATA = "demo-1.0.dist-info/METADATA"
CONTENT = core_metadata("demo", "1.0", requires_dist=["a"], description="x" * 5000).encode()
HEADERS = core_metadata("demo", "1.0", requires_dist=["a"]).encode()
WANTED = Entry(METADATA.encode(), CONTENT, DEFLATED)


class Ranges:
    """A file in memory that records the requested ranges, like an index."""

    def __init__(self, content, *, metadata_sha256=None, sidecar_content=None):
        self.content = content
        self.size = len(content)
        self.metadata_sha256 = metadata_sha256
        self.sidecar_content = sidecar_content
        self.requested = []

    def read_at(self, offset, size):
        assert size > 0
        self.requested.append((offset, size))
        return self.content[offset : offset + size]

    def sidecar(self):
        self.requested.append("sidecar")
        return self.sidecar_content

    @property
    def bytes(self):
        return sum(size for _, size in (each for each in self.requested if each != "sidecar"))


def extract(content, wanted=(METADATA,), **limits):
    source = content if isinstance(content, Ranges) else Ranges(content)
    return extract_zip(source, lambda names: [name for name in names if name in wanted], Budget(ReadLimits(**limits)))


def noise(size, seed=0):
    """Return incompressible bytes without any zip signature."""
    return random.Random(seed).randbytes(size).replace(b"PK", b"kp")


def error_of(extracted):
    assert extracted.error is not None
    assert extracted.error.kind is ErrorKind.CORRUPT_ARCHIVE
    return extracted.error.text


# Reading in ranges


def test_small_file_is_read_whole_and_once():
    source = Ranges(zip_bytes({"a.py": "", METADATA: CONTENT}))
    extracted = extract(source)
    assert (extracted.paths, extracted.files, extracted.error) == (["a.py", METADATA], {METADATA: HEADERS}, None)
    assert source.requested == [(0, source.size)]


def test_only_the_tail_of_a_large_wheel_is_read():
    source = Ranges(zip_bytes({"lib.so": noise(MIB), METADATA: CONTENT}))
    assert extract(source).files == {METADATA: HEADERS}
    assert len(source.requested) == 1
    assert source.bytes <= 32 * 1024


def test_large_directory_takes_one_more_read():
    names = {f"{'package' * 10}/module{number}.py": noise(300, number) for number in range(2000)}
    source = Ranges(zip_bytes(names | {METADATA: CONTENT}))
    extracted = extract(source)
    assert len(extracted.paths) == 2001
    assert extracted.files == {METADATA: HEADERS}
    (tail, tail_size), (start, size) = source.requested
    assert (tail + tail_size, start + size) == (source.size, tail)


def test_distant_members_take_separate_ranges():
    source = Ranges(zip_bytes({METADATA: CONTENT, "top": "x", "lib.so": noise(MIB)}))
    assert extract(source, [METADATA, "top"]).files == {METADATA: HEADERS, "top": b"x"}
    assert len(source.requested) == 2
    assert source.bytes < 40_000


def test_adjacent_members_are_read_in_one_range():
    members = {"a": "1", "between": noise(10_000), "b": "2", "far": noise(MIB), "c": "3", "end": noise(MIB, 1)}
    source = Ranges(zip_bytes(members))
    assert extract(source, "abc").files == {"a": b"1", "b": b"2", "c": b"3"}
    assert len(source.requested) == 3


def test_mostly_needed_file_is_read_whole():
    members = {}
    for number in range(6):
        members |= {f"wanted{number}": noise(200_000, number), f"other{number}": noise(70_000, number)}
    source = Ranges(zip_bytes(members))
    extracted = extract(source, {name for name in members if name.startswith("wanted")})
    assert len(extracted.files) == 6
    assert len(source.requested) == 2
    assert source.bytes == source.size


def test_metadata_in_a_thousand_ranges_is_rejected():
    members = {}
    for number in range(60):
        members |= {f"wanted{number}": "", f"other{number}": noise(70_000, number)}
    content = raw_zip(Entry(name.encode(), data if isinstance(data, bytes) else b"") for name, data in members.items())
    extracted = extract(content, {name for name in members if name.startswith("wanted")})
    assert extracted.error is not None
    assert extracted.error.kind is ErrorKind.LIMIT_EXCEEDED


def test_sidecar_is_requested_if_only_metadata_are_missing():
    content = zip_bytes({METADATA: CONTENT, "lib.so": noise(MIB)})
    source = Ranges(content, sidecar_content=CONTENT)
    assert extract(source).files == {METADATA: HEADERS}
    assert source.requested[1:] == ["sidecar"]
    none = Ranges(content)
    assert extract(none).files == {METADATA: HEADERS}
    assert len(none.requested) == 3
    more = Ranges(zip_bytes({METADATA: CONTENT, "x": "", "lib.so": noise(MIB)}), sidecar_content=CONTENT)
    assert extract(more, [METADATA, "x"]).files == {METADATA: HEADERS, "x": b""}
    assert "sidecar" not in more.requested
    with pytest.raises(MismatchError):
        extract(Ranges(content, sidecar_content=CONTENT + b"x"))


def test_metadata_with_another_hash_than_promised_raises():
    content = zip_bytes({METADATA: CONTENT})
    promised = hashlib.sha256(CONTENT).hexdigest()
    assert extract(Ranges(content, metadata_sha256=promised)).files == {METADATA: HEADERS}
    with pytest.raises(MismatchError):
        extract(Ranges(content, metadata_sha256="0" * 64))


def test_source_errors_propagate():
    class Failing(Ranges):
        def read_at(self, offset, size):
            raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError):
        extract(Failing(b"PK"))


# Agreement with zipfile


NAMES = st.lists(st.sampled_from("abcé/._-PK\x01\x02 \n\\"), min_size=1, max_size=8).map("".join)


@settings(max_examples=examples(80))
@given(
    st.dictionaries(NAMES, st.binary(max_size=300), max_size=12).filter(lambda members: are_distinct(members)),
    st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2]),
    st.binary(max_size=40).filter(lambda comment: b"PK\x05\x06" not in comment),
    st.binary(max_size=40).filter(lambda prefix: b"PK\x06\x07" not in prefix),  # zipfile reads it as a locator
    st.booleans(),
)
def test_content_equals_zipfile(members, method, comment, prefix, zip64):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=zip64) as member:
                member.write(content)
        archive.comment = comment
    with zipfile.ZipFile(io.BytesIO(prefix + buffer.getvalue())) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir()]
        expected = {info.filename: archive.read(info) for info in infos}
    extracted = extract_zip(SeekableFileSource(io.BytesIO(prefix + buffer.getvalue())), list, Budget(ReadLimits()))
    safe = {name: content for name, content in expected.items() if is_clean(name)}
    assert extracted.error is None
    assert {name: extracted.files[name] for name in safe} == safe
    assert set(safe) <= set(extracted.paths)


def are_distinct(names):
    """Check that no two names are one file. zipfile keeps `a` and `./a` apart, but an installer keeps only the last."""
    cleaned = ["/".join(part for part in name.split("/") if part not in {"", "."}) for name in names]
    return len(set(cleaned)) == len(cleaned)


def is_clean(name):
    return not name.startswith("/") and all(part not in {"", ".", ".."} for part in name.split("/"))


@pytest.mark.parametrize(
    "changes",
    [
        {"comment": b"a comment" * 7000},
        {"prefix": b"#!/bin/sh\n" * 10},
        {"prefix": b"#!/bin/sh\n" * 10, "prefix_counts": True},
        {"trailing": b"\0" * 1000},
        {"zip64": True},
        {"zip64": True, "prefix": b"start" * 100},
    ],
)
def test_data_around_a_zip_are_ignored(changes):
    for filling in (b"", noise(100_000)):
        extracted = extract(raw_zip([Entry(b"a.py", filling), WANTED], **changes))
        assert (extracted.paths, extracted.files) == (["a.py", METADATA], {METADATA: HEADERS})
        assert (extracted.error, extracted.notes) == (None, [])


@pytest.mark.parametrize("method", [STORED, DEFLATED, BZIP2])
@pytest.mark.parametrize("flags", [UTF8_FLAG, UTF8_FLAG | DESCRIPTOR_FLAG])
def test_methods_and_data_descriptors(method, flags):
    entry = replace(WANTED, method=method, flags=flags)
    assert extract(raw_zip([entry, Entry(b"z.py")])).files == {METADATA: HEADERS}


def test_member_with_sizes_in_zip64_field():
    compressed = len(WANTED.stored)
    extra = zip64_extra(len(CONTENT), compressed)
    entry = replace(WANTED, size=MAX_32, compressed_size=MAX_32, extra=extra, local_extra=extra)
    assert extract(raw_zip([Entry(b"a.py"), entry])).files == {METADATA: HEADERS}


def test_directory_in_another_order():
    first, second = Entry(b"a", b"1"), Entry(b"b", b"2")
    straight = raw_zip([first, second])
    directory = straight.index(b"PK\x01\x02")
    length = 46 + 1
    swapped = bytearray(straight)
    swapped[directory : directory + 2 * length] = (
        straight[directory + length : directory + 2 * length] + straight[directory : directory + length]
    )
    extracted = extract(bytes(swapped), "ab")
    assert (extracted.paths, extracted.files, extracted.error) == (["b", "a"], {"a": b"1", "b": b"2"}, None)


# Names


def test_names(subtests: pytest.Subtests):
    cases = [
        ("é.py".encode(), UTF8_FLAG, "é.py", None),
        ("é.py".encode("cp437"), 0, "é.py", None),
        (
            b"\xed\xa0\x80.py",
            UTF8_FLAG,
            "\ufffd\ufffd\ufffd.py",
            "ambiguous archive: pip refuses it: 1 member names are not UTF-8: wrong bytes are replaced",
        ),
        (b"a.py\0.txt", UTF8_FLAG, "a.py", None),
        (b"a\\b.py", UTF8_FLAG, "a\\b.py", None),
        (b"./a.py", UTF8_FLAG, "a.py", None),
        (b"x/.a.py", UTF8_FLAG, "x/.a.py", None),
        (b"x//a.py", UTF8_FLAG, "x/a.py", None),
        (b"/a.py", UTF8_FLAG, None, "1 member names that lead out of the archive are ignored"),
        (b"x/../a.py", UTF8_FLAG, None, "1 member names that lead out of the archive are ignored"),
        (b"..", UTF8_FLAG, None, "1 member names that lead out of the archive are ignored"),
        (b"", UTF8_FLAG, None, "1 member names that lead out of the archive are ignored"),
        (b"folder/", UTF8_FLAG, None, None),
        (b"folder/\0x", UTF8_FLAG, None, None),
    ]
    for raw, flags, name, note in cases:
        with subtests.test(raw=raw):
            extracted = extract(raw_zip([Entry(raw, b"1", flags=flags), Entry(b"z.py")]), [name])
            assert extracted.paths == ([name, "z.py"] if name else ["z.py"])
            assert extracted.files == ({name: b"1"} if name else {})
            assert extracted.notes == ([note] if note else [])
            assert extracted.error is None


def test_last_of_equal_names_wins_and_case_is_noted():
    extracted = extract(raw_zip([Entry(b"a", b"1"), Entry(b"a", b"2"), Entry(b"A"), Entry(b"b")]), "a")
    assert (extracted.paths, extracted.files) == (["a", "A", "b"], {"a": b"2"})
    assert extracted.notes == [
        "1 member names occur again; the last one counts",
        "1 member names differ from another one by case alone",
    ]


def test_link_is_read_as_a_file_like_in_pip():
    extracted = extract(raw_zip([replace(WANTED, external_attr=0o120777 << 16)]))
    assert (extracted.paths, extracted.files, extracted.error) == ([METADATA], {METADATA: HEADERS}, None)
    assert extracted.notes == [f"ambiguous archive: {METADATA} has the mode of a symbolic link, and pip writes a file"]


# False claims


def test_member_with_false_headers_keeps_the_others(subtests: pytest.Subtests):
    cases = [
        (replace(WANTED, crc=1), "wrong CRC"),
        (replace(WANTED, size=len(CONTENT) - 1), "wrong CRC"),
        (replace(WANTED, size=len(CONTENT) + 1, crc=1), f"more or less than {len(CONTENT) + 1} bytes"),
        (replace(WANTED, method=LZMA, data=b"\xff" * 50), f"more or less than {len(CONTENT)} bytes"),
        (replace(WANTED, method=LZMA, data=b"\x09\x04\x05\x00" + b"\xff" * 50), "broken data: "),
        (replace(WANTED, flags=0x40), "patched or strongly encrypted"),
        (replace(WANTED, data=b"\xff" * 50), "broken data: "),
        (replace(WANTED, method=BZIP2, data=b"\xff" * 50), "broken data: "),
        (replace(WANTED, flags=1), "encrypted"),
        (replace(WANTED, method=99), "compression method 99 is not read"),
        (replace(WANTED, disk=3), "in another part of a zip that is split"),
        (replace(WANTED, local_name=METADATA.lower().encode()), "the local header has another name than the directory"),
    ]
    for entry, text in cases:
        with subtests.test(entry=entry):
            extracted = extract(raw_zip([Entry(b"a.py"), entry, Entry(b"b", b"2")]), [METADATA, "b"])
            assert error_of(extracted).startswith(f"{METADATA}: BadZipFile: {text}")
            assert (extracted.paths, extracted.files) == (["a.py", "b", METADATA], {"b": b"2"})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"size_error": 1}, "the directory does not lie where its end record puts it"),
        ({"size_error": -1}, "ambiguous archive: a directory lies where the end record puts it, and another"),
        ({"offset_error": 1}, "the directory does not lie where its end record puts it"),
        ({"disk": 1}, "a part of a zip that is split"),
        (
            {"after_directory": b"PK\x01\x02" + bytes(10), "size_error": 14},
            "the last entry of the directory is cut off",
        ),
        (
            {"zip64": True, "zip64_position": 7, "zip64_offset": 2**40},
            "the directory does not lie where its end record puts it",
        ),
    ],
)
def test_false_directories(changes, text):
    assert error_of(extract(raw_zip([Entry(b"a.py", b"1" * 50), WANTED], **changes))).startswith(f"BadZipFile: {text}")


def test_wrong_count_is_noted():
    extracted = extract(raw_zip([WANTED], count=7))
    assert (extracted.error, extracted.files) == (None, {METADATA: HEADERS})
    assert extracted.notes == ["the zip's directory counts 7 entries and has 1"]


def test_contradicting_zip64_record_is_corrupt():
    content = bytearray(raw_zip([WANTED], zip64=True))
    end = content.rindex(b"PK\x05\x06")
    content[end + 12 : end + 16] = struct.pack("<L", 60)
    assert error_of(extract(bytes(content)))


@pytest.mark.parametrize("offset", [0, 10, 31])
def test_overlapping_members_are_corrupt(offset):
    twin = Entry(b"b", b"1" * 20, offset=offset)
    extracted = extract(raw_zip([Entry(b"a", b"1" * 20), twin, Entry(b"c")]), "ab")
    assert error_of(extracted)
    assert (extracted.paths, extracted.files) == (["a", "b", "c"], {})


def test_member_that_overlaps_the_directory_is_corrupt():
    last = Entry(b"b", b"1" * 20, compressed_size=40, size=40)
    assert error_of(extract(raw_zip([Entry(b"a"), last]), "a"))


@pytest.mark.parametrize("cut", [1, 10, 22, 60, 200])
def test_truncated_zip_is_corrupt(cut):
    content = raw_zip([WANTED, Entry(b"a.py")])
    assert error_of(extract(content[:-cut]))


def test_source_shorter_than_its_size_is_corrupt():
    source = Ranges(raw_zip([WANTED]))
    source.size += 10
    assert error_of(extract(source))


@settings(max_examples=examples(80))
@given(st.data())
def test_broken_bytes_never_raise(data):
    content = bytearray(
        raw_zip([Entry(b"a.py", b"1" * 50), WANTED, Entry(b"b", b"2", BZIP2)], zip64=data.draw(st.booleans()))
    )
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(-250, -1))] = data.draw(st.integers(0, 255))
    extracted = extract(bytes(content), [METADATA, "b"])
    assert all(name.encode() for name in extracted.paths)
    for name, read in extracted.files.items():
        assert read in (HEADERS, headers_of(CONTENT)) if name == METADATA else True


@pytest.mark.parametrize(
    ("limits", "value"),
    [
        ({"max_directory_bytes": 50}, 50),
        ({"max_members": 1}, 1),
        ({"max_name_length": 10}, 10),
        ({"max_metadata_bytes": 1000}, 1000),
        ({"max_inflated_bytes": 1000}, 1000),
    ],
)
def test_limits(limits, value):
    extracted = extract(raw_zip([Entry(b"a.py"), WANTED]), **limits)
    assert extracted.error is not None
    assert extracted.error.kind is ErrorKind.LIMIT_EXCEEDED
    assert mentions(extracted.error.text, value)
