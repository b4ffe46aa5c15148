"""A storage root belongs to one index and one of its catalogs, from the first write on."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier

import pytest

from pypi_assets.components import catalog_from, storage_from
from pypi_assets.settings import load_settings
from pypi_assets.storage.root_owner import (
    MIRROR,
    NEW,
    OWNER,
    RootOwner,
    claim_root,
    claimed_on_write,
    require_claimable,
    require_owner,
)
from pypi_assets.storage.store import Storage, StorageError, open_storage
from pypi_assets_tests.naming import naming
from pypi_assets_tests.s3_server import BUCKET, s3_server

ONE, OTHER = "https://one.example/simple/", "https://other.example/simple/"


@pytest.fixture(params=["file", "s3", "s3 without conditional writes"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the URL of an empty root."""
    if request.param == "file":
        yield (tmp_path / "root").as_uri()
        return
    with s3_server(monkeypatch):
        if request.param != "s3":
            monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
        yield f"s3://{BUCKET}/root"


def paths(storage: Storage) -> set[str]:
    return {stored.path for stored in storage.list()}


def test_object_is_created_once(root: str) -> None:
    storage = open_storage(root)
    assert [storage.create("one", content) for content in (b"first", b"second")] == [True, False]
    assert storage.get("one") == b"first"


def test_first_claimant_owns_the_root(root: str) -> None:
    storage = open_storage(root)
    first = RootOwner(ONE, "first")
    for _ in range(2):
        claim_root(storage, first)
    for other in (RootOwner(ONE, "second"), RootOwner(OTHER, "first"), RootOwner(ONE, NEW)):
        for claim in (require_claimable, claim_root):
            with pytest.raises(StorageError, match=naming(root)):
                claim(storage, other)
    with pytest.raises(StorageError):
        require_owner(storage, ONE)
    assert require_claimable(storage, RootOwner(ONE)) == first
    assert json.loads(storage.get(OWNER)) == {"index_url": ONE, "catalog": "first"}


def test_exactly_one_of_concurrent_claimants_writes(root: str) -> None:
    if "AWS_CONDITIONAL_PUT" in os.environ:
        pytest.skip("there the last one wins")
    claimants = 6
    for number in range(5):
        url, together = f"{root}/{number}", Barrier(claimants)

        def write(name: str, url: str = url, together: Barrier = together) -> str | None:
            storage = claimed_on_write(open_storage(url), partial(RootOwner, ONE, name))
            together.wait()
            try:
                storage.put(f"extracts/{name}", b"")
            except StorageError:
                return None
            return name

        with ThreadPoolExecutor(claimants) as threads:
            found = [name for name in threads.map(write, "abcdef") if name is not None]
        assert len(found) == 1
        storage = open_storage(url)
        assert (json.loads(storage.get(OWNER))["catalog"], paths(storage)) == (
            found[0],
            {OWNER, f"extracts/{found[0]}"},
        )


def test_each_kind_of_write_claims_the_root_first(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    for number, write in enumerate(
        (
            lambda storage: storage.put("a/b", b"x"),
            lambda storage: storage.put_linked("a/b", file),
            lambda storage: storage.create("a/b", b"x"),
            lambda storage: storage.delete("a/b"),
            lambda storage: list(storage.delete_unfinished(2e9)),
        )
    ):
        raw = open_storage((tmp_path / str(number)).as_uri())
        (tmp_path / str(number) / "a#1").write_bytes(b"of a killed put")
        claimed = claimed_on_write(raw, partial(RootOwner, ONE, "first"))
        assert not raw.exists(OWNER)
        write(claimed)
        assert json.loads(raw.get(OWNER))["catalog"] == "first"
        before = paths(raw)
        with pytest.raises(StorageError):
            claimed_on_write(raw, partial(RootOwner, ONE, "second")).put("c", b"")
        with pytest.raises(StorageError):
            claimed_on_write(raw, partial(RootOwner, ONE, "second")).delete("a/b")
        assert paths(raw) == before


def test_catalog_without_an_index_claims_nothing(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path / "home", storage_url=tmp_path.as_uri(), index_url=ONE)
    catalog = catalog_from(settings)
    storage = storage_from(settings, catalog)
    with pytest.raises(StorageError, match=naming("pypi-assets crawl full")):
        storage.put("a", b"")
    catalog.close()
    assert [stored.path for stored in storage.list() if not stored.path.startswith("home/")] == []


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"1", b"\xff", b'{"index_url": "x", "catalog": 1}'])
def test_corrupt_owner_is_reported(content: bytes, tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    storage.put(OWNER, content)
    for claim in (require_claimable, claim_root):
        with pytest.raises(StorageError, match=naming(OWNER)):
            claim(storage, RootOwner(ONE, "first"))
    assert storage.get(OWNER) == content


def test_root_is_not_shared_and_readers_need_not_own_it(tmp_path: Path) -> None:
    one, other = (
        load_settings(
            home=tmp_path / name, storage_url=tmp_path.as_uri(), index_url=f"https://me:secret@{name}.example/simple/"
        )
        for name in ("one", "other")
    )
    storage_from(other)  # nothing is written yet
    storage_from(one).put("a", b"")
    with pytest.raises(StorageError) as caught:
        storage_from(other)
    assert "secret" not in str(caught.value)
    assert b"secret" not in storage_from(other, read_only=True).get(OWNER)


def test_other_writers_are_rejected_by_a_mirror(tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    settings = load_settings(home=tmp_path, storage_url=storage.url, index_url=ONE)
    opened = storage_from(settings)
    storage.put(MIRROR, b"{}")
    with pytest.raises(StorageError, match=naming("pypi-assets mirror run")):
        opened.put("a", b"")
    with pytest.raises(StorageError, match=naming("pypi-assets mirror run")):
        storage_from(settings)
    assert storage_from(settings, read_only=True).exists(MIRROR)
    assert not storage.exists(OWNER)


def test_root_without_a_catalog_gets_it_with_the_next_write(tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    require_owner(storage, ONE)
    with pytest.raises(StorageError, match=naming(ONE, OTHER)):
        require_owner(storage, OTHER)
    assert require_claimable(storage, RootOwner(ONE, "first")) == RootOwner(ONE)
    claimed_on_write(storage, partial(RootOwner, ONE, "first")).put("a", b"")
    assert json.loads(storage.get(OWNER)) == {"index_url": ONE, "catalog": "first"}
