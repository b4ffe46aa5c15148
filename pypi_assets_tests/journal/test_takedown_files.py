"""Takedown files form a chain in which any changed byte is detected."""

import pytest

from pypi_assets.catalog.reports.journal_format import TAKEN_DOWN
from pypi_assets.journal.segment_files import Head, JournalDamagedError
from pypi_assets.journal.takedown_files import (
    ReplacedSegment,
    TakedownFile,
    decode_takedown,
    is_replacement,
    newest_takedown_file,
    replaced_segments,
    replacement,
    takedown_path,
    takedowns_of,
    write_takedown,
)
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.naming import naming


def segment(number: int, name: str) -> ReplacedSegment:
    return ReplacedSegment(number, name, 10, "e" * 64)


def written() -> tuple[Storage, Head]:
    storage = open_storage("memory:///")
    first = TakedownFile("index", 1, 1, 5, (segment(1, "a"), segment(2, "b")), None)
    second = TakedownFile("index", 1, 2, 6, (segment(2, "c"),), first.as_last.digest)
    for one in (first, second):
        write_takedown(storage, one)
    return storage, Head("index", 1, 0, 30, 3, "f" * 64, takedowns=second.as_last)


def test_last_takedown_of_a_segment_counts() -> None:
    storage, head = written()
    assert {number: one.name for number, one in replaced_segments(storage, head).items()} == {1: "a", 2: "c"}
    assert newest_takedown_file(storage, "index", 1) == head.takedowns
    assert newest_takedown_file(storage, "index", 2) is None
    first, second = takedowns_of(head, storage.get)
    assert takedowns_of(head, storage.get, since=first.as_last) == [second]


@pytest.mark.parametrize("number", [1, 2])
def test_changed_or_missing_file_is_detected(number: int) -> None:
    storage, head = written()
    path = takedown_path("index", 1, number)
    content = storage.get(path)
    for changed in (content.replace(b'"at":', b'"at":1'), b"{}", content.replace(b'"name":"', b'"name":"../'), None):
        if changed is None:
            storage.delete(path)
        else:
            storage.put(path, changed)
        with pytest.raises(JournalDamagedError, match=naming(path)):
            replaced_segments(storage, head)


def test_path_outside_the_folder_is_rejected() -> None:
    with pytest.raises(JournalDamagedError):
        decode_takedown(TakedownFile("index", 1, 1, 5, (segment(1, "../x"),), None).encode(), "here")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"number":2', b'"number":1e30'),
        (b'"at":6', b'"at":1e30'),
        (b'"name":"c"', b'"name":["c"]'),
        (b'"stream":"index"', b'"stream":["index"]'),
        (b'"previous":', b'"previous":[],"was":'),
        (b'"previous":', b'"previous":' + b"[" * 300 + b"]" * 300 + b',"was":'),
    ],
)
def test_field_of_another_type_is_rejected(old: bytes, new: bytes) -> None:
    storage, _ = written()
    content = storage.get(takedown_path("index", 1, 2)).replace(old, new)
    with pytest.raises(JournalDamagedError):
        decode_takedown(content, "here")


def test_record_is_replaced_only_at_the_same_position() -> None:
    record = {
        "serial": 3,
        "of_serial": 2,
        "ordinal": 1,
        "stream": "observed",
        "kind": "file added",
        "at": 9,
        "project": "Demo",
        "normalized": "demo",
        "filename": "demo-1.tar.gz",
    }
    shown, hidden = (replacement(record, "x", 7.5, hides_name=hides) for hides in (False, True))
    assert (shown["kind"], shown["project"], hidden["project"], hidden["normalized"]) == (
        TAKEN_DOWN,
        "Demo",
        None,
        None,
    )
    assert (hidden["reason"], hidden["taken_down_at"], "filename" in hidden) == ("x", 7, False)
    encoded = [str(one).replace("'", '"').replace("None", "null").encode() for one in (record, hidden)]
    assert is_replacement(encoded[1], encoded[0])
    assert not is_replacement(encoded[0], encoded[1])
    assert not is_replacement(encoded[1], encoded[0].replace(b'"ordinal": 1', b'"ordinal": 2'))
    assert not is_replacement(b"no JSON", encoded[0])
