"""Deletes dumps that are no longer needed: superseded ones, and what stopped attempts have left.

A dump is dropped from the catalog first, so that nothing finds it or commits it, then its manifest is deleted, then
its files: wherever this is stopped, what is left of it is no dump, and goes with the next clean-up.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.publications.dump_files import DumpKind
from pypi_assets.catalog.publications.dump_registry import Dump, DumpState, drop_unused_dumps, files_of_dumps
from pypi_assets.dumps.cover import cover, covered_since
from pypi_assets.dumps.dump_manifest import read_manifest
from pypi_assets.dumps.dump_paths import DUMPS, MANIFEST_NAME, dump_path, manifest_path
from pypi_assets.dumps.dump_writer import settle
from pypi_assets.dumps.published_dumps import publish_dumps
from pypi_assets.storage.store import Storage, StoredObject

ABANDONED_AFTER_S = 24 * 3600.0
"""How old, in seconds, what was never committed must be before it is deleted: no attempt takes so long."""


class Reason(StrEnum):
    """Why something is deleted."""

    SUPERSEDED = "superseded"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class Removal:
    """`files` of the folder `path` that were deleted, or would be; `size` in bytes."""

    path: str
    reason: Reason
    files: int
    size: int


def clean_dumps(
    catalog: Catalog, storage: Storage, named: Collection[str], since: float, *, dry_run: bool = False
) -> Iterator[Removal]:
    """Deletes what no reader can be at, and yields it.

    That are dumps that have not been in the cover since `since` (unix seconds), nor since a lease that is held was
    taken, unless their directory is `named`; attempts that are older than a day; and files that no manifest names and
    that are older than a day. A full dump that is open stays, for as long as none that began later is committed.

    Raises CatalogError where catalog and storage do not belong together; nothing is deleted then.
    """
    in_use = cover(catalog).directories
    listed = by_directory(storage, DUMPS)
    _check_that_they_belong_together(in_use, listed, storage)
    if not dry_run:
        settle(catalog, storage)
        publish_dumps(catalog, storage)  # which a kill after a commit has left out
    old = catalog.clock() - ABANDONED_AFTER_S

    def unused(dumps: Sequence[Dump], since: float) -> list[Dump]:
        return [*_superseded(dumps, named, since), *_abandoned(dumps, old)]

    dropped = {dump.directory for dump in drop_unused_dumps(catalog, since, unused, dry_run=dry_run)}
    known = files_of_dumps(catalog)
    for directory, found in listed.items():
        is_known, names = directory in known, known.get(directory)
        has_manifest = any(stored.path == manifest_path(directory) for stored in found)
        if directory in dropped or (is_known and names is None):
            reason = Reason.SUPERSEDED if has_manifest else Reason.ABANDONED
        elif has_manifest and not is_known:  # of another catalog, or `pypi-assets dump restore` is to be run
            continue
        else:
            reason = Reason.ABANDONED
            found = _left_over(storage, directory, found, names or set(), old)
        if found:
            yield remove(storage, dump_path(directory), found, reason, dry_run=dry_run)


def remove(
    storage: Storage, path: str, found: Collection[StoredObject], reason: Reason, *, dry_run: bool = False
) -> Removal:
    """Deletes the objects `found` in the folder `path`, its manifest before all others."""
    if not dry_run:
        for stored in sorted(found, key=lambda stored: not stored.path.endswith(f"/{MANIFEST_NAME}")):
            storage.delete(stored.path)
        if folder := storage.local_path(path):
            with suppress(OSError):  # not empty
                folder.rmdir()
    return Removal(path, reason, len(found), sum(stored.size for stored in found))


def by_directory(storage: Storage, path: str) -> dict[str, list[StoredObject]]:
    """The objects in each directory of the folder `path`, by the directory's name."""
    found: dict[str, list[StoredObject]] = {}
    for stored in sorted(storage.list(path), key=lambda stored: stored.path):
        found.setdefault(stored.path.removeprefix(f"{path}/").partition("/")[0], []).append(stored)
    return found


def is_older(stored: StoredObject, than: float) -> bool:
    """Whether the object was written before `than`, in unix seconds."""
    return stored.last_modified.timestamp() < than


def _superseded(dumps: Sequence[Dump], named: Collection[str], since: float) -> list[Dump]:
    committed = [dump for dump in dumps if dump.state == DumpState.COMMITTED]
    in_use = covered_since(committed, since)
    return [dump for dump in committed if dump.directory not in in_use and dump.directory not in named]


def _abandoned(dumps: Sequence[Dump], old: float) -> list[Dump]:
    full = [dump for dump in dumps if dump.kind == DumpKind.FULL]
    newest = max((dump.sequence for dump in full if dump.state == DumpState.COMMITTED), default=0)
    return [
        dump
        for dump in dumps
        if dump.state == DumpState.OPEN
        and dump.opened_at < old
        and (dump.kind != DumpKind.FULL or dump.sequence < newest)
    ]


def _left_over(
    storage: Storage, directory: str, found: Sequence[StoredObject], names: set[str], old: float
) -> list[StoredObject]:
    """The old ones of the objects in the folder of a dump that neither catalog nor manifest name."""
    start = f"{dump_path(directory)}/"
    kept = {MANIFEST_NAME, *names}
    rest = [one for one in found if one.path.removeprefix(start) not in kept and is_older(one, old)]
    if rest and any(one.path == manifest_path(directory) for one in found):
        kept.update(file.name for file in read_manifest(storage, directory).files)  # which is the truth
    return [one for one in rest if one.path.removeprefix(start) not in kept]


def _check_that_they_belong_together(
    in_use: Sequence[str], listed: Mapping[str, Sequence[StoredObject]], storage: Storage
) -> None:
    whole = {name for name, found in listed.items() if any(one.path == manifest_path(name) for one in found)}
    if missing := [directory for directory in in_use if directory not in whole]:
        what = f"dump {missing[0]}, which is in use, is not there"
    elif whole and not in_use:
        what = f"the catalog knows none of the {len(whole)} dumps there"
    else:
        return
    raise CatalogError(
        f"{storage.uri(DUMPS)} seems to belong to another catalog: {what}. Nothing was deleted; check"
        " PYPI_ASSETS_DATABASE_URL, PYPI_ASSETS_STORAGE_URL and PYPI_ASSETS_HOME, or run `pypi-assets dump restore`"
    )
