"""The same behaviour on a folder, in memory and on S3, and clear errors for unusable stores."""

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pypi_assets.storage.store import ObjectNotFoundError, Storage, StorageError, open_storage
from pypi_assets_tests.forked import run_forked
from pypi_assets_tests.naming import naming
from pypi_assets_tests.s3_server import BUCKET, s3_server


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as environment, s3_server(environment):
        yield f"s3://{BUCKET}/some/prefix"


@pytest.fixture(params=["file", "memory", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "file":
        return open_storage((tmp_path / "new folder" / "root").as_uri())
    if request.param == "memory":
        return open_storage("memory:///")
    return open_storage(f"{request.getfixturevalue('s3_url')}/{request.node.name}")


def test_put_object_is_returned_and_replaced(storage: Storage, tmp_path: Path) -> None:
    storage.put("a/b.txt", b"one")
    assert storage.get("a/b.txt") == b"one"
    (tmp_path / "local").write_bytes(b"two!")
    storage.put("a/b.txt", tmp_path / "local")
    assert storage.get("a/b.txt") == b"two!"
    assert storage.head("a/b.txt").size == 4
    with tempfile.TemporaryFile() as open_file:
        open_file.write(b"three" * 3_000_000)
        open_file.seek(5)
        storage.put("a/b", open_file)
    assert storage.get("a/b") == b"three" * 2_999_999
    assert abs(storage.head("a/b.txt").last_modified - datetime.now(UTC)) < timedelta(minutes=5)


def test_unnamed_file_gets_its_name_on_a_folder(storage: Storage, tmp_path: Path) -> None:
    for content in (b"one", b"two" * 3_000_000):  # the second file replaces the first
        with storage.unnamed_file() as unnamed:
            unnamed.write(content)
            unnamed.seek(0)
            assert [*storage.list()] == [*storage.list("a")]
            storage.put("a/b", unnamed)
            inode = os.fstat(unnamed.fileno()).st_ino
        assert storage.get("a/b") == content
        if path := storage.local_path("a/b"):
            assert (path.stat().st_ino == inode) == (content == b"one")
    with (tmp_path / "named").open("w+b") as named:
        named.write(b"three")
        named.seek(0)
        storage.put("c", named)
        named.write(b"THREE")
    assert storage.get("c") == b"three"


@pytest.mark.parametrize("url", ["file", "memory"])
def test_error_of_an_unwritable_unnamed_file_contains_its_folder(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(tmp_path.as_uri() if url == "file" else "memory:///")
    folder = str(tmp_path) if url == "file" else tempfile.gettempdir()
    full = os.open("/dev/full", os.O_RDWR)
    if url == "file":
        monkeypatch.setattr(os, "open", lambda *_: full)
    else:
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: os.fdopen(full, "r+b", buffering=0))
    with pytest.raises(OSError, match="No space left on device") as caught, storage.unnamed_file() as unnamed:
        unnamed.write(bytes(1_000_000))
    assert caught.value.filename == folder


def test_remains_of_a_killed_put_are_deleted_once_old(tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    storage.put("a/b", b"whole")
    kill_in_a_put = """
import os, sys, threading
from pathlib import Path
from pypi_assets.storage.store import open_storage

def kill() -> None:
    while not any(Path(sys.argv[1]).glob("a/c#*")):
        pass
    os.kill(os.getpid(), 9)

threading.Thread(target=kill).start()
storage = open_storage(Path(sys.argv[1]).as_uri())
while True:
    storage.put("a/c", bytes(50_000_000))
    storage.delete("a/c")
"""
    while not (left := next(tmp_path.glob("a/c#*"), None)):  # a put may end before it is killed
        run_forked(kill_in_a_put, tmp_path)
    storage.delete("a/c")
    now = time.time()
    assert [stored.path for stored in storage.list()] == ["a/b"]
    assert list(storage.delete_unfinished(now - 3600)) == []
    (environment,) = storage.delete_unfinished(now + 3600, dry_run=True)
    assert (environment.path, environment.size) == (left.relative_to(tmp_path).as_posix(), left.stat().st_size)
    assert list(storage.delete_unfinished(now + 3600)) == [environment]
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def test_range_of_an_object_is_read(storage: Storage) -> None:
    storage.put("a/b", b"0123456789")
    assert (storage.get_range("a/b", 3, 4), storage.get_range("a/b", 0, 10)) == (b"3456", b"0123456789")
    with pytest.raises(ObjectNotFoundError):
        storage.get_range("a/c", 0, 1)


def test_list_returns_only_paths_below_the_folder(storage: Storage) -> None:
    for path in ("x/1", "x/y/2", "xy/3"):
        storage.put(path, path.encode())
    assert {found.path: found.size for found in storage.list("x")} == {"x/1": 3, "x/y/2": 5}
    assert {found.path for found in storage.list()} == {"x/1", "x/y/2", "xy/3"}
    assert list(storage.list("nothing/here")) == []


def test_missing_object_has_its_own_error(storage: Storage, tmp_path: Path) -> None:
    assert not storage.exists("no")
    for read in (storage.get, storage.head, storage.open):
        with pytest.raises(ObjectNotFoundError, match="/no"):
            read("no")
    storage.put("yes", b"")
    storage.delete("yes")
    storage.delete("yes")
    assert not storage.exists("yes")
    with pytest.raises(StorageError, match="yes") as caught:
        storage.put("yes", tmp_path / "no such file")
    assert not isinstance(caught.value, ObjectNotFoundError)


def test_object_can_be_streamed_and_downloaded(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pypi_assets.storage.store.RANGE_BYTES", 2_000_000)
    storage.put("empty", b"")
    with storage.open("empty") as stream:
        assert stream.read() == b""
    content = bytes(range(256)) * 20_000
    storage.put("big", content)
    with storage.open("big") as stream:
        assert stream.read(3) == content[:3]
        assert b"".join(iter(lambda: stream.read(70_001), b"")) == content[3:]
    storage.download("big", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content


def test_only_a_folder_has_local_paths(storage: Storage) -> None:
    storage.put("a/b", b"x")
    path = storage.local_path("a/b")
    assert (path is not None) == storage.url.startswith("file:")
    assert path is None or path.read_bytes() == b"x"


def test_linked_file_shares_its_bytes_on_a_folder(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "table").write_bytes(b"table")
    storage.put_linked("t/table", tmp_path / "table")
    storage.put_linked("t/table", tmp_path / "table")
    assert storage.get("t/table") == b"table"
    if path := storage.local_path("t/table"):
        assert path.read_bytes() == b"table"


@pytest.mark.parametrize(
    ("url", "values"),
    [
        ("http://files.example.org/x", ["http://files.example.org/x", "file://", "s3://"]),
        ("/a/path", ["/a/path", "file://", "s3://"]),
        ("file://host/x", ["file://host/x", "file:///PATH"]),
        ("s3://", ["s3://"]),
    ],
)
def test_invalid_url_is_explained(url: str, values: list[str]) -> None:
    with pytest.raises(StorageError, match=naming(*values)):
        open_storage(url)


def test_folder_that_cannot_be_created_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=naming("root")):
        open_storage((tmp_path / "file" / "root").as_uri())


def test_reading_creates_no_folder(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=naming("root")):
        open_storage((tmp_path / "root").as_uri(), read_only=True)
    assert not (tmp_path / "root").exists()


def test_missing_bucket_is_a_write_error(s3_url: str) -> None:
    with pytest.raises(StorageError, match=naming("s3://missing-bucket/x")) as caught:
        open_storage("s3://missing-bucket").put("x", b"")
    assert not isinstance(caught.value, ObjectNotFoundError)


@pytest.mark.parametrize(
    ("environment", "values"),
    [
        ({}, ["s3://missing-bucket/folder", 404]),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, ["s3://missing-bucket/folder", "Connection refused"]),
        ({"AWS_ALLOW_HTTP": "false"}, ["s3://missing-bucket/folder", "AWS_ALLOW_HTTP=true"]),
    ],
)
def test_connection_failure_reports_its_reason(
    s3_url: str, environment: dict[str, str], values: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pypi_assets.storage.store.RETRIES", {"max_retries": 1})
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StorageError, match=naming(*values)):
        list(open_storage("s3://missing-bucket").list("folder"))


class WithoutRanges(BaseHTTPRequestHandler):
    """Answers each range request with the whole object, as some servers do if the range covers it."""

    def do_GET(self) -> None:
        self.send_response(200)
        for name, value in {
            "Content-Length": "7",
            "ETag": '"one"',
            "Last-Modified": "Sat, 01 Aug 2026 00:00:00 GMT",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"content")

    def log_message(self, *_: object) -> None:
        pass


def test_range_of_the_whole_object_may_be_answered_without_range(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), WithoutRanges) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
        }.items():
            monkeypatch.setenv(name, value)
        storage = open_storage("s3://bucket/prefix")
        assert storage.get_range("object", 0, 7) == b"content"
        with pytest.raises(StorageError, match=naming("object")):
            storage.get_range("object", 2, 3)
        server.shutdown()
        thread.join()
