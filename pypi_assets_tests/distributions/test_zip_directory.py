"""The central directory and its entries: found where every Python finds them, or rejected."""

import io
import os
import warnings
from random import Random

import pytest

from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import Budget, LimitExceededError, ReadLimits
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets.distributions.sources import SeekableFileSource
from pypi_assets.distributions.zip_directory import BadZipError, Directory, TailWindow, find_directory
from pypi_assets.distributions.zip_entries import decoded_name, extra_fields, reading_problem, sizes_at, walk_entries
from pypi_assets_tests.distributions.hostile_wheels import ZIPS, unicode_path
from pypi_assets_tests.distributions.raw_archives import MAX_32, Entry, central_header, end_record, raw_zip, zip64_extra
from pypi_assets_tests.distributions.zip_differences import AllNames, difference, drawn_differences
from pypi_assets_tests.naming import naming


def found(content, start=0, **limits):
    notes = []
    window = TailWindow(SeekableFileSource(io.BytesIO(content)), start)
    return find_directory(window, Budget(ReadLimits(**limits)), notes), notes


def test_window_grows_for_reads_but_not_for_peeks():
    window = TailWindow(SeekableFileSource(io.BytesIO(b"0123456789")), 6)
    assert (window.peek(2, 3), window.start, window.peek(8, 9)) == (b"234", 6, b"89")
    assert (window.at(4, 8), window.start) == (b"4567", 4)
    with pytest.raises(BadZipError, match=naming(5)):
        window.at(5, 11)


@pytest.mark.parametrize("zip64", [False, True])
@pytest.mark.parametrize("prefix", [b"", b"#!/bin/sh\n" * 9])
def test_directory_precedes_its_end_records(zip64, prefix):
    content = raw_zip([Entry(b"a.py", b"x")], zip64=zip64, prefix=prefix)
    directory, notes = found(content)
    start = content.index(b"PK\x01\x02")
    assert (directory.start, directory.shift, directory.entries, notes) == (start, len(prefix), 1, [])


def test_ambiguous_directories_are_rejected(subtests: pytest.Subtests):
    cases = [
        ("two zip64 records", True),
        ("zip64 with extensible data, and a whole plain record", True),
        ("an end record behind the limit of newer Pythons", True),
        ("an end record behind all limits", False),
        ("an end record in the comment", True),
        ("a wheel in the comment of another", True),
        ("two directories", True),
        ("an offset beyond the directory", False),
        ("another disk", False),
        ("zip64 with a locator that is off", False),
    ]
    for name, is_ambiguous in cases:
        with subtests.test(name=name):
            with pytest.raises(BadZipError) as caught:
                found(ZIPS[name]())
            assert str(caught.value).startswith(AMBIGUOUS) == is_ambiguous


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("zip64 with extensible data", "ambiguous archive: older Pythons refuse it"),
        ("a zip64 locator that points nowhere", "ambiguous archive: newer Pythons refuse it: the zip64 locator"),
    ],
)
def test_directories_that_only_some_pythons_find_are_noted(name, note):
    directory, notes = found(ZIPS[name]())
    assert directory.entries == 5
    assert len(notes) == 1
    assert notes[0].startswith(note)


def test_longest_allowed_comment():
    content = ZIPS["an end record at the limit"]()
    assert found(content, len(content) - 100)[0].entries == 5
    with pytest.raises(BadZipError):
        found(raw_zip([Entry(b"a")])[:-1] + b"", 0)


def test_too_large_and_empty_directories():
    with pytest.raises(LimitExceededError, match=naming(10)):
        found(raw_zip([Entry(b"a")]), max_directory_bytes=10)
    assert found(end_record(0, 0, 0))[0].content == b""


SECONDS = float(os.environ.get("ZIP_SECONDS", "5"))
"""Seconds of drawing zips. Set `ZIP_SECONDS=1800` for a long search."""


def walked(*entries, size=1000):
    content = b"".join(central_header(entry, number * 100) for number, entry in enumerate(entries))
    extract = Extract()
    names = AllNames(extract, Budget(ReadLimits()))
    neighbours = walk_entries(Directory(content, size, 0, len(entries)), names, Budget(ReadLimits()), extract)
    return names.names, extract, neighbours


@pytest.mark.nightly
def test_drawn_zips_never_differ_silently():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        differing = [(problem, content.hex()) for content, problem, _ in drawn_differences(SECONDS, seed=7) if problem]
    assert differing == []


def test_comparison_finds_differences(monkeypatch):
    content = next(content for content, problem, reason in drawn_differences(5, seed=3) if problem is reason is None)
    monkeypatch.setattr(
        "pypi_assets_tests.distributions.zip_differences.by_zipfile", lambda content: ([("other", 0)], {"other": b""})
    )
    assert any(difference(content)[0] for content, _, _ in drawn_differences(1, Random(1).randrange(100)))
    assert content


def test_names_are_in_directory_order():
    names, extract, neighbours = walked(Entry(b"b"), Entry("é".encode()), Entry(b"a\0b"))
    assert (names, extract.notes, extract.error, neighbours) == (["b", "é", "a"], [], None, None)
    _, _, neighbours = walked(Entry(b"b"), Entry(b"a"), size=1000)
    assert neighbours is None


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (Entry(b"a", b"x", flags=1), "a: BadZipFile: encrypted"),
        (Entry(b"a", b"x", flags=0x20), "a: BadZipFile: patched or strongly encrypted"),
        (Entry(b"a", b"x", method=93), "a: BadZipFile: compression method 93 is not read"),
        (Entry(b"a", disk=2), "a: BadZipFile: in another part of a zip that is split"),
        (
            Entry(b"a", extra=unicode_path(b"b", b"a")),
            "a: BadZipFile: ambiguous archive: newer Pythons read the name 'b'",
        ),
    ],
)
def test_member_rejected_by_installers_is_an_error(entry, text):
    names, extract, _ = walked(entry, Entry(b"other"))
    assert names == ["a", "other"]
    assert extract.error is not None
    assert extract.error.text.startswith(text)


@pytest.mark.parametrize("entry", [Entry(b"a", flags=1), Entry(b"a/", b"x", flags=1), Entry(b"a", method=93)])
def test_members_that_are_never_opened_may_be_of_any_kind(entry):
    assert walked(entry)[1].error is None


@pytest.mark.parametrize("extra", [b"\x99\x99\xff\xff", zip64_extra(1)[:-1] + b"", b"\x01\x00\x04\x00abcd"])
def test_broken_extra_field_ends_the_walk(extra):
    with pytest.raises(BadZipError):
        walked(Entry(b"a", size=MAX_32, extra=extra))


def test_broken_unicode_path_is_rejected_only_by_newer_pythons():
    _, extract, _ = walked(
        Entry(b"a", extra=unicode_path(b"\xff", b"a")), Entry(b"b", extra=unicode_path(b"", b"b", cut=2))
    )
    assert extract.error is None
    assert extract.notes == ["ambiguous archive: newer Pythons refuse it: 2 broken Unicode Path extra fields"]


def test_zip64_fields_replace_unset_values():
    extra = zip64_extra(MAX_32, 5) + zip64_extra(7)
    entry = central_header(Entry(b"a", size=MAX_32, compressed_size=MAX_32, extra=extra), 9)
    assert sizes_at(entry, 0) == (7, 5, 9)
    assert sizes_at(central_header(Entry(b"a", size=MAX_32), 9), 0)[0] == MAX_32


def test_extra_fields_names_and_kinds():
    assert list(extra_fields(b"\1\0\1\0x\2\0\0\0abc")) == [(1, b"x"), (2, b"")]
    assert (decoded_name(b"\x82", 0), decoded_name("é".encode(), 0x800)) == ("é", "é")
    assert [reading_problem(0, method) for method in (0, 8, 12, 14)] == [None] * 4
