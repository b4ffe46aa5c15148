"""Small objects of JSON are read again where they come garbled."""

from collections.abc import Iterator

import orjson
import pytest

from pypi_assets.storage import published
from pypi_assets.storage.root_owner import ATTEMPTS, read_json, read_owner, require_owner
from pypi_assets.storage.store import NotFoundError, Storage, StorageError, open_storage

GARBLED = (b"", b"{", b"\xff\xfe", b"<html>", b"[" * 5)


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    """A storage whose next answers are those of `garbled`."""
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


def test_what_comes_garbled_is_read_again(storage: Storage, subtests: pytest.Subtests):
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
    with pytest.raises(NotFoundError):
        read_json(storage, "y.json")


def test_an_owner_that_comes_garbled_once_is_no_damage(storage: Storage):
    require_owner(storage, "https://index.example/simple/")
    for garbled in (*GARBLED, b"{}", b"null", b'{"index_url": 1}'):
        answers[:] = [garbled]
        assert read_owner(storage) == "https://index.example/simple/"
        answers[:] = [garbled] * ATTEMPTS
        with pytest.raises(StorageError):
            read_owner(storage)


def test_published_json_names_the_index_though_it_came_garbled_once(storage: Storage):
    require_owner(storage, "https://index.example/simple/")
    answers[:] = [b"{"]
    assert orjson.loads(published._whole(storage))["index_url"] == "https://index.example/simple/"
