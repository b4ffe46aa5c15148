"""The history of a development index: an append-only file of operations, and the folder of the uploaded files.

`FOLDER/history.jsonl` has one operation a line. `FOLDER/files/` has the files, which are never deleted. A line is
appended under a lock after its file is in place, so any process can change the index while another process serves it. A
last line without a line break comes from a killed writer: readers ignore it, and the next writer truncates it.
"""

import fcntl
import os
import shutil
import threading
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import orjson

from pypi_assets.devindex.devindex_errors import HistoryError, OperationRefusedError
from pypi_assets.devindex.index_state import IndexOperation, IndexState, OperationKind
from pypi_assets.devindex.uploads import UploadedFile, read_upload

METADATA_SUFFIX = ".metadata"

_KEPT_STATES = 4
"""The number of earlier states that are cached for the next requests."""


class History:
    """A folder's history: reads its state, and appends operations to it.

    Every operation returns the index's last serial after it, and takes its time (`at`, an aware datetime; default:
    now). Invalid operations raise OperationRefusedError. `owner` is the owner of new projects.
    """

    def __init__(self, folder: Path | str, *, owner: str = "devindex") -> None:
        self.folder = Path(folder)
        self.owner = owner
        self._path = self.folder / "history.jsonl"
        self._mutex = threading.RLock()
        self._state = IndexState()
        self._earlier: dict[int, IndexState] = {}
        self._inode = self._offset = 0
        self._serials: list[int] = []  # after each operation

    def state(self) -> IndexState:
        """Return the state after all operations of the history; reads only the lines since the last call.

        Raises HistoryError if the file has a line that cannot be replayed.
        """
        with self._mutex:
            try:
                status = self._path.stat()
            except FileNotFoundError:
                self._forget()
                return self._state
            if status.st_ino != self._inode or status.st_size < self._offset:  # another file has replaced it
                self._forget()
                self._inode = status.st_ino
            if status.st_size > self._offset:
                self._replay()
            return self._state

    def state_at(self, serial: int) -> IndexState:
        """Return the state after the last operation with no serial above `serial`; do not change it.

        Raises HistoryError like `state`.
        """
        with self._mutex:
            state = self.state()
            if serial >= (state.last_serial or 0):
                return state
            operations = bisect_right(self._serials, serial)
            if operations not in self._earlier:
                if len(self._earlier) == _KEPT_STATES:
                    del self._earlier[next(iter(self._earlier))]
                self._earlier[operations] = self._replay_first(operations)
            return self._earlier[operations]

    def file_path(self, file: UploadedFile) -> Path:
        """Return the path of a file. A wheel's METADATA is next to it, with METADATA_SUFFIX."""
        return self.folder / "files" / file.path

    def add(
        self,
        path: Path | str,
        *,
        project: str | None = None,
        version: str | None = None,
        own_release: bool = False,
        during_quarantine: bool = False,
        at: datetime | None = None,
    ) -> int:
        """Upload the file at `path`; register its project and its release if they are new.

        From then on, the project is displayed in the spelling of this upload. If there is a release with another
        spelling of the version, it receives the file. With `own_release`, a new release is created instead, as the
        server did before March 2018. With `during_quarantine`, a hidden project or release also accepts the file.
        """
        path, moment = Path(path), _isoformat(at)
        upload = read_upload(path, project=project, version=version, uploaded_at=moment)
        operation = IndexOperation(
            OperationKind.ADD,
            moment,
            upload.project,
            version=upload.version,
            owner=self.owner,
            file=upload.file,
            own_release=own_release,
            during_quarantine=during_quarantine,
        )
        with self._writing() as history:
            self._state.apply(operation)
            target = self.file_path(upload.file)
            target.parent.mkdir(parents=True, exist_ok=True)
            _copy(path, target)
            if upload.core_metadata is not None:
                _write(target.with_name(target.name + METADATA_SUFFIX), upload.core_metadata)
            self._append(history, operation)
            return self._state.last_serial or 0

    def remove_file(self, filename: str, *, at: datetime | None = None) -> int:
        """Remove a file from the index. As after every removal, it can still be downloaded from its URL."""
        with self._writing() as history:
            project, version = self._state.locate(filename)
            operation = IndexOperation(OperationKind.REMOVE_FILE, _isoformat(at), project, version, filename)
            return self._apply(history, operation)

    def remove_release(self, project: str, version: str, *, at: datetime | None = None) -> int:
        """Remove a release with all its files, in one event."""
        return self._do(OperationKind.REMOVE_RELEASE, project, version, at=at)

    def remove_project(self, project: str, *, at: datetime | None = None) -> int:
        """Remove a project with all its files, in one event. Its name can be registered again."""
        return self._do(OperationKind.REMOVE_PROJECT, project, at=at)

    def yank(self, project: str, version: str, reason: str | None = None, *, at: datetime | None = None) -> int:
        """Yank a release. This is a flag on all its files, including later ones."""
        return self._do(OperationKind.YANK, project, version, reason=reason, at=at)

    def unyank(self, project: str, version: str, *, at: datetime | None = None) -> int:
        """Undo the yank of a release."""
        return self._do(OperationKind.UNYANK, project, version, at=at)

    def quarantine(self, project: str, *, at: datetime | None = None) -> int:
        """Hide a project and all its files until its quarantine is cleared."""
        return self._do(OperationKind.QUARANTINE, project, at=at)

    def unquarantine(self, project: str, *, at: datetime | None = None) -> int:
        """Clear a project's quarantine: its files are shown again."""
        return self._do(OperationKind.UNQUARANTINE, project, at=at)

    def quarantine_release(self, project: str, version: str, *, at: datetime | None = None) -> int:
        """Hide a release and its files until its quarantine is cleared."""
        return self._do(OperationKind.QUARANTINE_RELEASE, project, version, at=at)

    def unquarantine_release(self, project: str, version: str, *, at: datetime | None = None) -> int:
        """Clear a release's quarantine: its files are shown again."""
        return self._do(OperationKind.UNQUARANTINE_RELEASE, project, version, at=at)

    def archive(self, project: str, *, at: datetime | None = None) -> int:
        """Mark a project as archived. This adds no changelog row, and serials do not change."""
        return self._do(OperationKind.ARCHIVE, project, at=at)

    def unarchive(self, project: str, *, at: datetime | None = None) -> int:
        """Mark an archived project as active again. This adds no changelog row, and serials do not change."""
        return self._do(OperationKind.UNARCHIVE, project, at=at)

    def _do(
        self,
        kind: OperationKind,
        project: str,
        version: str | None = None,
        *,
        reason: str | None = None,
        at: datetime | None = None,
    ) -> int:
        with self._writing() as history:
            return self._apply(history, IndexOperation(kind, _isoformat(at), project, version, reason=reason))

    def _apply(self, history: int, operation: IndexOperation) -> int:
        self._state.apply(operation)
        self._append(history, operation)
        return self._state.last_serial or 0

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """Open and lock the history for appending, update the state, and yield the file descriptor."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._mutex, self._path.open("ab+") as stream:
            history = stream.fileno()
            fcntl.flock(history, fcntl.LOCK_EX)
            self.state()
            if os.fstat(history).st_size > self._offset:
                os.ftruncate(history, self._offset)
            try:
                yield history
            except OperationRefusedError:
                raise
            except BaseException:
                self._forget()  # the operation is in the state but perhaps not in the file: replay on the next use
                raise

    def _append(self, history: int, operation: IndexOperation) -> None:
        rest = memoryview(orjson.dumps(operation.as_record(), option=orjson.OPT_APPEND_NEWLINE))
        self._offset += len(rest)
        while rest:
            rest = rest[os.write(history, rest) :]
        os.fsync(history)
        self._serials.append(self._state.last_serial or 0)

    def _forget(self) -> None:
        self._state = IndexState()
        self._earlier = {}
        self._inode = self._offset = 0
        self._serials = []

    def _replay(self) -> None:
        with self._path.open("rb") as stream:
            stream.seek(self._offset)
            new = stream.read()
        for line in new[: new.rfind(b"\n") + 1].splitlines(keepends=True):
            try:
                self._state.apply(_operation(line))
            except (OperationRefusedError, KeyError, TypeError, ValueError) as error:
                number = len(self._serials) + 1
                text = f"{self._path}, line {number}: cannot be replayed ({error}); fix the line, or delete the folder"
                self._forget()
                raise HistoryError(text) from error
            self._serials.append(self._state.last_serial or 0)
            self._offset += len(line)

    def _replay_first(self, operations: int) -> IndexState:
        state = IndexState()
        with self._path.open("rb") as stream:
            for line in islice(stream, operations):
                state.apply(_operation(line))
        return state


def _operation(line: bytes) -> IndexOperation:
    return IndexOperation.from_record(orjson.loads(line))


def _isoformat(at: datetime | None) -> str:
    at = at or datetime.now(UTC)
    if at.tzinfo is None:
        raise ValueError(f"{at} has no time zone; give an aware datetime")
    return at.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as original, _replacing(target) as copy:
        shutil.copyfileobj(original, copy)


def _write(target: Path, content: bytes) -> None:
    with _replacing(target) as stream:
        stream.write(content)


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """Yield a stream whose content replaces `target` at the end, completely and synced, or not at all."""
    incoming = target.with_name(".incoming")  # there is only one writer at a time, so one name is enough
    with incoming.open("wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())
    incoming.replace(target)
