"""A storage root belongs to one index, and to one catalog of it."""

import json
from pathlib import Path

import pytest

from pypi_assets.assembly import storage_from
from pypi_assets.settings import load_settings
from pypi_assets.storage.root_owner import MIRROR, OWNER, require_catalog, require_no_mirror, require_owner
from pypi_assets.storage.store import StorageError, open_storage
from pypi_assets_tests.naming import naming

ONE, OTHER = "https://one.example/simple/", "https://other.example/simple/"


def test_the_first_index_that_writes_owns_the_root(tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    for _ in range(2):
        require_owner(storage, ONE)
    with pytest.raises(StorageError, match=naming(ONE, OTHER)):
        require_owner(storage, OTHER)
    assert storage.get(OWNER) == b'{"index_url": "https://one.example/simple/"}'


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"1", b"\xff"])
def test_a_damaged_owner_is_named(content: bytes, tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    storage.put(OWNER, content)
    with pytest.raises(StorageError, match=naming(OWNER)):
        require_owner(storage, ONE)


def test_two_settings_do_not_share_a_root_and_readers_need_not_own_it(tmp_path: Path) -> None:
    one, other = (
        load_settings(
            home=tmp_path / name, storage_url=tmp_path.as_uri(), index_url=f"https://me:secret@{name}.example/simple/"
        )
        for name in ("one", "other")
    )
    storage_from(one)
    with pytest.raises(StorageError) as caught:
        storage_from(other)
    assert "secret" not in str(caught.value)
    assert storage_from(other, read_only=True).exists(OWNER)


def test_nothing_else_writes_to_a_mirror(tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    require_no_mirror(storage)
    storage.put(MIRROR, b"{}")
    settings = load_settings(home=tmp_path, storage_url=storage.url, index_url=ONE)
    with pytest.raises(StorageError, match=naming("pypi-assets mirror run")):
        storage_from(settings)
    assert storage_from(settings, read_only=True).exists(MIRROR)


def test_the_first_catalog_that_writes_owns_the_root(tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    require_owner(storage, ONE)
    require_catalog(storage, None)  # before its first full crawl
    for _ in range(2):
        require_catalog(storage, "first")
    for other in ("second", None):
        with pytest.raises(StorageError):
            require_catalog(storage, other)
    require_owner(storage, ONE)
    assert json.loads(storage.get(OWNER)) == {"index_url": ONE, "catalog": "first"}
