"""The published state: one object, made of parts that several processes may update at once."""

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from pypi_assets.storage.published import PUBLISHED, name_objects, part_path, publish_part
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.naming import naming


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path.as_uri())


def published(storage: Storage) -> dict[str, object]:
    found: dict[str, object] = orjson.loads(storage.get(PUBLISHED))
    return found


def puts(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    put = Storage.put
    monkeypatch.setattr(Storage, "put", lambda self, path, content: (found.append(path), put(self, path, content)))
    return found


def test_published_object_has_all_parts_and_the_index(storage: Storage) -> None:
    storage.put("index.json", b'{"index_url": "https://one.example/simple/"}')
    publish_part(storage, "dumps", lambda: {"serial": 3})
    publish_part(storage, "journal", dict)
    assert published(storage) == {
        "format": 1,
        "index_url": "https://one.example/simple/",
        "dumps": {"serial": 3},
        "leveldbs": None,
        "journal": {},
    }


def test_unchanged_state_is_not_written(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    written = puts(storage, monkeypatch)
    for _ in range(3):
        publish_part(storage, "dumps", lambda: {"serial": 3})
    assert written == [part_path("dumps"), PUBLISHED]
    storage.delete(PUBLISHED)
    publish_part(storage, "dumps", lambda: {"serial": 3})
    assert published(storage)["dumps"] == {"serial": 3}


def test_objects_are_read_once_and_missing_ones_omitted(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.put("a", b"x")
    publish_part(storage, "dumps", lambda: {"manifests": name_objects(storage, "dumps", ["a", "gone"])})
    [named] = orjson.loads(storage.get(part_path("dumps")))["manifests"]
    assert (named["path"], named["size"], len(named["sha256"])) == ("a", 1, 64)
    read: list[str] = []
    get = Storage.get
    monkeypatch.setattr(Storage, "get", lambda self, path: (read.append(path), get(self, path))[1])
    assert name_objects(storage, "dumps", ["a"]) == [named]
    assert "a" not in read


@pytest.mark.parametrize("slow", ["dumps", "leveldbs"])
def test_slow_writer_leaves_no_older_state(slow: str, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process publishes between any two steps of the writer: the final state has both changes."""
    truth = {"dumps": 1, "leveldbs": 1}
    steps = 0

    def other() -> None:
        nonlocal steps
        steps += 1
        if steps in due and truth[fast] < 4:
            truth[fast] += 1
            real(storage, fast)

    fast = "leveldbs" if slow == "dumps" else "dumps"
    put, get = Storage.put, Storage.get
    is_other = False

    def real(target: Storage, part: str) -> None:
        nonlocal is_other
        is_other = True
        publish_part(target, part, lambda: truth[part])
        is_other = False

    def with_others(step: Callable[..., object]) -> Callable[..., object]:
        def stepped(*arguments: object) -> object:
            if not is_other:
                other()
            return step(*arguments)

        return stepped

    monkeypatch.setattr(Storage, "put", with_others(put))
    monkeypatch.setattr(Storage, "get", with_others(get))
    for first in range(1, 14):
        due = {first, first + 1}
        steps = 0
        truth.update({"dumps": first * 10, "leveldbs": first * 10})
        publish_part(storage, slow, lambda: truth[slow])
        real(storage, fast)
        found = published(storage)
        assert {part: found[part] for part in truth} == truth


def test_unknown_part_is_rejected(storage: Storage) -> None:
    with pytest.raises(ValueError, match=naming("../x")):
        publish_part(storage, "../x", dict)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"1", b'{"manifests": [1]}'])
def test_corrupt_part_is_written_again(content: bytes, storage: Storage) -> None:
    storage.put("a", b"x")
    storage.put(part_path("dumps"), content)
    publish_part(storage, "dumps", lambda: name_objects(storage, "dumps", ["a"]))
    [named] = published(storage)["dumps"]
    assert named["path"] == "a"
