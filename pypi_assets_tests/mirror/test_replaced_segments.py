"""A mirror copies the redactions and prunings of its source and rejects other replacements."""

from dataclasses import replace

import pytest

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import (
    Head,
    Pruned,
    read_head,
    read_manifest,
    segment_path,
    write_head,
    write_lines,
)
from pypi_assets.journal.takedown_files import ReplacedSegment, TakedownFile, takedowns_of, write_takedown
from pypi_assets.journal.takedowns import Taking, wanted_takedown
from pypi_assets.journal.verification import verify_stream
from pypi_assets.mirror import chains
from pypi_assets.mirror.chains import dropped_segments
from pypi_assets.mirror.sources import BehindError, RefusedSourceError
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.journal.written import plain_files, simple_record, write_streams
from pypi_assets_tests.mirror.test_chains import follow
from pypi_assets_tests.naming import naming

TAKING = Taking([replace(wanted_takedown("x", "secret", hides_name=True), added_at=1.0)])


def written(through: int = 30) -> Storage:
    """Return a source whose segments each have a record of both projects."""
    storage = open_storage("memory:///")
    records = [simple_record(serial, "unknown", name) for serial in (5, 15, 25) for name in ("secret", "other")]
    write_streams(storage, {JournalStream.INDEX: records}, through, cuts=[cut for cut in (10, 20) if cut < through])
    return storage


def head_of(storage: Storage) -> Head:
    head = read_head(storage, "index")
    assert head is not None
    return head


def taken_down(storage: Storage, number: int, change: bytes = b"", into: bytes = b"") -> None:
    """Redact the secret in a segment of the source, and optionally change another record."""
    head = head_of(storage)
    manifest = read_manifest(storage, "index", 1, number)
    lines = plain_files(storage)[segment_path(manifest)].splitlines()
    new = [TAKING.line(line).replace(change, into) for line in lines]
    file = write_lines(storage, JournalStream.INDEX, 1, manifest.serials, new)
    segment = ReplacedSegment(number, file.name, file.content_bytes, file.sha256)
    last = head.takedowns
    takedown = TakedownFile("index", 1, last.number + 1 if last else 1, 1, (segment,), last.digest if last else None)
    write_takedown(storage, takedown)
    write_head(storage, replace(head, takedowns=takedown.as_last))
    storage.delete(segment_path(manifest))


def with_secrets(storage: Storage) -> list[str]:
    return [path for path, content in plain_files(storage).items() if b"secret" in content]


def index_files(storage: Storage) -> dict[str, bytes]:
    return {path: content for path, content in plain_files(storage).items() if path.startswith("journal/index/")}


@pytest.mark.parametrize("held_through", [10, 20, 30])
def test_redacted_bytes_are_deleted_from_the_mirror(held_through: int) -> None:
    source, held = written(), open_storage("memory:///")
    before = written(held_through)
    follow(before, head_of(before), held)
    for number in (1, 2, 3):
        taken_down(source, number)
        follow(source, head_of(source), held)
    assert with_secrets(held) == []
    assert index_files(held) == index_files(source)
    assert verify_stream(held, JournalStream.INDEX).is_sound
    follow(source, head_of(source), held)
    fresh = open_storage("memory:///")
    follow(source, head_of(source), fresh)
    assert index_files(fresh) == index_files(source)


def test_takedown_that_changes_another_record_is_rejected() -> None:
    source, held = written(), open_storage("memory:///")
    follow(source, head_of(source), held)
    before = plain_files(held)
    taken_down(source, 2, b"other", b"wrong")
    with pytest.raises(RefusedSourceError, match=naming("index", 2)):
        follow(source, head_of(source), held)
    assert plain_files(held) == before


@pytest.mark.parametrize("name", ["10-20.jsonl.zst", "second", "notice.html"])
def test_takedown_that_names_another_file_is_rejected_and_held_files_stay(name: str) -> None:
    source, held = written(), open_storage("memory:///")
    follow(source, head_of(source), held)
    before = plain_files(held)
    second = read_manifest(held, "index", 1, 2)
    name = second.name if name == "second" else name
    taken_down(source, 1)
    (takedown,) = takedowns_of(head_of(source), source.get)
    (segment,) = takedown.segments
    folder = segment_path(second).rpartition("/")[0]
    source.put(f"{folder}/{name}", source.get(f"{folder}/{segment.name}"))
    renamed = replace(takedown, segments=(replace(segment, name=name),))
    write_takedown(source, renamed)
    write_head(source, replace(head_of(source), takedowns=renamed.as_last))
    for mirror in (held, open_storage("memory:///")):
        with pytest.raises(RefusedSourceError, match=naming("index", 1)):
            follow(source, head_of(source), mirror)
    assert plain_files(held) == before


def test_takedown_that_replaces_a_segment_with_itself_deletes_nothing() -> None:
    source, held = written(), open_storage("memory:///")
    follow(source, head_of(source), held)
    one = read_manifest(source, "index", 1, 2)
    takedown = TakedownFile("index", 1, 1, 1, (ReplacedSegment(2, one.name, one.content_bytes, one.sha256),), None)
    write_takedown(source, takedown)
    write_head(source, replace(head_of(source), takedowns=takedown.as_last))
    follow(source, head_of(source), held)
    assert verify_stream(held, JournalStream.INDEX).is_sound


def test_forked_or_missing_takedowns_are_rejected() -> None:
    held, source, other = open_storage("memory:///"), written(), written()
    taken_down(source, 1)
    follow(source, head_of(source), held)
    untouched = written()
    with pytest.raises(BehindError, match=naming("index")):
        follow(untouched, head_of(untouched), held)
    taken_down(other, 2)
    taken_down(other, 1)
    with pytest.raises(RefusedSourceError, match=naming("index")):
        follow(other, head_of(other), held)
    assert head_of(held) == head_of(source)


def test_leftovers_of_replaced_and_pruned_segments_are_deleted_after_a_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    source, held = written(), open_storage("memory:///")
    follow(source, head_of(source), held)
    old = {number: segment_path(read_manifest(held, "index", 1, number)) for number in (1, 2)}
    taken_down(source, 2)
    write_head(source, replace(head_of(source), pruned=Pruned(1, 10)))

    def die(_storage: Storage, _path: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "delete", die)
        with pytest.raises(KeyboardInterrupt):
            follow(source, head_of(source), held)
    assert dropped_segments(held, [head_of(held)]) == set(old.values())
    assert chains.read_head(held, "index") == head_of(source)


def test_restored_pruned_segments_are_copied_again() -> None:
    source, held = written(), open_storage("memory:///")
    whole = head_of(source)
    follow(source, replace(whole, pruned=Pruned(2, 20)), held)
    assert len(index_files(held)) < len(index_files(source))
    follow(source, replace(whole, pruned=Pruned(1, 10)), held)
    assert verify_stream(held, JournalStream.INDEX).is_sound
    follow(source, whole, held)
    assert verify_stream(held, JournalStream.INDEX).is_sound
    assert index_files(held) == index_files(source)


def test_pruning_with_another_end_is_rejected() -> None:
    source, held = written(), open_storage("memory:///")
    wrong = replace(head_of(source), pruned=Pruned(1, 12))
    with pytest.raises(RefusedSourceError, match=naming("index", 1, 12)):
        follow(source, wrong, held)
    follow(source, head_of(source), held)
    with pytest.raises(RefusedSourceError, match=naming("index", 1, 12)):
        follow(source, wrong, held)
    assert head_of(held) == head_of(source)


def test_mirror_of_a_pruned_source_copies_the_remaining_segments() -> None:
    source, held = written(), open_storage("memory:///")
    source.delete(segment_path(read_manifest(source, "index", 1, 1)))
    write_head(source, replace(head_of(source), pruned=Pruned(1, 10)))
    follow(source, head_of(source), held)
    assert verify_stream(held, JournalStream.INDEX).records == 4
    lines = list(Journal(held).lines(Cursor.after_serial(10), [head_of(held)]))
    assert [place[0] for place, _ in lines] == [15, 15, 25, 25]
