"""A mirror follows its source through kills, clean-ups, outages and hostile content, and is always complete."""

import hashlib
import re
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.journal.publishing import begin_generation
from pypi_assets.mirror.following import LONGEST_PAUSE_S, Mirror, MirrorRound, follow
from pypi_assets.mirror.mirror_state import mirror_status, read_mirror
from pypi_assets.mirror.sources import BehindError, ForkError, MirrorError, RefusedSourceError, SourceError, open_source
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.root_owner import require_owner
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets.upkeep.deletion import clean_versions_and_dumps
from pypi_assets_tests.mirror.conftest import DAY_S, Mirrors, Origin, assert_whole, contents
from pypi_assets_tests.mirror.hostile_tables import republished
from pypi_assets_tests.mirror.static_files import send, static_files
from pypi_assets_tests.naming import mentions, naming


class KilledError(BaseException):
    """The process was killed."""


def test_mirror_has_all_files_that_its_source_names(origin: Origin, mirrors: Mirrors, tmp_path: Path) -> None:
    for number, url in enumerate((origin.files.url, origin.storage.url)):
        mirror = mirrors.of(url, f"m{number}")
        done = mirror.run()
        assert done.files > 15
        assert contents(mirror.storage) == contents(origin.storage)
        assert mirror.storage.get(PUBLISHED) == origin.storage.get(PUBLISHED)
        assert mirror.storage.get("index.json") == origin.storage.get("index.json")
        assert_whole(mirror.storage)
        assert mirror.run() == MirrorRound(done.dumps_serial, 0, 0, 0)
    assert not [path for path in origin.files.requested if path.endswith("/")]  # no folder is listed


@pytest.mark.nightly
def test_only_new_files_are_copied(changing_origin: Origin, mirrors: Mirrors) -> None:
    origin, mirror = changing_origin, mirrors.of(changing_origin.files.url)
    mirror.run()
    before = contents(mirror.storage)
    for _ in range(2):
        origin.publish()
        origin.files.requested.clear()
        mirror.run()
        held = {path for path in before if path.endswith((".ldb", ".gz", ".zst")) or "/manifests/" in path}
        assert not held & set(origin.files.requested)
        before = contents(mirror.storage)
        assert_whole(mirror.storage)
    begin_generation(origin.published.catalog, origin.storage, JournalStream.OBSERVED)
    with pytest.raises(ForkError, match=naming("observed", 2)):
        mirror.run()
    mirror.storage.delete("journal/observed/head.json")  # the operator accepted that the stream was restarted
    mirror.run()
    assert mirror.storage.exists("journal/observed/0002/manifests/00000001.json")
    assert_whole(mirror.storage)


def test_other_history_in_a_new_generation_is_a_fork(changing_origin: Origin, mirrors: Mirrors, tmp_path: Path) -> None:
    origin, mirror = changing_origin, mirrors.of(changing_origin.storage.url)
    mirror.run()
    before, state = contents(mirror.storage), mirror.storage.get(PUBLISHED)
    hostile = republished(origin.storage, tmp_path / "hostile")
    begin_generation(origin.published.catalog, hostile, JournalStream.OBSERVED)
    with pytest.raises(ForkError):
        mirrors.of(hostile.url).run()
    assert mirror_status(mirror.storage).state == "refused"
    assert (contents(mirror.storage), mirror.storage.get(PUBLISHED)) == (before, state)
    mirror.run()
    assert mirror_status(mirror.storage).state == "following"


def test_serial_without_supporting_content_is_rejected(
    origin: Origin, mirrors: Mirrors, subtests: pytest.Subtests
) -> None:
    mirror = mirrors.of(origin.files.url)
    mirror.run()
    held = mirror.storage.get(PUBLISHED)
    for name, change in POISONED.items():
        with subtests.test(name=name):
            state = orjson.loads(held)
            change(state)
            origin.files.answers[PUBLISHED] = send(orjson.dumps(state))
            try:
                with pytest.raises(MirrorError):
                    mirror.run()
            finally:
                origin.files.answers.clear()
            assert mirror.storage.get(PUBLISHED) == held
            mirror.run()
            assert mirror_status(mirror.storage).state == "following"


def test_mirror_recovers_from_a_poisoned_state(origin: Origin, mirrors: Mirrors) -> None:
    mirror = mirrors.of(origin.files.url)
    mirror.run()
    held = mirror.storage.get(PUBLISHED)
    state = orjson.loads(held)
    state["dumps"]["serial"] = 2**53 - 1
    mirror.storage.put(PUBLISHED, orjson.dumps(state))
    mirror.run()
    assert mirror.storage.get(PUBLISHED) == held


def _dumps_serial(state: Any) -> None:
    state["dumps"]["serial"] = 2**53 - 1


def _dumps_directory(state: Any) -> None:
    state["dumps"]["serial"] = 2**53 - 1
    named = state["dumps"]["manifests"][-1]
    named["path"] = re.sub(r"-[0-9]+", f"-{2**53 - 1}", named["path"])


def _open_segment(state: Any) -> None:
    head = state["journal"]["index"]
    start = head["end"]
    sha256 = hashlib.sha256(b"").hexdigest()
    head["open"] = {
        "range": f"{start}-{2**53 - 1}",
        "name": f"open-{start}-{2**53 - 1}.{sha256[:16]}.jsonl.zst",
        "records": 0,
        "content_bytes": 0,
        "sha256": sha256,
    }


def _input_list(state: Any) -> None:
    state["leveldbs"]["modules"][0]["path"] = f"modules/input_lists/{2**53 - 1}"


POISONED = {
    "the serial of dumps": _dumps_serial,
    "the name of a dump": _dumps_directory,
    "an open segment": _open_segment,
    "a version": _input_list,
}
"""Changes to published.json, each with a number that would keep the source's next states out."""


def test_kill_at_any_write_leaves_a_complete_state_and_is_resumed(
    origin: Origin, mirrors: Mirrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Storage.put
    writes = 0

    def counted(self: Storage, path: str, content: object) -> None:
        nonlocal writes
        writes += self.root is not None  # staging in memory is not a write
        if self.root is not None and 0 < last <= writes:  # no thread writes after the kill
            raise KilledError
        put(self, path, content)

    monkeypatch.setattr(Storage, "put", counted)
    last, runs = 0, 0
    copied: list[int] = []
    while True:
        mirror = mirrors.of(origin.storage.url)
        mirror.progress = lambda _files: copied.append(1)
        writes, last, runs = 0, runs % 11 + 3, runs + 1
        mirror.at_once = 1
        try:
            done = mirror.run()
        except KilledError:
            last = -1
            assert_whole(mirror.storage)
            assert runs < 60
            continue
        break
    last = -1
    assert runs > 5
    assert contents(mirror.storage) == contents(origin.storage)
    assert len(copied) == len([path for path in contents(origin.storage) if path.endswith(_FILES)])
    assert done.dumps_serial == mirror_status(mirror.storage).dumps_serial


_FILES = (".ldb", ".edges", ".gz", ".zst", "CURRENT", "MANIFEST-000004")


def test_vanished_file_makes_the_mirror_read_published_json_again(changing_origin: Origin, mirrors: Mirrors) -> None:
    origin = changing_origin

    def publish_and_clean(path: str) -> None:
        if path.endswith(".json.gz"):  # the round has read the former state by now
            origin.files.before = lambda _path: None
            full_dump(origin.published.catalog, origin.storage, 1, since=origin.published.catalog.clock())
            origin.publish()
            list(clean_versions_and_dumps(origin.published.catalog, origin.storage, grace_s=-60.0, versions_kept=1))

    origin.files.before = publish_and_clean
    mirror = mirrors.of(origin.files.url)
    mirror.run()
    assert origin.files.requested.count(PUBLISHED) > 1
    assert mirror.storage.get(PUBLISHED) == origin.storage.get(PUBLISHED)
    assert_whole(mirror.storage)


def test_source_that_lacks_named_files_is_described(origin: Origin, mirrors: Mirrors) -> None:
    path = "hashes/leveldbs/00004/CURRENT"
    origin.files.answers[path] = send(b"", status=404)
    mirror = mirrors.of(origin.files.url)
    with pytest.raises(MirrorError, match=naming("hashes/leveldbs/00004/CURRENT")):
        mirror.run()
    assert mirror_status(mirror.storage).state == "failing"
    assert_whole(mirror.storage)
    del origin.files.answers[path]
    mirror.run()
    assert mirror_status(mirror.storage).state == "following"
    assert contents(mirror.storage) == contents(origin.storage)


def test_unavailable_source_keeps_all_files_and_status_shows_since_when(
    origin: Origin, mirrors: Mirrors, tmp_path: Path
) -> None:
    mirror = mirrors.of(origin.files.url)
    mirror.run()
    before = contents(mirror.storage)
    (tmp_path / "empty").mkdir()
    with static_files(tmp_path / "empty") as empty:
        gone = mirrors.of(empty.url)
        for _ in range(3):
            mirrors.clock.now += 10
            with pytest.raises(SourceError, match=naming("published.json")):
                gone.run()
    mirrors.clock.now += 10
    with pytest.raises(SourceError, match=naming("published.json")):
        gone.run()
    status = mirror_status(mirror.storage)
    assert (status.state, status.synced_at, status.failing_since, status.checked_at) == (
        "failing",
        mirrors.clock.now - 40,
        mirrors.clock.now - 30,
        mirrors.clock.now,
    )
    assert contents(mirror.storage) == before
    assert mirrors.of(origin.files.url).run().files == 0
    assert read_mirror(mirror.storage).error is None


def test_fork_is_rejected_with_stream_and_serial_and_held_files_stay(
    origin: Origin, mirrors: Mirrors, changing_origin: Origin
) -> None:
    """The two operators follow different indexes under the same name."""
    mirror = mirrors.of(origin.files.url)
    mirror.run()
    before = contents(mirror.storage)
    published = orjson.loads(changing_origin.storage.get(PUBLISHED)) | {"index_url": origin.published.index.url}
    changing_origin.files.answers[PUBLISHED] = send(orjson.dumps(published))
    other = mirrors.of(changing_origin.files.url)
    with pytest.raises(ForkError, match=naming(1, 0)):
        other.run()
    assert contents(mirror.storage) == before
    assert mirror_status(mirror.storage).state == "refused"
    published["journal"] = None
    changing_origin.files.answers[PUBLISHED] = send(orjson.dumps(published))
    with pytest.raises(ForkError):
        other.run()
    assert contents(mirror.storage) == before
    assert mirror.run().files == 0


def test_reset_source_lags(changing_origin: Origin, mirrors: Mirrors) -> None:
    origin = changing_origin
    former = origin.storage.get(PUBLISHED)
    origin.publish()
    mirror = mirrors.of(origin.files.url)
    mirror.run()
    held = mirror.storage.get(PUBLISHED)
    origin.files.answers[PUBLISHED] = send(former)
    with pytest.raises(BehindError, match=naming(27, 29)):
        mirror.run()
    assert mirror.storage.get(PUBLISHED) == held
    assert mirror_status(mirror.storage).state == "failing"


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        (PUBLISHED, send(b"[" * 2_000_000)),
        (PUBLISHED, send(b"[" * 900_000)),
        (PUBLISHED, send(b"<html>")),
        ("modules/input_lists/00001", send(b"# leveldb: ../../x\n")),
        ("modules/leveldbs/00001/_MANIFEST.json", send(b"{}")),
        ("modules/leveldbs/00001/CURRENT", send(b"MANIFEST-000005\n")),
        ("journal/content/0001/manifests/00000001.json", send(b"{}")),
        (PUBLISHED, send(b"", status=302, Location="ftp://one.example/")),
    ],
)
def test_hostile_content_is_rejected_and_not_copied(path: str, answer, origin: Origin, mirrors: Mirrors) -> None:
    mirror = mirrors.of(origin.files.url)
    mirror.at_once = 1
    origin.files.answers[path] = answer
    try:
        with pytest.raises(RefusedSourceError):
            mirror.run()
    finally:
        origin.files.answers.clear()
    if path == PUBLISHED:  # without it, this is not a source and claims no storage
        assert list(mirror.storage.list()) == []
    else:
        assert mirror_status(mirror.storage).state == "refused"
    assert not mirror.storage.exists(PUBLISHED)
    assert not mirror.storage.exists("modules/input_lists/00001")
    assert_whole(mirror.storage)


def test_storage_of_a_catalog_or_another_index_is_rejected(origin: Origin, mirrors: Mirrors) -> None:
    mirror = Mirror(open_source(origin.files.url), origin.storage, grace_s=DAY_S)
    with pytest.raises(MirrorError):
        mirror.run()
    assert not origin.storage.exists("mirror.json")
    crawled = mirrors.of(origin.files.url, "crawled")
    require_owner(crawled.storage, origin.published.index.url)  # as a crawl does before anything is published
    with pytest.raises(MirrorError):
        crawled.run()
    assert [file.path for file in crawled.storage.list()] == ["index.json"]
    other = mirrors.of(origin.files.url)
    other.run()
    other.storage.put("index.json", b'{"index_url": "https://other.example/simple/"}')
    with pytest.raises(RefusedSourceError, match=naming("https://other.example/simple/")):
        mirrors.of(origin.files.url, verify=True).run()
    assert mirror_status(other.storage).state == "refused"


def test_corrupt_mirror_state_is_rebuilt(origin: Origin, mirrors: Mirrors) -> None:
    mirror = mirrors.of(origin.files.url)
    mirror.run()
    mirror.storage.put("mirror.json", b"{")
    with pytest.raises(MirrorError, match=naming("mirror.json")):
        mirror_status(mirror.storage)
    assert mirror.run().files == 0
    assert mirror_status(mirror.storage).state == "following"


def test_missing_space_is_an_error_before_copying(
    origin: Origin, mirrors: Mirrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = 100

    monkeypatch.setattr("shutil.disk_usage", lambda _root: Usage)
    mirror = mirrors.of(origin.files.url)
    with pytest.raises(MirrorError, match=naming(100)):
        mirror.run()
    assert contents(mirror.storage) == {}


def test_verify_copies_corrupt_files_again(origin: Origin, mirrors: Mirrors) -> None:
    mirror = mirrors.of(origin.files.url)
    mirror.run()
    for path in ("modules/leveldbs/00001/CURRENT", "modules/leveldbs/00001/000005.ldb"):
        content = bytearray(mirror.storage.get(path))
        content[3] ^= 1
        mirror.storage.put(path, bytes(content))
    assert mirror.run().files == 0
    done = mirrors.of(origin.files.url, verify=True).run()
    assert done.files == 2
    assert contents(mirror.storage) == contents(origin.storage)


def test_verify_copies_missing_journal_files_again(origin: Origin, mirrors: Mirrors) -> None:
    mirror = mirrors.of(origin.files.url)
    mirror.run()
    before = contents(mirror.storage)
    lost = next(path for path in before if path.startswith("journal/observed/0001/0-"))
    damaged = next(path for path in before if path.startswith("journal/content/0001/0-"))
    mirror.storage.delete(lost)
    mirror.storage.put(damaged, b"damaged")
    mirror.storage.delete("journal/content/0001/manifests/00000001.json")
    assert mirrors.of(origin.files.url, verify=True).run().files == 2
    assert contents(mirror.storage) == before


def test_lost_head_is_restored_and_corrupt_head_is_named(origin: Origin, mirrors: Mirrors) -> None:
    mirror = mirrors.of(origin.files.url)
    mirror.run()
    before = contents(mirror.storage)
    path = "journal/observed/head.json"
    mirror.storage.delete(path)
    mirror.run()
    assert contents(mirror.storage) == before
    mirror.storage.put(path, b"{")
    stop, failures = threading.Event(), []

    def failed(error: Exception, _pause_s: float) -> None:
        failures.append(str(error))
        mirror.storage.delete(path)

    follow(mirror, 0.01, stop=stop, done=lambda _done: stop.set(), failed=failed)
    assert len(failures) == 1
    assert mentions(failures[0], path)
    assert contents(mirror.storage) == before


@pytest.mark.parametrize("is_folder", [True, False])
def test_full_disk_is_named_and_not_blamed_on_the_source(
    is_folder: bool, origin: Origin, mirrors: Mirrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = mirrors.of(origin.storage.url if is_folder else origin.files.url)
    stop, failures = threading.Event(), []

    def failed(error: Exception, _pause_s: float) -> None:
        failures.append(str(error))
        stop.set()

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "unnamed_file", lambda _storage: Path("/dev/full").open("w+b"))  # noqa: SIM115 - closed by its user
        follow(mirror, 1.0, stop=stop, done=lambda _done: None, failed=failed)
    assert len(failures) == 1
    assert mentions(failures[0], mirror.storage.url, "No space left on device")
    assert mirror_status(mirror.storage).error == failures[0]
    mirror.run()
    assert contents(mirror.storage) == contents(origin.storage)


def test_mirror_of_a_mirror_survives_a_kill_and_wipe_of_the_middle(
    changing_origin: Origin, mirrors: Mirrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = changing_origin
    middle = mirrors.of(origin.files.url, "middle")
    middle.run()
    assert middle.storage.root
    with static_files(middle.storage.root) as files:
        last = mirrors.of(files.url, "last")
        last.run()
        assert contents(last.storage) == contents(origin.storage)
        origin.publish()
        put = Storage.put

        def killed(self: Storage, path: str, content: object) -> None:
            if path.startswith("depgraph/input_lists"):
                raise KilledError
            put(self, path, content)

        with monkeypatch.context() as patched:
            patched.setattr(Storage, "put", killed)
            with pytest.raises(KilledError):
                middle.run()
        assert last.run().files == 0  # the middle mirror still has its former state
        for stored in list(middle.storage.list()):
            middle.storage.delete(stored.path)
        with pytest.raises(SourceError):
            last.run()
        assert_whole(last.storage)
        again = mirrors.of(origin.files.url, "middle")
        again.run()
        last.run()
        assert_whole(last.storage)
        assert last.storage.get(PUBLISHED) == origin.storage.get(PUBLISHED)


def test_following_continues_after_errors_with_growing_pauses(
    origin: Origin, mirrors: Mirrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = mirrors.of(origin.files.url)
    stop, pauses, rounds, waited = threading.Event(), [], [], []
    origin.files.answers[PUBLISHED] = send(b"", status=503)

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        if len(waited) == 15:
            origin.files.answers.clear()
        if len(waited) == 17:
            stop.set()
        return stop.is_set()

    monkeypatch.setattr(stop, "wait", wait)
    follow(mirror, 10.0, stop=stop, done=rounds.append, failed=lambda _error, pause_s: pauses.append(pause_s))
    assert len(pauses) == 15
    assert 15 <= pauses[0] <= 20
    assert all(pause <= LONGEST_PAUSE_S for pause in pauses)
    assert pauses[-1] >= LONGEST_PAUSE_S * 0.75
    assert [one.files > 0 for one in rounds] == [True, False]
    assert waited[15:] == [10.0, 10.0]


def test_mirror_can_use_an_object_store(origin: Origin) -> None:
    storage = open_storage("memory:///")
    Mirror(open_source(origin.files.url), storage, grace_s=DAY_S).run()
    assert contents(storage) == contents(origin.storage)
    assert_whole(storage)
