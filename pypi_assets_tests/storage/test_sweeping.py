"""What nothing names is deleted: what names others first, and folders that are empty then."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pypi_assets.storage.store import Storage, StoredObject, open_storage
from pypi_assets.storage.sweeping import (
    Reason,
    Removal,
    Waste,
    by_directory,
    is_older,
    sweep_directories,
    sweep_objects,
)

PATHS = ("d/1/a", "d/1/_MANIFEST.json", "d/1.2/b", "d/2/c", "d/2/input_lists/00001")


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    storage = open_storage(tmp_path.as_uri())
    for path in PATHS:
        storage.put(path, path.encode())
    return storage


def deletions(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are deleted from now on, in order."""
    found: list[str] = []
    delete = Storage.delete

    def noted(self: Storage, path: str) -> None:
        found.append(path)
        delete(self, path)

    monkeypatch.setattr(Storage, "delete", noted)
    return found


def test_manifests_and_input_lists_are_deleted_first(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    deleted = deletions(storage, monkeypatch)
    waste = list(storage.list("d"))
    assert [one.path for one in sweep_objects(storage, waste, dry_run=True)] == sorted(PATHS)
    assert deleted == []
    assert [one.path for one in sweep_objects(storage, waste)] == sorted(PATHS)
    assert deleted == ["d/1/_MANIFEST.json", "d/2/input_lists/00001", "d/1.2/b", "d/1/a", "d/2/c"]
    assert list(storage.list("d")) == []


def test_directories_lose_what_is_unnamed_and_are_deleted_once_empty(storage: Storage, tmp_path: Path) -> None:
    def unnamed(directory: str, found: Sequence[StoredObject]) -> Waste | None:
        if directory == "1":
            return Reason.SUPERSEDED, [one for one in found if not one.path.endswith("a")]
        return None if directory == "2" else (Reason.ABANDONED, found)

    directories = by_directory(storage, "d") | {"gone": []}
    expected = [
        Removal("d/1", Reason.SUPERSEDED, 1, len("d/1/_MANIFEST.json")),
        Removal("d/1.2", Reason.ABANDONED, 1, len("d/1.2/b")),
        Removal("d/gone", Reason.ABANDONED, 0, 0),
    ]
    assert list(sweep_directories(storage, "d", directories, unnamed, dry_run=True)) == expected
    assert {one.path for one in storage.list("d")} == set(PATHS)
    assert list(sweep_directories(storage, "d", directories, unnamed)) == expected
    assert {one.path for one in storage.list("d")} == {"d/1/a", "d/2/c", "d/2/input_lists/00001"}
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == ["1", "2"]


def test_the_age_of_an_object_is_that_of_its_last_write(storage: Storage) -> None:
    [stored] = by_directory(storage, "d")["1.2"]
    written = stored.last_modified.timestamp()
    assert (is_older(stored, written), is_older(stored, written + 1)) == (False, True)
