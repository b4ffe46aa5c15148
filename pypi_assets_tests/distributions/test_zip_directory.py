"""The central directory: found as each Python finds it, or refused where they find different ones."""

import io

import pytest

from pypi_assets.distributions.limits import Budget, LimitExceededError, Limits
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets.distributions.sources import FileSource
from pypi_assets.distributions.zip_directory import BadZipError, Window, find_directory
from pypi_assets_tests.distributions.hostile_wheels import ZIPS
from pypi_assets_tests.distributions.raw_archives import Entry, end_record, raw_zip
from pypi_assets_tests.naming import naming


def found(content, start=0, **limits):
    notes = []
    window = Window(FileSource(io.BytesIO(content)), start)
    return find_directory(window, Budget(Limits(**limits)), notes), notes


def test_a_window_widens_to_the_front_and_peeks_without_that():
    window = Window(FileSource(io.BytesIO(b"0123456789")), 6)
    assert (window.peek(2, 3), window.start, window.peek(8, 9)) == (b"234", 6, b"89")
    assert (window.at(4, 8), window.start) == (b"4567", 4)
    with pytest.raises(BadZipError, match=naming(5)):
        window.at(5, 11)


@pytest.mark.parametrize("zip64", [False, True])
@pytest.mark.parametrize("prefix", [b"", b"#!/bin/sh\n" * 9])
def test_the_directory_lies_before_its_end_records(zip64, prefix):
    content = raw_zip([Entry(b"a.py", b"x")], zip64=zip64, prefix=prefix)
    directory, notes = found(content)
    start = content.index(b"PK\x01\x02")
    assert (directory.start, directory.shift, directory.entries, notes) == (start, len(prefix), 1, [])


def test_what_readers_find_in_different_places_is_refused(subtests: pytest.Subtests):
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
def test_what_some_pythons_alone_find_is_read_and_noted(name, note):
    directory, notes = found(ZIPS[name]())
    assert directory.entries == 5
    assert len(notes) == 1
    assert notes[0].startswith(note)


def test_a_comment_may_be_as_long_as_the_format_allows():
    content = ZIPS["an end record at the limit"]()
    assert found(content, len(content) - 100)[0].entries == 5
    with pytest.raises(BadZipError):
        found(raw_zip([Entry(b"a")])[:-1] + b"", 0)


def test_a_directory_above_the_limit_and_an_empty_one():
    with pytest.raises(LimitExceededError, match=naming(10)):
        found(raw_zip([Entry(b"a")]), max_directory_bytes=10)
    assert found(end_record(0, 0, 0))[0].content == b""
