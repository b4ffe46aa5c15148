"""Keeps files for scopes: reserves room, writes their objects, evicts and forgets files, and deletes their objects.

`catalog/reads/kept_files.py` decides which files have room, in which order files are evicted, and when an object may be
deleted. An object is deleted before its row is removed, so a killed process leaves nothing that no process finds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from pypi_assets.catalog.coordination.claims import new_worker
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.forgotten_files import forget, note_bytes_deleted, still_to_delete
from pypi_assets.catalog.reads.kept_files import (
    FileToKeep,
    KeptObject,
    abandon,
    doom,
    doomed,
    drop_deleted,
    enforce_budgets,
    finish,
    lock_kept_files,
    reserve,
)
from pypi_assets.keeping.objects import delete_file, delete_object
from pypi_assets.storage.store import Storage

_ROUNDS = 8
"""Between making room and using it, another process may take the room. After so many rounds, the file is not kept."""


@dataclass(frozen=True, slots=True)
class FileKeeper:
    """Keeps files of one catalog in its storage.

    The bytes of a reserved file are written by any thread, or never, as after a kill:

        keeper = FileKeeper(catalog, storage)
        reserved = keeper.reserve([FileToKeep(7, sha256, size)])
        received.store(reserved[7])
        keeper.finish({reserved[7]: received.blocks})
    """

    catalog: Catalog
    storage: Storage

    def reserve(self, files: Sequence[FileToKeep]) -> dict[int, KeptObject]:
        """Reserve room for files, and evict other files for it. Return the objects to write, by distribution id.

        Files that are missing in the result are kept already, have no room, or must not be kept.
        """
        worker, new, left = new_worker(), dict[int, KeptObject](), list(files)
        for _ in range(_ROUNDS):
            if not left:
                break
            work = partial(reserve, files=left, worker=worker, now=self.catalog.clock())
            reserved = self.catalog.transact(work)
            new |= reserved.new
            left = reserved.left
            self.delete(reserved.doomed)
        return new

    def finish(self, written: Mapping[KeptObject, bytes]) -> list[KeptObject]:
        """Record that objects are written, with the hashes of their blocks. Return the recorded objects.

        An object that was forgotten or taken over meanwhile is deleted.
        """
        if not written:
            return []
        kept = self.catalog.transact(partial(finish, written=written, now=self.catalog.clock()))
        for one in written.keys() - set(kept):
            delete_object(self.storage, one)
        return kept

    def abandon(self, objects: Iterable[KeptObject]) -> None:
        """Give up files that were reserved, but could not be received."""
        if objects := list(objects):
            self.delete(self.catalog.transact(partial(abandon, objects=objects)))

    def forget(self, sha256: str, reason: str) -> bool:
        """Delete the bytes of a file for good, and record that it must never be kept again.

        Return False if that was recorded before. The bytes are deleted in any case.
        """

        def record(connection: Connection) -> list[str]:
            lock_kept_files(connection)
            new = forget(connection, [sha256], reason, self.catalog.clock())
            doom(connection, [sha256])
            return new

        new = self.catalog.transact(record)
        self.delete_doomed()
        return bool(new)

    def enforce_budgets(self, scope_ids: Iterable[int] | None = None) -> None:
        """Evict files of scopes (None: of all scopes) that have more bytes than their budgets."""
        self.delete(self.catalog.transact(partial(enforce_budgets, scope_ids=scope_ids)))

    def delete_doomed(self) -> list[KeptObject]:
        """Delete and return the objects that are to be deleted: those of forgotten files, and evicted ones after a
        kill.
        """
        with self.catalog.read() as connection:
            objects = doomed(connection)
            forgotten = still_to_delete(connection)
        self.delete(objects)
        for sha256 in forgotten:
            delete_file(self.storage, sha256)
        if forgotten:
            self.catalog.transact(partial(note_bytes_deleted, sha256s=forgotten, now=self.catalog.clock()))
        return objects

    def delete(self, objects: Sequence[KeptObject]) -> None:
        """Delete doomed objects, and then remove their rows."""
        for one in objects:
            delete_object(self.storage, one)
        if objects:
            self.catalog.transact(partial(drop_deleted, objects=objects))
