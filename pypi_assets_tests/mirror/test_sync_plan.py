"""Invalid names in a hostile published.json or manifest are rejected with a message and in little memory."""

import hashlib
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.mirror.sources import RefusedSourceError, StoredSource, VanishedError, WrongContentError
from pypi_assets.mirror.sync_plan import fetch_dump, fetch_version, held_publication, read_state
from pypi_assets.storage.published import PUBLISHED, Named
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.mirror.conftest import Origin
from pypi_assets_tests.naming import naming

SHA = "0" * 64
GOOD = {"format": 1, "index_url": "https://one.example/simple/", "dumps": None, "leveldbs": None, "journal": None}
HEAD = {
    "format": 1,
    "stream": "index",
    "generation": 1,
    "start": 0,
    "end": 0,
    "number": 0,
    "digest": None,
    "open": None,
}
OPEN = {"start": 0, "end": 9, "name": f"open-0-9.{'0' * 16}.jsonl.zst", "records": 1, "bytes": 1, "sha256": SHA}


def test_state_of_a_storage_is_read(origin: Origin) -> None:
    state = read_state(origin.storage.get(PUBLISHED), "here")
    assert state.index_url == origin.published.index.url
    assert state.leveldbs.keys() == DATASETS.keys()
    assert set(state.heads) == {"index", "observed", "content", "visits"}
    assert all(held_publication(origin.storage, root) for root in state.roots)
    assert held_publication(origin.storage, "modules/input_lists/99999") is None


def test_invalid_state_is_rejected(subtests: pytest.Subtests) -> None:
    cases = [
        b"",
        b"{",
        b"[]",
        b"1",
        b"\xff",
        b"[" * 100_000,
        b"[" * 600_000,
        b'{"format": 2}',
        b'{"format": 1}',
        orjson.dumps(GOOD | {"index_url": ""}),
        orjson.dumps(GOOD | {"index_url": 1}),
        *(orjson.dumps(GOOD | {"dumps": value}) for value in (1, [], "x", {"serial": -1}, {"serial": "1"})),
        *(
            orjson.dumps(GOOD | {"dumps": {"serial": 1, "manifests": value}})
            for value in (1, [1], [{}], [{"path": "x"}], [{"path": "x", "size": 1.5, "sha256": SHA}])
        ),
        orjson.dumps(GOOD | {"dumps": {"serial": 1, "manifests": [{"path": "x", "size": 1, "sha256": SHA}] * 600}}),
        orjson.dumps(GOOD | {"dumps": {"serial": 1, "manifests": [{"path": "x", "size": 1, "sha256": "X"}]}}),
        orjson.dumps(GOOD | {"leveldbs": {"modules": {}}}),
        *(
            orjson.dumps(GOOD | {"journal": {"index": HEAD | change}})
            for change in (
                {"stream": "content"},
                {"stream": "x"},
                {"generation": 0},
                {"generation": -1},
                {"number": 10**9, "digest": SHA},
                {"number": 1},
                {"digest": "x", "number": 1},
                {"open": 1},
                {"open": OPEN | {"name": "../../etc/passwd"}},
                {"open": OPEN | {"name": "head.json"}},
                {"open": OPEN | {"name": f"0-9.{'0' * 16}.jsonl.zst"}},
                {"open": OPEN | {"end": 8}},
                {"open": OPEN | {"sha256": "a" * 64}},
                {"open": OPEN | {"bytes": -1}},
                {"open": OPEN | {"start": 3}},
                {"open": OPEN | {"sha256": None}},
                {"format": 9},
            )
        ),
    ]
    for content in cases:
        with subtests.test(content=content), pytest.raises(RefusedSourceError, match="here"):
            read_state(content, "here")


def test_open_segment_is_read() -> None:
    state = read_state(orjson.dumps(GOOD | {"journal": {"index": HEAD | {"open": OPEN}}}), "here")
    assert state.heads["index"].through == 9


def test_unknown_datasets_are_skipped_and_named() -> None:
    state = read_state(orjson.dumps(GOOD | {"leveldbs": {"journal": [], "../x": [], "modules": []}}), "here")
    assert state.unknown_datasets == ("../x", "journal")
    assert state.leveldbs == {"modules": ()}


def changed(origin: Origin, path: str, change: Callable[[dict[str, Any]], object]) -> tuple[StoredSource, Named]:
    """Copy the small files of a source, change fields of one of them, and return the copy and its name."""
    copy = open_storage("memory:///")
    for root in read_state(origin.storage.get(PUBLISHED), "here").roots:
        publication = held_publication(origin.storage, root)
        assert publication is not None
        for name, content in publication.objects:
            copy.put(name, content)
    fields = orjson.loads(copy.get(path))
    change(fields)
    copy.put(path, orjson.dumps(fields))
    return StoredSource(copy), Named.of(path, copy.get(path))


def dump_manifest(origin: Origin) -> str:
    return read_state(origin.storage.get(PUBLISHED), "here").dumps[0].path


def of_file(**fields: object) -> Callable[[dict[str, Any]], object]:
    return lambda manifest: manifest["files"][0].update(fields)


def test_dump_manifest_with_impossible_values_is_rejected(origin: Origin, subtests: pytest.Subtests) -> None:
    cases = [
        of_file(name="../../../../etc/passwd"),
        of_file(name="/etc/passwd"),
        of_file(name="_MANIFEST.json"),
        of_file(name=1),
        of_file(bytes=-1),
        of_file(bytes="1"),
        of_file(bytes=10**13),
        of_file(sha256="x"),
        of_file(shard=7),
        lambda manifest: manifest.update(directory=".."),
        lambda manifest: manifest.update(files={}),
        lambda manifest: manifest.update(files=[1]),
        lambda manifest: manifest.update(format=7),
        lambda manifest: manifest.update(leaves=1),
        lambda manifest: manifest.update(notes="x" * 300_000),
    ]
    for change in cases:
        with subtests.test(change=change):
            source, named = changed(origin, dump_manifest(origin), change)
            with pytest.raises(RefusedSourceError):
                fetch_dump(source, named)


@pytest.mark.parametrize(
    "path",
    [
        "../_MANIFEST.json",
        "/etc/passwd",
        "data_dumps/python_distribution_data/../_MANIFEST.json",
        "modules/leveldbs/x",
        "data_dumps/python_distribution_data/0-1/x/_MANIFEST.json",
        "published.json",
    ],
)
def test_invalid_manifest_path_is_never_requested(path: str, origin: Origin) -> None:
    source = StoredSource(origin.storage)
    with pytest.raises(RefusedSourceError):
        fetch_dump(source, Named(path, 1, SHA))
    with pytest.raises(RefusedSourceError):
        fetch_version(source, "modules", Named(path, 1, SHA))


def version_with(origin: Origin, change: Callable[[dict[str, Any]], object]) -> tuple[Storage, Named]:
    """Return a source whose version of `modules` has a manifest with changed fields and a matching input list."""
    [named] = read_state(origin.storage.get(PUBLISHED), "here").leveldbs["modules"]
    publication = held_publication(origin.storage, named.path)
    assert publication is not None
    (path, manifest), (_, listed) = publication.objects
    fields = orjson.loads(manifest)
    change(fields)
    content = orjson.dumps(fields)
    listed = listed.replace(hashlib.sha256(manifest).hexdigest().encode(), hashlib.sha256(content).hexdigest().encode())
    copy = open_storage("memory:///")
    copy.put(path, content)
    copy.put(named.path, listed)
    return copy, Named.of(named.path, listed)


def test_leveldb_manifest_with_impossible_values_is_rejected(origin: Origin, subtests: pytest.Subtests) -> None:
    cases = [
        of_file(name="../../x.ldb"),
        of_file(name="_MANIFEST.json"),
        of_file(name="LOCK"),
        of_file(directory="../../.."),
        of_file(directory="/etc"),
        of_file(size=True),
        of_file(size=2**60),
        of_file(sha256=None),
        of_file(more=1),
        lambda manifest: manifest.update(dataset="hashes"),
        lambda manifest: manifest.update(version=7),
        lambda manifest: manifest.update(directory="00009"),
        lambda manifest: manifest.update(format=9),
        lambda manifest: manifest.update(files=1),
        lambda manifest: manifest.update(held=[0] * 500_001),
    ]
    for change in cases:
        with subtests.test(change=change):
            copy, named = version_with(origin, change)
            with pytest.raises(RefusedSourceError):
                fetch_version(StoredSource(copy), "modules", named)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"# leveldb: 00001", b"# leveldb: ../../../x"),
        (b"data_dumps/python_distribution_data/", b"../../"),
        (b"# serial: ", b"# serial: x"),
        (b"# manifest sha256: ", b"# manifest sha256: 0"),
    ],
)
def test_input_list_with_impossible_values_is_rejected(old: bytes, new: bytes, origin: Origin) -> None:
    copy, named = version_with(origin, lambda _manifest: None)
    content = copy.get(named.path)
    assert old in content
    copy.put(named.path, content.replace(old, new))
    with pytest.raises(RefusedSourceError):
        fetch_version(StoredSource(copy), "modules", Named.of(named.path, copy.get(named.path)))


def test_mismatching_file_is_wrong_and_missing_file_has_vanished(origin: Origin) -> None:
    path = dump_manifest(origin)
    with pytest.raises(WrongContentError, match=naming("_MANIFEST.json")):
        fetch_dump(StoredSource(origin.storage), Named(path, 1, SHA))
    with pytest.raises(VanishedError):
        fetch_dump(StoredSource(open_storage("memory:///")), Named(path, 1, SHA))
