"""The object store: bytes under paths, below one root URL (file, s3, gs, az or memory).

S3 and similar stores are configured by their usual environment variables (AWS_ENDPOINT_URL, AWS_ALLOW_HTTP, AWS_REGION,
AWS_ACCESS_KEY_ID ...), which obstore reads itself. The meaning of objects and their paths do not belong here.
"""

import io
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, NotSupportedError, PreconditionError
from obstore.store import LocalStore, ObjectStore, from_url

from pypi_assets.errors import FIRST_COMMANDS, ExpectedError

if TYPE_CHECKING:
    from obstore.store import RetryConfig
    from typing_extensions import Buffer


_S3_MESSAGE = re.compile(r"<Message>([^<]+)</Message>")  # in S3's response, below obstore's first line
_NOT_REACHED = re.compile(r'ConnectError\(.*?: "([^"]+)"', re.DOTALL)  # the reason, in obstore's debugging dump
_NOT_TRUSTED = re.compile(r"InvalidCertificate\(\s*(\w+)")  # a TLS error, in the same dump
_NOT_WRITABLE = re.compile(r"os error (?:13|30)\b")  # obstore's text for no permission, or a read-only file system
WRITABLE = "make it writable, or set PYPI_ASSETS_STORAGE_URL or PYPI_ASSETS_HOME to another folder"
_SETTINGS = {
    "s3": {
        "keys": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        "endpoint": "AWS_ENDPOINT_URL",
        "region": "AWS_REGION",
    },
    "gs": {"keys": "GOOGLE_APPLICATION_CREDENTIALS", "endpoint": "the network", "region": "the bucket's region"},
    "az": {
        "keys": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
        "endpoint": "AZURE_STORAGE_ENDPOINT",
        "region": "the account's region",
    },
}
"""The environment variables of the remote stores, which obstore reads itself."""
_ADVICE = [
    (re.compile(r"169\.254\.169\.254"), "no keys are set, so the machine's own keys were requested: set {keys}"),
    (
        re.compile(r"necessary privileges|valid authentication credentials|code: 40[13]\b"),
        "check {keys}, and their rights",
    ),
    (re.compile(r"incorrectly configured region"), "check {region}"),
    (re.compile(r"bucket does not exist|NoSuchBucket"), "check PYPI_ASSETS_STORAGE_URL and {endpoint}"),
    (
        re.compile(r"error sending request|ConnectError|code: (?:405|501)\b"),
        "check {endpoint}, and that the store is up",
    ),
]
"""Patterns in obstore's text, and the settings to check; the first match counts."""


def store_message(error: Exception, url: str) -> str:
    """Return the store's message with the reason from its debugging dump, and with the settings to check.

    `url` is the root of the storage. Its scheme decides which settings are named.
    """
    text = str(error)
    message = _message_of(text, error)
    names = _SETTINGS.get(url.partition("://")[0])
    advice = next((advice for pattern, advice in _ADVICE if pattern.search(text)), None) if names else None
    return message if names is None or advice is None else f"{message.rstrip(' :.')}; {advice.format(**names)}"


def _message_of(text: str, error: Exception) -> str:
    first_line = (text.splitlines() or [type(error).__name__])[0]
    if _NOT_WRITABLE.search(text):
        return f"{first_line}; {WRITABLE}"
    if message := _S3_MESSAGE.search(text):
        return f"{first_line.partition(': <')[0]}: {message[1]}"
    if reason := _NOT_REACHED.search(text):
        return f"{first_line}: {reason[1]}"
    if reason := _NOT_TRUSTED.search(text):
        return (
            f"{first_line}: its certificate is not trusted ({reason[1]}); SSL_CERT_FILE names the file of trusted ones"
        )
    return f"{first_line}: for plain http, set AWS_ALLOW_HTTP=true" if "BadScheme" in text else first_line


READ_BUFFER_BYTES = 1024**2
RANGE_BYTES = 8 * 1024**2
PART_BYTES = 5 * 1024**2  # the part size of a large upload, which needs three times as much memory
_putting_parts = threading.Lock()  # otherwise, the memory of a dump would grow with the number of its large files
_UNFINISHED = re.compile(r".+#[0-9]+")  # obstore's name for the file that an unfinished put writes into a folder
_NOT_PARTIAL = "non-partial response"  # obstore's text if a server answered a range request with status 200
RETRIES: "RetryConfig" = {"max_retries": 10}
"""The number of retries of a request to a remote store after a transient error."""
SCHEMES = ("file", "s3", "gs", "az", "memory")


class StorageError(ExpectedError):
    """The store could not be opened, read or written. The message has the URI and the store's own message."""


class NoFolderError(StorageError):
    """The folder of a storage does not exist, and the storage was opened read-only."""


class ObjectNotFoundError(StorageError):
    """The store has no object under this path."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object: its path below the root, its size in bytes, and the time of its last write."""

    path: str
    size: int
    last_modified: datetime


@dataclass(frozen=True, slots=True)
class Storage:
    """The objects below `url`. Paths are relative, and their parts are separated by `/`.

    Every method raises StorageError if the store fails. A put is atomic, and replaces an existing object.
    `before_write` is called before each change, and can prevent it by raising an error.
    """

    url: str
    objects: ObjectStore
    root: Path | None = None
    before_write: Callable[[], None] | None = field(default=None, compare=False, repr=False)

    def uri(self, path: str) -> str:
        """Return the full URI of the object at `path`."""
        return f"{self.url.removesuffix('/')}/{path}"

    def local_path(self, path: str) -> Path | None:
        """Return the object's path in the file system, or None for stores that are not folders."""
        return self.root / path if self.root else None

    def put(self, path: str, content: bytes | Path | BinaryIO) -> None:
        """Write bytes, the content of a local file, or the rest of an open file from its position, to `path`.

        An `unnamed_file` that is at its start is not copied into a folder, but linked there. It must not be written
        afterwards.
        """
        self._require_writable()
        if isinstance(content, io.BufferedRandom) and self._name(content, path):
            return
        try:
            with self._translated(path), _putting_parts if _goes_in_parts(content) else nullcontext():
                obstore.put(self.objects, path, content, chunk_size=PART_BYTES, max_concurrency=1)
        except ObjectNotFoundError as error:  # the bucket or the local file is missing, not the object
            raise StorageError(f"cannot write {error}") from error

    def create(self, path: str, content: bytes) -> bool:
        """Write an object unless it exists, and return whether it was written. Exactly one of several writers succeeds.

        Some stores have no conditional writes, and some file systems have no links. There, the last writer wins, so
        read the object afterwards.
        """
        self._require_writable()
        with self._translated(path):
            try:
                obstore.put(self.objects, path, content, mode="create")
            except (AlreadyExistsError, PreconditionError):
                return False
            except (GenericError, NotSupportedError, NotImplementedError):
                if self.exists(path):
                    return False
                obstore.put(self.objects, path, content)
        return True

    def unnamed_file(self) -> io.BufferedRandom:
        """Return a new local file to write and then `put`. The caller closes it. A killed process leaves nothing of it
        behind.

        If it cannot be written, for example because the disk is full, the OSError names the folder.
        """
        if self.root is not None and hasattr(os, "O_TMPFILE"):
            with suppress(OSError):  # some file systems have no such files
                descriptor = os.open(self.root, os.O_TMPFILE | os.O_RDWR, 0o666)
                return io.BufferedRandom(_UnnamedFile(descriptor, self.root))
        with tempfile.TemporaryFile(buffering=0) as file:
            return io.BufferedRandom(_UnnamedFile(os.dup(file.fileno()), tempfile.gettempdir()))

    def _name(self, file: io.BufferedRandom, path: str) -> bool:
        """Link an unnamed file on the same disk to its name in the folder; return whether this was possible."""
        target = self.local_path(path)
        if target is None or file.tell() or os.fstat(file.fileno()).st_nlink:
            return False
        file.flush()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            # An absolute path needs no src_dir_fd, but with it Python follows the link to the open file.
            os.link(f"/proc/self/fd/{file.fileno()}", target, src_dir_fd=file.fileno())
        except OSError:  # it is on another disk, or the object exists and must be replaced
            return False
        return True

    def put_linked(self, path: str, file: Path) -> None:
        """Write a file that never changes again. A folder on the same disk gets a hard link instead of a copy."""
        self._require_writable()
        target = self.local_path(path)
        if target is None:
            return self.put(path, file)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(file, target)
        except OSError:  # another disk, or a file system without links
            self.put(path, file)
        return None

    def get(self, path: str) -> bytes:
        """Return the whole object. Raises ObjectNotFoundError."""
        with self._translated(path):
            return bytes(obstore.get(self.objects, path).bytes())

    def get_range(self, path: str, offset: int, size: int) -> bytes:
        """Return `size` bytes of the object from `offset`, which must be below its size. Raises ObjectNotFoundError."""
        with self._translated(path):
            try:
                return bytes(obstore.get_range(self.objects, path, start=offset, length=size))
            except GenericError as error:
                if offset or _NOT_PARTIAL not in str(error):
                    raise
        return self.get(path)[:size]  # some servers ignore the range if it spans the whole object

    def open(self, path: str) -> BinaryIO:
        """Open the object as a stream of bytes that needs little memory. The caller closes it. Raises
        ObjectNotFoundError.
        """
        with self._translated(path):
            if local := self.local_path(path):
                return local.open("rb")
        return cast("BinaryIO", io.BufferedReader(_RangeReader(self, path, self.head(path).size), READ_BUFFER_BYTES))

    def download(self, path: str, target: Path) -> None:
        """Copy the object to the local file `target`. Raises ObjectNotFoundError."""
        with self.open(path) as source, target.open("wb") as copy:
            while chunk := source.read(READ_BUFFER_BYTES):
                copy.write(chunk)

    def head(self, path: str) -> StoredObject:
        """Return size and time of the object. Raises ObjectNotFoundError."""
        with self._translated(path):
            meta = obstore.head(self.objects, path)
        return StoredObject(path, meta["size"], meta["last_modified"])

    def exists(self, path: str) -> bool:
        try:
            self.head(path)
        except ObjectNotFoundError:
            return False
        return True

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        """Yield all objects below the folder `prefix`, at any depth, in no defined order."""
        with self._translated(prefix):
            for page in obstore.list(self.objects, prefix=prefix or None):
                for meta in page:
                    yield StoredObject(meta["path"], meta["size"], meta["last_modified"])

    def delete(self, path: str) -> None:
        """Delete the object. A missing object is not an error, because not all stores report it."""
        self._require_writable()
        try:
            with self._translated(path):
                obstore.delete(self.objects, path)
        except ObjectNotFoundError:
            return

    def delete_unfinished(self, before: float, *, dry_run: bool = False) -> Iterator[StoredObject]:
        """Delete files in a folder that killed puts left before `before` (unix seconds), and yield them.

        `list` does not return these files. A `dry_run` deletes nothing.
        """
        for folder, _, names in os.walk(self.root) if self.root else ():
            for name in filter(_UNFINISHED.fullmatch, names):
                path = Path(folder, name)
                with suppress(FileNotFoundError):  # the put has just finished
                    status = path.stat()
                    if status.st_mtime < before:
                        if not dry_run:
                            self._require_writable()
                            path.unlink()
                        written = datetime.fromtimestamp(status.st_mtime, UTC)
                        yield StoredObject(path.relative_to(self.root or path).as_posix(), status.st_size, written)

    def _require_writable(self) -> None:
        if self.before_write is not None:
            self.before_write()

    @contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise ObjectNotFoundError(f"{self.uri(path)}: {store_message(error, self.url)}") from error
        except (BaseError, OSError, ValueError) as error:
            raise StorageError(f"{self.uri(path)}: {store_message(error, self.url)}") from error


class _UnnamedFile(io.FileIO):
    """A file without a name in `folder`. Errors name the folder instead."""

    def __init__(self, descriptor: int, folder: Path | str) -> None:
        super().__init__(descriptor, "w+b")
        self._folder = str(folder)

    def write(self, content: "Buffer") -> int:
        try:
            return super().write(content)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._folder) from error


class _RangeReader(io.RawIOBase):
    """A file-like view of an object that is fetched range by range.

    A single long response would exceed the client's time limit if its content is processed slowly.
    """

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        self._storage, self._path, self._size = storage, path, size
        self._fetched = 0
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "Buffer") -> int:
        if not self._rest and self._fetched < self._size:
            length = min(RANGE_BYTES, self._size - self._fetched)
            self._rest = memoryview(self._storage.get_range(self._path, self._fetched, length))
            self._fetched += length
        target = memoryview(buffer)
        size = min(len(target), len(self._rest))
        target[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def open_storage(url: str, *, read_only: bool = False) -> Storage:
    """Open the store below `url`: file:///PATH, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://..., or memory:///.

    A local folder is created if it is missing, and must be writable, unless `read_only`. Each memory:/// is a new,
    empty store. No request is sent to remote stores. Raises StorageError, which explains what is wrong with the URL or
    the folder.
    """
    url = url.rstrip("/") if url.count("/") > 3 else url
    scheme = url.partition("://")[0]
    if scheme not in SCHEMES:
        raise StorageError(f"not a storage URL: {url!r}; use one of {', '.join(f'{name}://' for name in SCHEMES)}")
    if scheme == "file":
        return _open_folder(url, read_only)
    try:
        return Storage(url, from_url(url, retry_config=RETRIES))
    except (BaseError, OSError, ValueError) as error:
        raise StorageError(f"cannot open the storage {url}: {store_message(error, url)}") from error


def _open_folder(url: str, read_only: bool) -> Storage:
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
        raise StorageError(f"not the URL of a local folder: {url}; use file:///PATH with an absolute path")
    root = Path(unquote(parts.path))
    if read_only and not root.is_dir():
        raise NoFolderError(
            f"there is no storage folder {root}: {FIRST_COMMANDS}; or check PYPI_ASSETS_HOME, PYPI_ASSETS_STORAGE_URL"
        )
    try:
        if not read_only:
            root.mkdir(parents=True, exist_ok=True)
        objects = LocalStore(root)
    except (BaseError, OSError, ValueError) as error:
        raise StorageError(f"cannot open the storage folder {root}: {store_message(error, url)}") from error
    if not read_only and not os.access(root, os.W_OK | os.X_OK):
        raise StorageError(f"the storage folder {root} is not writable; {WRITABLE}")
    return Storage(url, objects, root)


def _goes_in_parts(content: bytes | Path | BinaryIO) -> bool:
    if isinstance(content, bytes):
        return False
    found = content.stat() if isinstance(content, Path) else os.fstat(content.fileno())
    return found.st_size > PART_BYTES
