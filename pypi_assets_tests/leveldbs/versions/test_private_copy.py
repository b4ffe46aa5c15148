"""Private folders are deleted with their owner, even if it is killed. Folders of live processes are kept."""

import os
import shutil
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.database import open_catalog
from pypi_assets.dumps.dump_writer import write_range
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.versions import private_copy
from pypi_assets.leveldbs.versions.leveldb_manifest import PublishedVersion, read_published
from pypi_assets.leveldbs.versions.private_copy import private_folder, private_parent
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup import open_latest
from pypi_assets.storage.store import Storage, StorageError, open_storage
from pypi_assets_tests.forked import ForkedProgram
from pypi_assets_tests.naming import naming
from pypi_assets_tests.s3_server import BUCKET, s3_server
from pypi_assets_tests.small_catalog import SmallCatalog, continued, small_catalog

RANGE_BYTES = 1_000
_QUERY = """
import sys
from pathlib import Path
from pypi_assets.lookup import open_latest
with open_latest("depgraph", sys.argv[1], Path(sys.argv[2])) as reader:
    print(reader.version, len(reader.project("demo").results))
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the database of a catalog with 300 files."""
    folder = tmp_path_factory.mktemp("filled")
    small = small_catalog(folder)
    for number in range(300):
        requires = tuple(f"r{number * digit % 977}>={number}" for digit in range(3, 11))
        small.add(1, "demo", "1.0", f"demo-1.0-{number}-py3-none-any.whl", requires_dist=requires)
    small.catalog.close()
    return folder / "catalog.sqlite"


@pytest.fixture
def small(filled: Path, tmp_path: Path) -> Iterator[SmallCatalog]:
    shutil.copy(filled, tmp_path)
    small = continued(open_catalog(f"sqlite:///{tmp_path / filled.name}"))
    yield small
    small.catalog.close()


@pytest.fixture
def storage(small: SmallCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    with s3_server(monkeypatch):
        storage = open_storage(f"s3://{BUCKET}/root")
        small.complete(100)
        full_dump(small.catalog, storage, 1)
        build_version("depgraph", storage=storage, catalog=small.catalog, work_dir=tmp_path / "work")
        yield storage


class Fetched:
    """Counts the bytes that were fetched of each file of versions. After `allowed` requests, further ones fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: Counter[str] = Counter()
        self.allowed = 1_000_000
        fetch, lock = Storage.get_range, threading.Lock()

        def get_range(storage: Storage, path: str, offset: int, size: int) -> bytes:
            with lock:
                if self.allowed == 0:
                    raise StorageError("the line is cut")
                self.allowed -= 1
                self.sizes[path] += size
            return fetch(storage, path, offset, size)

        monkeypatch.setattr(Storage, "get_range", get_range)
        monkeypatch.setattr(private_copy, "RANGE_BYTES", RANGE_BYTES)


@pytest.fixture
def fetched(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> Fetched:
    return Fetched(monkeypatch)


def answers(storage: Storage, cache: Path, *, check_hashes: bool = True) -> int:
    with open_latest("depgraph", storage, cache, check_hashes=check_hashes) as reader:
        assert reader.skipped == ()
        assert list((cache / ".private").iterdir()) != []
        return len(reader.project("demo").results)


def sizes(published: PublishedVersion) -> dict[str, int]:
    """Return the sizes of all files that are not empty."""
    return {published.path_of(file): file.size for file in published.manifest.files if file.size}


def table(published: PublishedVersion, cache: Path) -> Path:
    """Return the cached path of a version's largest table."""
    return cache / "depgraph" / "files" / max(published.manifest.files, key=lambda file: file.size).sha256


@pytest.mark.nightly
def test_only_new_files_are_fetched(small: SmallCatalog, storage: Storage, fetched: Fetched, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert answers(storage, cache) == 300
    first = read_published(storage, "depgraph", 1)
    assert fetched.sizes == sizes(first)
    assert answers(storage, cache) == 300
    assert fetched.sizes == sizes(first)
    for number in range(2, 5):
        small.add(100 * number - 1, "demo", "2.0", f"demo-2.{number}.tar.gz")
        write_range(small.catalog, storage, small.complete(100 * number))
        build_version("depgraph", storage=storage, catalog=small.catalog, work_dir=tmp_path / "work")
        before = read_published(storage, "depgraph", number - 1)
        after = read_published(storage, "depgraph", number)
        fetched.sizes.clear()
        assert answers(storage, cache) == 299 + number
        known = {file.sha256 for file in before.manifest.files}
        new = {after.path_of(file) for file in after.manifest.files if file.sha256 not in known}
        assert fetched.sizes == {path: size for path, size in sizes(after).items() if path in new}
        assert after.path_of(max(before.manifest.files, key=lambda file: file.size)) not in new
    kept = {file.sha256 for version in (3, 4) for file in read_published(storage, "depgraph", version).manifest.files}
    assert {path.name for path in (cache / "depgraph" / "files").iterdir()} == kept
    assert len(list((cache / "depgraph" / "versions").iterdir())) == 2


@pytest.mark.nightly
@pytest.mark.parametrize("requests", [1, 2, 10])
def test_interrupted_download_is_resumed(storage: Storage, fetched: Fetched, tmp_path: Path, requests: int) -> None:
    cache = tmp_path / "cache"
    published = read_published(storage, "depgraph", 1)
    for _ in range(sum(file.size for file in published.manifest.files) // RANGE_BYTES // requests):
        fetched.allowed = requests
        with pytest.raises(StorageError, match="the line is cut"):
            answers(storage, cache)
        assert list((cache / ".private").iterdir()) == []
    fetched.allowed = 1_000
    assert answers(storage, cache) == 300
    assert fetched.sizes == sizes(published)  # no byte was fetched twice


@pytest.mark.nightly
def test_leftovers_of_an_interrupted_download_are_checked(storage: Storage, fetched: Fetched, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    published = read_published(storage, "depgraph", 1)
    for content in (b"something else", b"x" * 10**6):
        kept = table(published, cache)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.unlink(missing_ok=True)
        kept.with_suffix(".part").write_bytes(content)
        assert answers(storage, cache) == 300
        assert not kept.with_suffix(".part").exists()


@pytest.mark.nightly
@pytest.mark.parametrize("change", ["cut", "flip", "delete"])
def test_corrupt_cached_file_is_fetched_again(storage: Storage, fetched: Fetched, tmp_path: Path, change: str) -> None:
    cache = tmp_path / "cache"
    assert answers(storage, cache) == 300
    published = read_published(storage, "depgraph", 1)
    kept = table(published, cache)
    content = bytearray(kept.read_bytes())
    for check_hashes in (True, False):
        with open_latest("depgraph", storage, cache) as reader:
            fetched.sizes.clear()
            kept.unlink()  # the reader's file is the same inode
            if change != "delete":
                content[len(content) // 3] ^= 1
                kept.write_bytes(content if change == "flip" else content[:-1])
            assert answers(storage, cache, check_hashes=check_hashes) == 300
            assert dict(fetched.sizes) == {f"{published.path}/{name}": size for name, size in greatest(published)}
            assert len(reader.project("demo").results) == 300
        content = bytearray(kept.read_bytes())


def greatest(published: PublishedVersion) -> list[tuple[str, int]]:
    file = max(published.manifest.files, key=lambda file: file.size)
    return [(file.name, file.size)]


def test_corrupt_stored_file_is_not_cached(storage: Storage, fetched: Fetched, tmp_path: Path) -> None:
    published = read_published(storage, "depgraph", 1)
    [(name, _)] = greatest(published)
    content = bytearray(storage.get(f"{published.path}/{name}"))
    content[0] ^= 1
    storage.put(f"{published.path}/{name}", bytes(content))
    file = next(file for file in published.manifest.files if file.name == name)
    cache = private_copy.FileCache(tmp_path, published)
    with pytest.raises(LeveldbDamagedError, match=naming("depgraph/leveldbs/00001", "sha256")):
        cache.get(storage, f"{published.path}/{name}", file, hashes=True)
    assert not table(published, tmp_path).exists()


def test_processes_share_a_cache(storage: Storage, tmp_path: Path) -> None:
    arguments = _QUERY, storage.url, tmp_path / "cache"
    processes = [ForkedProgram(*arguments, stdout=subprocess.PIPE) for _ in range(3)]
    assert [process.communicate(timeout=60)[0] for process in processes] == ["1 300\n"] * 3
    assert [path.suffix for path in (tmp_path / "cache" / "depgraph" / "files").iterdir()].count(".part") == 0


_HOLD = """
import sys
from pathlib import Path
from pypi_assets.leveldbs.versions.private_copy import private_folder
with private_folder(Path(sys.argv[1])) as folder:
    (folder / "file").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_private_folder_is_deleted_at_the_end(tmp_path: Path) -> None:
    with private_folder(tmp_path / "p") as one, private_folder(tmp_path / "p") as other:
        (one / "file").write_text("x")
        assert one != other
        assert one.is_dir()
        assert other.is_dir()
    assert list((tmp_path / "p").iterdir()) == []


def test_leftovers_of_a_killed_process_are_deleted_by_the_next(tmp_path: Path) -> None:
    with ForkedProgram(_HOLD, tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        with private_folder(tmp_path):
            assert (left / "file").exists()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert (left / "file").exists()
    with private_folder(tmp_path):
        assert not left.exists()


def test_private_folders_are_placed_where_files_can_be_linked(tmp_path: Path) -> None:
    folder = open_storage((tmp_path / "storage").as_uri())
    assert private_parent(folder, tmp_path / "cache") == tmp_path / "storage" / ".private"
    remote = open_storage("memory:///")
    assert private_parent(remote, tmp_path / "cache") == tmp_path / "cache" / ".private"
    assert private_parent(remote, None).name.startswith("pypi-assets-")
