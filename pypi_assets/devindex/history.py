"""The history of a development index: an append-only file of operations, and the folder of files it speaks of.

`FOLDER/history.jsonl` holds one operation a line; `FOLDER/files/` the bytes, where they stay for good. A line is
appended under a lock after its bytes are in place, so that any process may change the index while another serves it.
A last line without its line break is what a killed writer left: readers ignore it, the next writer cuts it off.
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
"""How many states of the past are kept for the next requests."""


class History:
    """A folder's history: reads its state, and appends operations to it.

    Every operation returns the index's last serial after it, takes the time it happened at (`at`, aware; now by
    default) and raises OperationRefusedError where it makes no sense. `owner` is who registers new projects.
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
        """The state after every operation of the history; reads only what came since the last call.

        Raises HistoryError where the file holds a line that cannot be replayed.
        """
        with self._mutex:
            try:
                status = self._path.stat()
            except FileNotFoundError:
                self._forget()
                return self._state
            if status.st_ino != self._inode or status.st_size < self._offset:  # another file took its place
                self._forget()
                self._inode = status.st_ino
            if status.st_size > self._offset:
                self._replay()
            return self._state

    def state_at(self, serial: int) -> IndexState:
        """The state after the last operation whose serials are all at most `serial`; it must not be changed.

        Raises HistoryError as `state` does.
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
        """Where the bytes of `file` lie; a wheel's METADATA lies next to them, with METADATA_SUFFIX."""
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
        """Uploads the file at `path`; registers its project and its release where they are new.

        The project is displayed as this upload spells it from then on. A release that equals the version in another
        spelling takes the file, unless `own_release`: so it was before March 2018. With `during_quarantine` a hidden
        project or release takes the file too.
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
        """Takes one file off the index; it stays downloadable at its URL, as after every removal."""
        with self._writing() as history:
            project, version = self._state.locate(filename)
            operation = IndexOperation(OperationKind.REMOVE_FILE, _isoformat(at), project, version, filename)
            return self._apply(history, operation)

    def remove_release(self, project: str, version: str, *, at: datetime | None = None) -> int:
        """Removes a release with all its files, in one event."""
        return self._do(OperationKind.REMOVE_RELEASE, project, version, at=at)

    def remove_project(self, project: str, *, at: datetime | None = None) -> int:
        """Removes a project with all its files, in one event; its name can be registered again."""
        return self._do(OperationKind.REMOVE_PROJECT, project, at=at)

    def yank(self, project: str, version: str, reason: str | None = None, *, at: datetime | None = None) -> int:
        """Yanks a release: a flag on its files, those that come later too."""
        return self._do(OperationKind.YANK, project, version, reason=reason, at=at)

    def unyank(self, project: str, version: str, *, at: datetime | None = None) -> int:
        """Takes the yank of a release back."""
        return self._do(OperationKind.UNYANK, project, version, at=at)

    def quarantine(self, project: str, *, at: datetime | None = None) -> int:
        """Hides a project and all its files until its quarantine is cleared."""
        return self._do(OperationKind.QUARANTINE, project, at=at)

    def unquarantine(self, project: str, *, at: datetime | None = None) -> int:
        """Clears a project's quarantine: its files are shown again."""
        return self._do(OperationKind.UNQUARANTINE, project, at=at)

    def quarantine_release(self, project: str, version: str, *, at: datetime | None = None) -> int:
        """Hides a release and its files until its quarantine is cleared."""
        return self._do(OperationKind.QUARANTINE_RELEASE, project, version, at=at)

    def unquarantine_release(self, project: str, version: str, *, at: datetime | None = None) -> int:
        """Clears a release's quarantine: its files are shown again."""
        return self._do(OperationKind.UNQUARANTINE_RELEASE, project, version, at=at)

    def archive(self, project: str, *, at: datetime | None = None) -> int:
        """Marks a project as archived; this writes no changelog row and moves no serial."""
        return self._do(OperationKind.ARCHIVE, project, at=at)

    def unarchive(self, project: str, *, at: datetime | None = None) -> int:
        """Marks an archived project as active again; this writes no changelog row and moves no serial."""
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
        """The history's file descriptor, open for appending and locked; the state is up to date."""
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
                text = f"{self._path}, line {number}: cannot be replayed ({error}); mend the line or start again"
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
    """A stream whose content is at `target` in the end, whole and synced, or not at all."""
    incoming = target.with_name(".incoming")  # one name will do: there is one writer at a time
    with incoming.open("wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())
    incoming.replace(target)
