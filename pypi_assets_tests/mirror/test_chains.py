"""A source's chain continues the held chain, or the first difference is named."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
import zstandard

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.journal.segment_files import (
    Head,
    OpenSegment,
    SegmentManifest,
    manifest_path,
    open_manifest,
    read_head,
    read_manifest,
    segment_path,
    write_head,
    write_manifest,
)
from pypi_assets.mirror import chains
from pypi_assets.mirror.chains import copy_stream, plan_stream
from pypi_assets.mirror.copying import Copying
from pypi_assets.mirror.sources import BehindError, ForkError, RefusedSourceError, StoredSource, VanishedError
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.journal.written import plain_files
from pypi_assets_tests.naming import naming

WIDTH = 10


def chain(texts: Sequence[str], *, generation: int = 1, opened: str = "", start: int = 0) -> tuple[Storage, Head]:
    """Return a storage with a stream that has a segment for each text, and its head."""
    storage = open_storage("memory:///")
    previous, end = None, start
    for number, text in enumerate(texts, 1):
        serials = SerialRange(end, end + WIDTH)
        manifest = SegmentManifest("index", generation, number, serials, *described(serials, text), previous)
        storage.put(segment_path(manifest), zstandard.compress(text.encode()))
        write_manifest(storage, manifest)
        previous, end = manifest.digest, end + WIDTH
    last = None
    if opened:
        serials = SerialRange(end, end + 3)
        name, records, size, sha256 = described(serials, opened)
        last = OpenSegment(serials, f"open-{name}", records, size, sha256)
    head = Head("index", generation, start, end, len(texts), previous, last)
    if last is not None:
        storage.put(segment_path(open_manifest(head, last)), zstandard.compress(opened.encode()))
    write_head(storage, head)
    return storage, head


def described(serials: SerialRange, text: str) -> tuple[str, int, int, str]:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{serials.key}.{digest[:16]}.jsonl.zst", text.count("\n"), len(text), digest


def record(serial: int, kind: str) -> str:
    return f'{{"serial":{serial},"of_serial":{serial},"ordinal":0,"stream":"index","kind":"{kind}"}}\n'


def texts(count: int, other_from: int | None = None) -> list[str]:
    """Return a record for each segment, at its first serial. Records differ from the segment `other_from` on."""
    return [
        record((number - 1) * WIDTH + 1, "x" if other_from is not None and number >= other_from else "ignored")
        for number in range(1, count + 1)
    ]


def follow(source: Storage, head: Head, held: Storage) -> None:
    plan = plan_stream(StoredSource(source), held, head)
    copy_stream(Copying(StoredSource(source), held), plan, holds=lambda _segment: False)


def test_stream_is_followed_and_extended() -> None:
    held = open_storage("memory:///")
    for count in (0, 1, 1, 3, 200):
        source, head = chain(texts(count), opened=record(count * WIDTH + 1, "ignored"))
        follow(source, head, held)
        assert read_head(held, "index") == head
        published = {file.path: source.get(file.path) for file in source.list()}
        assert published.items() <= {file.path: held.get(file.path) for file in held.list()}.items()


def test_first_difference_of_a_fork_is_named(subtests: pytest.Subtests) -> None:
    for held_count, count in [(9, 9), (9, 12), (9, 4), (1, 1), (1, 3)]:
        for first in [1, 2, 3, 4, 9]:
            with subtests.test(first=first, held_count=held_count, count=count):
                if first > min(held_count, count):
                    continue
                held, _ = chain(texts(held_count))
                before = {file.path: held.get(file.path) for file in held.list()}
                source, head = chain(texts(count, other_from=first))
                with pytest.raises(ForkError, match=naming("index", first, (first - 1) * WIDTH)):
                    follow(source, head, held)
                assert {file.path: held.get(file.path) for file in held.list()} == before


def test_shorter_chain_lags_and_is_not_a_fork() -> None:
    held, _ = chain(texts(9))
    for count in (0, 1, 8):
        with pytest.raises(BehindError, match=naming(count * WIDTH, 90)):
            follow(*chain(texts(count)), held)


def test_new_generation_is_a_fork_unless_signed_and_older_one_is_rejected() -> None:
    held, before = chain(texts(3))
    source, head = chain(texts(5, other_from=1), generation=2)
    with pytest.raises(ForkError, match=naming("index", 1, 2)):
        follow(source, head, held)
    assert read_head(held, "index") == before
    plan = plan_stream(StoredSource(source), held, head, is_restart_signed=True)
    copy_stream(Copying(StoredSource(source), held), plan, holds=lambda _segment: False)
    assert read_head(held, "index") == head
    with pytest.raises(ForkError, match=naming(1, 2)):
        follow(*chain(texts(9)), held)


def test_chain_without_its_head_is_rejected_before_copying() -> None:
    source, head = chain(texts(4))
    held = open_storage("memory:///")
    wrong = Head("index", 1, 0, 40, 4, "0" * 64)
    with pytest.raises(RefusedSourceError, match=naming("index", 4)):
        follow(source, wrong, held)
    path = manifest_path("index", 1, 2)
    content = source.get(path)
    source.put(path, content.replace(b'"records":1', b'"records":2'))
    with pytest.raises(RefusedSourceError, match=naming("index", 3)):
        follow(source, head, held)
    for broken in (b"", b"{}", content.replace(b"10-20", b"../../x"), content.replace(b"index", b"content")):
        source.put(path, broken)
        with pytest.raises(RefusedSourceError):
            follow(source, head, held)
    source.delete(path)
    with pytest.raises(VanishedError):
        follow(source, head, held)
    assert [*held.list()] == []


def test_segment_under_the_name_of_another_is_rejected_and_the_held_one_stays() -> None:
    source, head = chain(texts(2))
    held = open_storage("memory:///")
    follow(source, head, held)
    before = plain_files(held)
    text = record(21, "ignored")
    first = read_manifest(source, "index", 1, 1)
    _, records, size, sha256 = described(SerialRange(20, 30), text)
    third = SegmentManifest("index", 1, 3, SerialRange(20, 30), first.name, records, size, sha256, head.digest)
    write_manifest(source, third)
    source.put(segment_path(first), zstandard.compress(text.encode()))
    with pytest.raises(RefusedSourceError, match=naming("index", 3)):
        follow(source, replace(head, number=3, end=30, digest=third.digest), held)
    assert plain_files(held) == before


@pytest.mark.parametrize("opened", ["", record(21, "ignored")])
def test_shorter_incomplete_chain_lags(opened: str) -> None:
    source, head = chain(texts(2), opened=record(21, "ignored") + record(22, "ignored"))
    held = open_storage("memory:///")
    follow(source, head, held)
    set_back = replace(head, open=None)
    if opened:
        serials = SerialRange(20, 21)
        name, *others = described(serials, opened)
        set_back = replace(head, open=OpenSegment(serials, f"open-{name}", *others))
    with pytest.raises(BehindError, match=naming(set_back.through, 23)):
        follow(source, set_back, held)
    assert read_head(held, "index") == head


def test_inconsistent_chain_is_not_a_fork() -> None:
    held, _ = chain(texts(2))
    source, head = chain(texts(4))
    path = manifest_path("index", 1, 3)
    fields = source.get(path)
    source.put(path, fields.replace(fields.split(b'"previous":"')[1][:64], b"0" * 64))
    with pytest.raises(RefusedSourceError, match=naming("index", 3)):
        follow(source, head, held)


def test_chain_that_changes_between_reads_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [record(5, "a"), record(15, "b"), record(25, "c")]
    held, _ = chain(texts[:2])
    sound, _ = chain(texts)
    forged, head = chain([record(5, "a"), record(15, "forged"), record(25, "c")])
    newest, requests = manifest_path("index", 1, 3), Counter[str]()

    def served(source: StoredSource, path: str, most_bytes: int) -> bytes:
        requests[path] += 1
        return sound.get(path) if path == newest and requests[path] == 1 else forged.get(path)

    monkeypatch.setattr(chains, "small_file", served)
    with pytest.raises(RefusedSourceError, match=naming("index", 2)):
        plan_stream(StoredSource(forged), held, head, again=True)
    assert requests[newest] == 2


def test_stream_without_segments_accepts_any_chain() -> None:
    held = open_storage("memory:///")
    for generation, start in ((9, 0), (1, 900), (2, 30), (1, 0)):
        source, head = chain([], generation=generation, start=start, opened=record(start + 1, "ignored"))
        follow(source, head, held)
        assert read_head(held, "index") == head
    follow(*chain(texts(2)), held)


def test_segment_with_too_many_serials_is_rejected() -> None:
    source, head = chain(texts(2))
    end = 2**53 - 1
    serials = SerialRange(20, end)
    manifest = SegmentManifest("index", 1, 3, serials, *described(serials, record(21, "x")), head.digest)
    source.put(segment_path(manifest), zstandard.compress(record(21, "x").encode()))
    write_manifest(source, manifest)
    held, before = chain(texts(2))
    with pytest.raises(RefusedSourceError):
        follow(source, replace(head, end=end, number=3, digest=manifest.digest), held)
    assert read_head(held, "index") == before
