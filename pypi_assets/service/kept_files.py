"""Serves the bytes of kept files, each block after it was checked.

If a file's first blocks are corrupt or missing, the caller redirects to the index instead. If a later block is, the
answer ends before its length is reached, so no client takes it for complete, and the next request is redirected. Once
the file was fetched again, its new object is served.
"""

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.reads.kept_files import KeptObject
from pypi_assets.catalog.reads.kept_lists import WrittenFile, find_kept
from pypi_assets.keeping.objects import CorruptFileError, read_verified
from pypi_assets.service.responses import Lasting, StreamedAnswer, WholeAnswer
from pypi_assets.storage.store import Storage, StorageError

_log = logging.getLogger(__name__)
_MEDIA_TYPE = "application/octet-stream"
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


class KeptBytes:
    """Serves kept files of one service. `corrupt` has the objects that were found corrupt since it started."""

    def __init__(self, open_storage: Callable[[], Storage]) -> None:
        self.corrupt: set[KeptObject] = set()
        self._open = open_storage
        self._storage: Storage | None = None
        self._opening = threading.Lock()

    def answer(
        self, catalog: Catalog | None, sha256: str | None, headers: Mapping[str, str]
    ) -> WholeAnswer | StreamedAnswer | None:
        """Return the bytes of the file, or the range that `headers` request; None if its bytes are not kept."""
        if catalog is None or sha256 is None:
            return None
        found = _find(catalog, sha256)
        if found is None or found.is_corrupt or found.object in self.corrupt:
            return None
        return self._bytes(catalog, found, headers)

    def _bytes(
        self, catalog: Catalog, found: WrittenFile, headers: Mapping[str, str]
    ) -> WholeAnswer | StreamedAnswer | None:
        one = found.object
        tag = f'"{one.sha256}"'
        shown = [("Accept-Ranges", "bytes")]
        answer = StreamedAnswer(
            iter(()), _MEDIA_TYPE, lasting=Lasting.NO_STORE, headers=shown, tag=one.sha256, length=one.size
        )
        if answer.is_known(headers.get("if-none-match"), None):
            return answer  # whose bytes need not be read
        start, end = 0, one.size
        if headers.get("if-range", tag) == tag and (wanted := _range(headers.get("range", ""), one.size)) is not None:
            start, end = wanted
            if start >= end:
                unsatisfied = [("ETag", tag), *shown, ("Content-Range", f"bytes */{one.size}")]
                return WholeAnswer(b"", _MEDIA_TYPE, 416, lasting=Lasting.NO_STORE, headers=unsatisfied)
            shown.append(("Content-Range", f"bytes {start}-{end - 1}/{one.size}"))
            answer.status, answer.length = 206, end - start
        chunks = read_verified(self._opened(), one, found.blocks, start, end)
        try:
            first = next(chunks, b"")
        except (CorruptFileError, StorageError) as error:
            self._report(catalog, found, error)
            return None
        answer.chunks = self._rest(catalog, found, chain([first], chunks))
        return answer

    def _rest(self, catalog: Catalog, found: WrittenFile, chunks: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from chunks
        except (CorruptFileError, StorageError) as error:
            self._report(catalog, found, error)
            raise

    def _report(self, catalog: Catalog, found: WrittenFile, error: Exception) -> None:
        """Log the error, and note a corrupt object. An object that was evicted while it was read is not corrupt."""
        if isinstance(error, CorruptFileError):
            if _find(catalog, found.object.sha256) != found:
                return
            self.corrupt.add(found.object)
        _log.error("a kept file is not served: %s; run `pypi-assets files verify`", error)

    def _opened(self) -> Storage:
        with self._opening:
            if self._storage is None:
                self._storage = self._open()
            return self._storage


def _find(catalog: Catalog, sha256: str) -> WrittenFile | None:
    try:
        with catalog.read() as connection:
            return find_kept(connection, sha256)
    except (CatalogError, SQLAlchemyError):  # published files are served without the catalog
        return None


def _range(header: str, size: int) -> tuple[int, int] | None:
    """Return the start and end of a requested range; None if all bytes are to be sent, as for several ranges.

    The start is not before the end if the range has no bytes of the file.
    """
    match = _RANGE.fullmatch(header.strip())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        return max(size - int(match[2]), 0), size if int(match[2]) else 0
    start = int(match[1])
    if match[2] and int(match[2]) < start:
        return None
    return start, min(int(match[2]) + 1, size) if match[2] else size
