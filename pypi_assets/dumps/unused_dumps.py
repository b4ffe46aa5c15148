"""Delete superseded dumps and the remains of interrupted attempts.

A dump is first dropped from the catalog, so that no process finds or commits it. Then its manifest is deleted, and then
its files. If this is interrupted, the remaining files are not a dump, and the next clean-up deletes them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from pypi_assets.catalog.coordination.leases import Deadlines
from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.publications.dump_columns import DumpKind
from pypi_assets.catalog.publications.dump_registry import Dump, DumpState, drop_unused_dumps, files_of_dumps
from pypi_assets.dumps.cover import cover, covered_since
from pypi_assets.dumps.dump_manifest import DUMPS, MANIFEST_NAME, dump_path, manifest_path, read_manifest
from pypi_assets.dumps.dump_writer import commit_pending_dumps
from pypi_assets.dumps.published_dumps import publish_dumps
from pypi_assets.storage.store import Storage, StoredObject
from pypi_assets.storage.sweeping import DeletionReason, Removal, Waste, by_directory, is_older, sweep_directories


def clean_dumps(
    catalog: Catalog, storage: Storage, deadlines: Deadlines, named: Collection[str], *, dry_run: bool = False
) -> Iterator[Removal]:
    """Delete dumps and files that no reader can use, and yield the deletions.

    These are dumps that have not been in the cover since `deadlines.since`, unless their directory is `named`; attempts
    that are older than a day; and orphaned files that are older than a day. An open full dump is kept until a full dump
    that began later is committed.

    Raises CatalogError if catalog and storage do not belong together. Nothing is deleted then.
    """
    in_use = cover(catalog).directories
    listed = by_directory(storage, DUMPS)
    _check_that_they_belong_together(in_use, listed, storage)
    if not dry_run:
        commit_pending_dumps(catalog, storage)
        publish_dumps(catalog, storage)  # a process can be killed between its commit and this

    def unused(dumps: Sequence[Dump], since: float) -> list[Dump]:
        return [*_superseded(dumps, named, since), *_abandoned(dumps, deadlines.old)]

    dropped = {dump.directory for dump in drop_unused_dumps(catalog, deadlines.since, unused, dry_run=dry_run)}
    known = files_of_dumps(catalog)

    def unnamed(directory: str, found: Sequence[StoredObject]) -> Waste | None:
        is_known, names = directory in known, known.get(directory)
        has_manifest = any(stored.path == manifest_path(directory) for stored in found)
        if directory in dropped or (is_known and names is None):
            return DeletionReason.SUPERSEDED if has_manifest else DeletionReason.ABANDONED, found
        if has_manifest and not is_known:  # it is from another catalog, or `pypi-assets admin restore` must be run
            return None
        left_over = _left_over(storage, directory, found, names or set(), deadlines.old)
        return (DeletionReason.ABANDONED, left_over) if left_over else None

    yield from sweep_directories(storage, DUMPS, listed, unnamed, dry_run=dry_run)


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
    """Return the old objects in a dump's folder that neither the catalog nor the manifest names."""
    start = f"{dump_path(directory)}/"
    kept = {MANIFEST_NAME, *names}
    rest = [one for one in found if one.path.removeprefix(start) not in kept and is_older(one, old)]
    if rest and any(one.path == manifest_path(directory) for one in found):
        kept.update(file.name for file in read_manifest(storage, directory).files)  # the manifest is authoritative
    return [one for one in rest if one.path.removeprefix(start) not in kept]


def _check_that_they_belong_together(
    in_use: Sequence[str], listed: Mapping[str, Sequence[StoredObject]], storage: Storage
) -> None:
    whole = {name for name, found in listed.items() if any(one.path == manifest_path(name) for one in found)}
    if missing := [directory for directory in in_use if directory not in whole]:
        what = f"dump {missing[0]}, which is in use, is missing"
    elif whole and not in_use:
        what = f"the catalog knows none of the {len(whole)} dumps there"
    else:
        return
    raise CatalogError(
        f"{storage.uri(DUMPS)} seems to belong to another catalog: {what}. Nothing was deleted; check"
        " PYPI_ASSETS_DATABASE_URL, PYPI_ASSETS_STORAGE_URL and PYPI_ASSETS_HOME, or run `pypi-assets admin restore`"
    )
