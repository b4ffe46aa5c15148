"""Small JSON objects in a store, and sweeps of a store."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
import pytest

from pypi_assets.storage import published
from pypi_assets.storage.root_owner import ATTEMPTS, read_json, read_owner, require_owner
from pypi_assets.storage.store import ObjectNotFoundError, Storage, StorageError, StoredObject, open_storage
from pypi_assets.storage.sweeping import (
    DeletionReason,
    Removal,
    Waste,
    by_directory,
    is_older,
    sweep_directories,
    sweep_objects,
)

GARBLED = (b"", b"{", b"\xff\xfe", b"<html>", b"[" * 5)


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    """Yield a storage that first returns the contents queued in `answers`."""
    found = open_storage("memory:///")
    get = Storage.get

    def answer(self: Storage, path: str) -> bytes:
        content = get(self, path)
        return answers.pop() if answers else content

    answers.clear()
    monkeypatch.setattr(Storage, "get", answer)
    yield found
    answers.clear()


answers: list[bytes] = []


def test_garbled_object_is_read_again(storage: Storage, subtests: pytest.Subtests):
    storage.put("x.json", b"[1]")
    for garbled in GARBLED:
        for count in range(1, ATTEMPTS + 1):
            with subtests.test(garbled=garbled, count=count):
                answers[:] = [garbled] * count
                if count < ATTEMPTS:
                    assert read_json(storage, "x.json") == [1]
                else:
                    with pytest.raises(ValueError, match=r".?"):
                        read_json(storage, "x.json")
                answers.clear()
    with pytest.raises(ObjectNotFoundError):
        read_json(storage, "y.json")


def test_owner_garbled_once_is_not_corrupt(storage: Storage):
    require_owner(storage, "https://index.example/simple/")
    for garbled in (*GARBLED, b"{}", b"null", b'{"index_url": 1}'):
        answers[:] = [garbled]
        assert read_owner(storage) == "https://index.example/simple/"
        answers[:] = [garbled] * ATTEMPTS
        with pytest.raises(StorageError):
            read_owner(storage)


def test_published_json_garbled_once_still_has_the_index(storage: Storage):
    require_owner(storage, "https://index.example/simple/")
    answers[:] = [b"{"]
    assert orjson.loads(published._whole(storage))["index_url"] == "https://index.example/simple/"


PATHS = ("d/1/a", "d/1/_MANIFEST.json", "d/1.2/b", "d/2/c", "d/2/input_lists/00001")


@pytest.fixture
def swept(tmp_path: Path) -> Storage:
    swept = open_storage(tmp_path.as_uri())
    for path in PATHS:
        swept.put(path, path.encode())
    return swept


def deletions(swept: Storage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that collects the deleted paths in order."""
    found: list[str] = []
    delete = Storage.delete

    def noted(self: Storage, path: str) -> None:
        found.append(path)
        delete(self, path)

    monkeypatch.setattr(Storage, "delete", noted)
    return found


def test_manifests_and_input_lists_are_deleted_first(swept: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    deleted = deletions(swept, monkeypatch)
    waste = list(swept.list("d"))
    assert [deletion.path for deletion in sweep_objects(swept, waste, dry_run=True)] == sorted(PATHS)
    assert deleted == []
    assert [deletion.path for deletion in sweep_objects(swept, waste)] == sorted(PATHS)
    assert deleted == ["d/1/_MANIFEST.json", "d/2/input_lists/00001", "d/1.2/b", "d/1/a", "d/2/c"]
    assert list(swept.list("d")) == []


def test_directories_lose_orphaned_files_and_are_deleted_once_empty(swept: Storage, tmp_path: Path) -> None:
    def unnamed(directory: str, found: Sequence[StoredObject]) -> Waste | None:
        if directory == "1":
            return DeletionReason.SUPERSEDED, [stored for stored in found if not stored.path.endswith("a")]
        return None if directory == "2" else (DeletionReason.ABANDONED, found)

    directories = by_directory(swept, "d") | {"gone": []}
    expected = [
        Removal("d/1", DeletionReason.SUPERSEDED, 1, len("d/1/_MANIFEST.json")),
        Removal("d/1.2", DeletionReason.ABANDONED, 1, len("d/1.2/b")),
        Removal("d/gone", DeletionReason.ABANDONED, 0, 0),
    ]
    assert list(sweep_directories(swept, "d", directories, unnamed, dry_run=True)) == expected
    assert {one.path for one in swept.list("d")} == set(PATHS)
    assert list(sweep_directories(swept, "d", directories, unnamed)) == expected
    assert {one.path for one in swept.list("d")} == {"d/1/a", "d/2/c", "d/2/input_lists/00001"}
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == ["1", "2"]


def test_age_of_an_object_counts_from_its_last_write(swept: Storage) -> None:
    [stored] = by_directory(swept, "d")["1.2"]
    written = stored.last_modified.timestamp()
    assert (is_older(stored, written), is_older(stored, written + 1)) == (False, True)
