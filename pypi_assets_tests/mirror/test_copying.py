"""Files get their names only after they are verified. Anything else from a source leaves no files."""

import hashlib
import io
import threading
from pathlib import Path

import pytest
import zstandard

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.journal.segment_files import SegmentManifest, segment_path
from pypi_assets.mirror.copying import ATTEMPTS, Copying, FileGroup, check_segment, is_segment
from pypi_assets.mirror.sources import SourceError, VanishedError, WrongContentError, open_source
from pypi_assets.mirror.sync_plan import WantedFile
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.mirror.static_files import StaticFiles, send, send_endlessly, static_files
from pypi_assets_tests.naming import naming


def wanted(path: str, content: bytes) -> WantedFile:
    return WantedFile(path, len(content), hashlib.sha256(content).hexdigest())


@pytest.fixture
def served(tmp_path: Path):
    folder = tmp_path / "served"
    folder.mkdir()
    with static_files(folder) as files:
        yield files


def copying(served: StaticFiles, tmp_path: Path) -> Copying:
    storage = open_storage((tmp_path / "storage").as_uri())
    return Copying(open_source(served.url), storage, sleep=lambda _seconds: None)


def test_files_are_copied_a_few_at_a_time(served: StaticFiles, tmp_path: Path) -> None:
    files = {f"f{number}": bytes([number]) * 1000 * number for number in range(20)}
    for name, content in files.items():
        (served.folder / name).write_bytes(content)
    one = copying(served, tmp_path)
    one.files(wanted(name, content) for name, content in files.items())
    assert {found.path: one.storage.get(found.path) for found in one.storage.list()} == files
    assert one.holds(wanted("f3", files["f3"]))
    assert not one.holds(wanted("f3", files["f4"]))
    assert not one.holds(wanted("gone", b""))


def test_complete_group_is_reported_without_a_waiting_thread(served: StaticFiles, tmp_path: Path) -> None:
    """The last file of the first group arrives only after a file of the second was requested."""
    one, requested = copying(served, tmp_path), threading.Event()
    for name in "abc":
        (served.folder / name).write_bytes(name.encode())

    def held_up(path: str) -> None:
        if path == "c":
            requested.set()
        elif path == "a":
            assert requested.wait(20)

    served.before = held_up
    done: list[set[str]] = []
    note = lambda: done.append({found.path for found in one.storage.list()})  # noqa: E731
    one.groups([FileGroup((wanted("a", b"a"), wanted("b", b"b")), note), FileGroup((wanted("c", b"c"),), note)])
    assert {"a", "b"} <= done[0]
    assert done[1] == {"a", "b", "c"}
    with pytest.raises(VanishedError):
        one.groups([FileGroup((wanted("gone", b""),), note), FileGroup((wanted("a", b"a"),), note)])
    assert len(done) == 2


@pytest.mark.parametrize("answer", [send(b"good!"), send(b"god"), send(b"evil"), send(b""), send_endlessly])
def test_wrong_content_is_rejected_and_not_stored(answer, served: StaticFiles, tmp_path: Path) -> None:
    served.answers["x"] = answer
    one = copying(served, tmp_path)
    with pytest.raises(WrongContentError, match=naming("/x")):
        one.files([wanted("x", b"good")])
    assert [*one.storage.list()] == []
    assert served.requested == ["x"]  # it is not requested again


def test_transient_failure_is_retried(served: StaticFiles, tmp_path: Path) -> None:
    (served.folder / "x").write_bytes(b"good")
    one = copying(served, tmp_path)

    def once(request) -> None:
        del served.answers["x"]
        send(b"", status=503)(request)

    served.answers["x"] = once
    one.files([wanted("x", b"good")])
    assert one.storage.get("x") == b"good"
    served.answers["y"] = send(b"", status=500)
    with pytest.raises(SourceError):
        one.files([wanted("y", b"good")])
    assert served.requested.count("y") == ATTEMPTS
    with pytest.raises(VanishedError):
        one.files([wanted("z", b"good")])
    assert served.requested.count("z") == 1


def test_rejection_takes_precedence_over_transient_failures(served: StaticFiles, tmp_path: Path) -> None:
    served.answers.update({"bad": send(b"evil"), "gone": send(b"", status=404)})
    with pytest.raises((WrongContentError, VanishedError)):
        copying(served, tmp_path).files([wanted("gone", b"good"), wanted("bad", b"good")])


def line(serial: int, ordinal: int = 0, rest: bytes = b'"kind":"ignored"}') -> bytes:
    return b'{"serial":%d,"of_serial":%d,"ordinal":%d,"stream":"index",%b\n' % (serial, serial, ordinal, rest)


LINES = line(1) + line(2)


def segment(content: bytes = LINES, records: int = 2) -> SegmentManifest:
    name = f"0-9.{'a' * 16}.jsonl.zst"
    sha256 = hashlib.sha256(content).hexdigest()
    return SegmentManifest("index", 1, 1, SerialRange(0, 9), name, records, len(content), sha256, None)


def test_segment_is_verified_by_the_hash_of_its_records(served: StaticFiles, tmp_path: Path) -> None:
    one, path = copying(served, tmp_path), segment_path(segment())
    (served.folder / path).parent.mkdir(parents=True)
    (served.folder / path).write_bytes(zstandard.compress(LINES, 19))
    one.segments([segment()])
    assert zstandard.decompress(one.storage.get(path)) == LINES
    assert is_segment(io.BytesIO(zstandard.compress(LINES)), segment())
    assert not is_segment(io.BytesIO(b"x"), segment())
    bomb = zstandard.compress(bytes(300 * 1024**2))
    for content in (b"", b"x", zstandard.compress(LINES[:-1]), zstandard.compress(LINES + b"x"), bomb):
        with pytest.raises(WrongContentError):
            check_segment(io.BytesIO(content), segment(), "it")
    with pytest.raises(WrongContentError):
        check_segment(io.BytesIO(zstandard.compress(LINES)), segment(records=3), "it")
    for content, values in (
        (line(1) + line(2, rest=b'"kind":"ign}'), ("it", "record 2")),
        (line(1) + line(2, rest=b'"kind":' + b"[" * 5_000 + b"}"), ("it", "record 2")),
        (line(1) + line(2, rest=b'"kind":"\xff"}'), ("it", "record 2")),
        (line(1) + line(3, 1), ("it", "record 2", 1)),
        (line(2) + line(1), ("it", "record 2", 1)),
        (line(1) + line(10), ("it", "record 2", 10, "0-9")),
        (line(1) + b'{"serial":2}\n', ("it", "record 2")),
        (line(1) + line(int("2" * 19)), ("it", "record 2")),
        (line(1) + line(2).replace(b":2,", b":" + b"2" * 5_000 + b","), ("it", "record 2")),
        (line(1, rest=b'"kind":[' + b"[]," * 2_500_001 + b"[]]}"), ("it", "record 1", "5,000,000")),
    ):
        with pytest.raises(WrongContentError, match=naming(*values)):
            check_segment(io.BytesIO(zstandard.compress(content)), segment(content), "it")
    wide = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=27, compression_level=1)
    ).compressobj()
    with pytest.raises(WrongContentError):
        check_segment(io.BytesIO(wide.compress(LINES) + wide.flush()), segment(), "it")
