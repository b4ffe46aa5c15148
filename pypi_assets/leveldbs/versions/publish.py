"""Builds the next version of a dataset from the cover and publishes it, with its input list written last.

A version is built on the newest version if the cover has only grown since then, and not by much. Otherwise it is built
from scratch, and its manifest has the reason. Tables of the previous version are not copied: the new manifest names
them in place. Only one process at a time publishes a dataset.
"""

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path, PurePosixPath

from pypi_assets.catalog.coordination.leases import Lease
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.allocated_names import Build, allocate_version, begin_build, mark_published
from pypi_assets.catalog.publications.dump_columns import DumpKind
from pypi_assets.catalog.publications.dump_registry import Dump, committed_dumps
from pypi_assets.dumps.cover import Cover, cover_of
from pypi_assets.dumps.dump_manifest import DumpManifest, file_path, read_manifest
from pypi_assets.dumps.held_dumps import HeldDumps
from pypi_assets.dumps.later_rows import later_rows, read_later_rows
from pypi_assets.leveldbs.build.builder import Builder, Loaded
from pypi_assets.leveldbs.build.loading import MEMORY_BYTES, PARTS, is_worth_loading, load_runs, reduce_dump
from pypi_assets.leveldbs.build.row_decoder import decoded_rows
from pypi_assets.leveldbs.build.sorted_runs import Runs
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.registry import require_dataset
from pypi_assets.leveldbs.format.leveldb_binding import Database, require_binding
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, LeveldbError, NotBuiltYetError
from pypi_assets.leveldbs.format.open_leveldb import (
    WRITE_BUFFER_BYTES,
    flush,
    flush_and_merge,
    is_merge_due,
    open_leveldb,
)
from pypi_assets.leveldbs.format.records import Meta, read_meta
from pypi_assets.leveldbs.versions.build_need import (
    BuildNeed,
    Need,
    Newest,
    build_need,
    is_rebuild_cheaper,
    newest_version,
)
from pypi_assets.leveldbs.versions.input_lists import (
    MANIFEST_NAME,
    InputList,
    leveldb_path,
    published_versions,
    write_input_list,
)
from pypi_assets.leveldbs.versions.leveldb_manifest import (
    LeveldbFile,
    LeveldbManifest,
    PublishedVersion,
    check_sizes,
    file_sha256,
    publish_leveldbs,
    read_published,
)
from pypi_assets.leveldbs.versions.private_copy import copy_published, keep_published, private_folder, private_parent
from pypi_assets.leveldbs.versions.shared_reading import SharedReading
from pypi_assets.storage.store import Storage

_LOADED_TABLES = 64
_NOT_PUBLISHED = frozenset({"LOG", "LOG.old", "LOCK"})

Progress = Callable[[int], None]
ManifestOf = Callable[[str], DumpManifest]
"""Reads the manifest of a dump by its directory, once for each build."""


class NoCoverError(LeveldbError):
    """There is no committed full dump to build from."""


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The result of a request for a version.

    If `published` is False, nothing was written, `reason` explains why, and the other fields describe the existing
    version. `rows` is the number of dump rows applied, and `written` the number of records put or deleted.
    """

    dataset: str
    version: int
    published: bool
    reason: str
    serial: int
    counts: Mapping[str, int]
    content_hash: str
    base_version: int | None
    rebuilt_because: str | None
    rows: int
    written: int


@dataclass(frozen=True, slots=True)
class _Plan:
    """The cover, the version to build on (or the reason why there is none), and the dumps of the cover to apply."""

    cover: Cover
    held: HeldDumps
    base: PublishedVersion | None
    rebuilt_because: str | None
    dumps: tuple[Dump, ...]

    def from_scratch(self, because: str) -> "_Plan":
        return replace(self, base=None, rebuilt_because=because, dumps=self.cover.dumps)

    def with_cover(self, cover: Cover) -> "_Plan":
        """Return the plan to build from scratch from another cover."""
        return replace(self, cover=cover, held=HeldDumps.of(cover.dumps), dumps=cover.dumps)


@dataclass(frozen=True, slots=True)
class _BuildAttempt:
    """One attempt to build a version: its private `folder`, and its limits.

    `renewed` renews the lease in time. `is_from_scratch` checks whether another dataset would be built from scratch
    from a cover, with the same options.
    """

    dataset: Dataset
    storage: Storage
    manifest_of: ManifestOf
    build: Build
    folder: Path
    cache_dir: Path | None
    write_buffer_bytes: int
    memory_bytes: int
    held: Lease
    shared: SharedReading
    is_from_scratch: Callable[[Cover, Dataset], bool]
    renewed: Progress
    flushed: Progress
    look: Callable[[Database], object] | None

    @property
    def path(self) -> Path:
        """The folder in which the LevelDB is built."""
        return self.folder / "leveldb"

    @property
    def parent(self) -> Path:
        """The parent of private folders."""
        return private_parent(self.storage, self.cache_dir)


@dataclass(frozen=True, slots=True)
class _Built:
    """The result of building by a plan, with the LevelDB's record about itself."""

    plan: _Plan
    builder: Builder
    meta: Meta


def build_version(
    dataset_name: str,
    *,
    storage: Storage,
    catalog: Catalog,
    version: int | None = None,
    force: bool = False,
    from_scratch: bool = False,
    work_dir: Path | None = None,
    write_buffer_bytes: int = WRITE_BUFFER_BYTES,
    memory_bytes: int = MEMORY_BYTES,
    progress: Progress | None = None,
    look: Callable[[Database], object] | None = None,
    shared: SharedReading | None = None,
) -> BuildResult:
    """Build and publish `version`, an allocated number, or the next one, from the current cover.

    Nothing is done if the version is already published. Without `force`, nothing is done either if a newer version is
    published, or if the newest version has the whole cover. The work is done in the storage's folder, or below
    `work_dir` for a remote store, in about `memory_bytes` of memory. `work_dir` is also the cache of a remote store.
    `progress` receives the number of rows applied. `look` receives the finished LevelDB before it is closed and
    published. With `shared`, the build shares the reading of dumps with the builds of other datasets.

    Raises NoCoverError without a full dump, NotBuiltYetError if dumps of the cover lack columns that the dataset needs,
    LeaseTakenError if another process is publishing this dataset, DumpDamagedError if a dump of the cover is corrupt,
    and MissingBindingError if LevelDB cannot be loaded.
    """
    dataset = require_dataset(dataset_name)
    manifest_of = cache(partial(read_manifest, storage))
    plan_of = partial(
        _plan_unless_held, storage, catalog, manifest_of=manifest_of, force=force, from_scratch=from_scratch
    )
    with (
        nullcontext(shared) if shared else SharedReading([dataset_name]) as reading,
        reading.publishing(catalog, dataset) as held,
    ):
        plan = plan_of(dataset, version)
        if isinstance(plan, BuildResult):
            return plan
        if plan.base is None and (reduced := reading.cover_of(dataset)):
            plan = plan.with_cover(reduced)
        require_binding()
        number = allocate_version(catalog, plan.cover.serial) if version is None else version
        build = begin_build(catalog, dataset.name, number)
        with private_folder(private_parent(storage, work_dir)) as folder:
            attempt = _BuildAttempt(
                dataset=dataset,
                storage=storage,
                manifest_of=manifest_of,
                build=build,
                folder=folder,
                cache_dir=work_dir,
                write_buffer_bytes=write_buffer_bytes,
                memory_bytes=memory_bytes,
                held=held,
                shared=reading,
                is_from_scratch=partial(_is_from_scratch, plan_of),
                renewed=reading.renewing(held),
                flushed=reading.renewing(held, progress),
                look=look,
            )
            built = _build(attempt, plan)
            manifest = _publish(attempt, built)
        mark_published(catalog, build, manifest.serial, manifest.base_version)
        publish_leveldbs(storage)
        return _result(manifest, built.builder)


def _plan_unless_held(
    storage: Storage,
    catalog: Catalog,
    dataset: Dataset,
    version: int | None,
    *,
    manifest_of: ManifestOf,
    force: bool,
    from_scratch: bool,
) -> _Plan | BuildResult:
    """Return the plan of the build, or the result if none is needed. Raises the errors of `build_version`."""
    cover = cover_of(committed_dumps(catalog))
    if not cover.dumps:
        raise NoCoverError("there is no full dump to build from: run `pypi-assets dump full` first")
    published = published_versions(storage, dataset.name)
    if version is not None and version in published:
        standing = read_published(storage, dataset.name, version).manifest
        return _result(standing, None, f"version {version} is already published")
    newest = _newest_whole(storage, dataset.name, published)
    need = _require_buildable(build_need(dataset, newest.manifest, cover, newest.problems))
    if newest.manifest is not None and not (force or from_scratch) and need.need != Need.OTHER_FORMAT:
        standing = newest.manifest
        if version is not None and version < standing.version:
            return _result(standing, None, f"version {standing.version} is newer than version {version}")
        if not need.is_due:
            return _result(standing, None, need.reason)
    plan = _plan(newest, need, cover)
    if from_scratch:
        plan = plan.from_scratch("it was requested")
    elif plan.base is not None and (cheaper := _reason_to_rebuild(dataset, manifest_of, plan)):
        plan = plan.from_scratch(cheaper)
    elif version is not None and plan.base is not None and version < plan.base.manifest.version:
        plan = plan.from_scratch(f"{plan.base.name} is newer")
    return plan


def _is_from_scratch(
    plan_of: Callable[[Dataset, int | None], _Plan | BuildResult], cover: Cover, dataset: Dataset
) -> bool:
    """Check whether a dataset would be built from scratch from `cover`. Raises the errors of `build_version`."""
    plan = plan_of(dataset, None)
    return isinstance(plan, _Plan) and plan.base is None and plan.cover == cover


def apply_dumps(builder: Builder, storage: Storage, manifests: Sequence[DumpManifest]) -> None:
    """Apply all files of the dumps, in order. A full dump must come first, into an empty LevelDB."""
    for manifest in manifests:
        for file in manifest.files:
            rows = decoded_rows(builder.dataset.columns, storage, manifest.directory, file)
            name = storage.uri(file_path(manifest.directory, file.name))
            builder.apply(rows, name, fresh=manifest.kind == DumpKind.FULL)


def _newest_whole(storage: Storage, dataset: str, versions: Sequence[int]) -> Newest:
    """Return the newest version, if all its files are stored with the right sizes."""
    newest = newest_version(storage, dataset, versions)
    if newest.published is None:
        return newest
    try:
        check_sizes(storage, newest.published)
    except LeveldbDamagedError as error:
        problem = f"version {newest.published.manifest.version} cannot be built on: {error}"
        return Newest(None, (*newest.problems, problem))
    return newest


def _require_buildable(need: BuildNeed) -> BuildNeed:
    if need.need == Need.LACKS_COLUMNS:
        raise NotBuiltYetError(need.reason)
    return need


def _plan(newest: Newest, need: BuildNeed, cover: Cover) -> _Plan:
    """Return what to build on, and the dumps to apply. A forced build without new dumps applies nothing."""
    held = HeldDumps.of(cover.dumps)
    if need.need in {Need.HELD, Need.NEW_DUMPS}:
        return _Plan(cover, held, newest.published, None, need.dumps)
    return _Plan(cover, held, None, need.reason, need.dumps)


def _reason_to_rebuild(dataset: Dataset, manifest_of: ManifestOf, plan: _Plan) -> str | None:
    """Return the reason if a build from scratch is cheaper than applying the planned dumps to the base, else None."""

    def count(dumps: Sequence[Dump]) -> int:
        return sum(manifest_of(dump.directory).rows for dump in dumps)

    changed = count(plan.dumps)
    if not is_rebuild_cheaper(dataset, changed, lambda: count(plan.cover.dumps)):
        return None
    return f"{changed} of {count(plan.cover.dumps)} rows are new, and an update would take longer"


def _build(attempt: _BuildAttempt, plan: _Plan) -> _Built:
    """Build on the planned version, or from scratch if that version is corrupt.

    At first, only the sizes of files that need no download are compared with its manifest, and LevelDB checks each
    block that it reads. If one is corrupt, all files are compared by their hashes, which repairs a cache, and the build
    is repeated.
    """
    if plan.base is not None:
        for hashes in (False, True):
            try:
                copy_published(
                    attempt.storage,
                    plan.base,
                    attempt.path,
                    attempt.cache_dir,
                    hashes=hashes,
                    copied=lambda _name: attempt.renewed(0),
                )
                return _apply(attempt, plan)
            except LeveldbDamagedError as error:
                shutil.rmtree(attempt.path)
                because = f"{plan.base.name} is damaged: {error}"
        plan = plan.from_scratch(because)
    return _apply(attempt, plan)


def _apply(attempt: _BuildAttempt, plan: _Plan) -> _Built:
    """Apply the planned dumps."""
    dataset, storage = attempt.dataset, attempt.storage
    name = f"version {attempt.build.version} of {dataset.name}"
    applied = tuple(attempt.manifest_of(dump.directory) for dump in plan.dumps)
    create, renewed = plan.base is None, attempt.renewed
    loaded: Loaded | None = None
    runs = _runs(attempt, plan.cover, applied) if plan.base is None else None
    if runs and _is_large(attempt, applied):
        loaded, create = _load_many(attempt, runs, applied[0].rows, name), False
    with open_leveldb(attempt.path, name, create=create, write_buffer_bytes=attempt.write_buffer_bytes) as db:
        meta = read_meta(db, name, dataset=dataset.name, known_format=dataset.format) if plan.base else None
        builder = Builder(db, dataset, meta, attempt.flushed)
        if runs:
            builder.add_loaded(loaded or _load(attempt, db, runs, applied[0].rows))
        elif plan.base is None:
            _apply_at_the_end(builder, attempt, applied)
        else:
            rows = attempt.shared.changed_rows(dataset, storage, applied, attempt.parent, renewed)
            builder.apply(rows, f"a dump from {applied[0].directory} on" if applied else "")
        meta = builder.finish(plan.cover.serial)
        if is_merge_due(db):  # a merge is usually running, and would be restarted after the next opening
            flush_and_merge(db, lambda: renewed(0))
        if attempt.look:
            attempt.look(db)
        if dataset.side_files:
            dataset.side_files.write(db, attempt.path, attempt.build.directory, builder.changed, lambda: renewed(0))
    with open_leveldb(attempt.path, name) as db:  # completes merges that reading has started
        flush_and_merge(db, lambda: renewed(0))
    return _Built(plan, builder, meta)


def _runs(attempt: _BuildAttempt, cover: Cover, applied: Sequence[DumpManifest]) -> list[Runs] | None:
    """Return the sorted runs of a dataset that is built from scratch.

    They are made together with the runs of all datasets that join, and may have been made by an earlier build. Returns
    None if they are not worthwhile, since rows are few and no dataset joins.
    """
    dataset, shared = attempt.dataset, attempt.shared
    if (found := shared.runs_of(dataset, cover)) is not None:
        return found
    joined = shared.join(attempt.held.catalog, cover, partial(attempt.is_from_scratch, cover))
    in_processes = _is_large(attempt, applied)
    if not (in_processes or joined):
        return None
    runs = reduce_dump(
        [dataset, *joined],
        attempt.storage,
        applied[0],
        folder=shared.folder(attempt.parent),
        later=_later_rows(attempt, applied),
        memory_bytes=attempt.memory_bytes,
        in_processes=in_processes,
        rows_done=attempt.flushed,
    )
    shared.give(runs)
    return runs[dataset.name]


def _is_large(attempt: _BuildAttempt, applied: Sequence[DumpManifest]) -> bool:
    return is_worth_loading(attempt.storage, sum(manifest.rows for manifest in applied))


def _later_rows(attempt: _BuildAttempt, applied: Sequence[DumpManifest]) -> Path | None:
    """Write the rows of the dumps after the full dump into a database, and return its path; None if there are none."""
    full, *ranges = applied
    if not ranges:
        return None
    path = attempt.folder / "later.sqlite"
    with later_rows(full.shards, path) as later:
        directories = [manifest.directory for manifest in ranges]
        later.add_dumps(attempt.storage, directories, partial(attempt.renewed, 0))
    return path


def _apply_at_the_end(builder: Builder, attempt: _BuildAttempt, applied: Sequence[DumpManifest]) -> None:
    """Apply a full dump to an empty LevelDB, with the newest rows of the dumps after it."""
    full, storage = applied[0], attempt.storage
    path = _later_rows(attempt, applied)
    with nullcontext() if path is None else read_later_rows(full.shards, path) as later:
        for file in full.files:
            rows = decoded_rows(builder.dataset.columns, storage, full.directory, file, later)
            builder.apply(rows, storage.uri(file_path(full.directory, file.name)), fresh=True)


def _load_many(attempt: _BuildAttempt, runs: Sequence[Runs], rows: int, name: str) -> Loaded:
    """Load long runs into a new LevelDB. Few tables are kept open, since nothing is read back."""
    with open_leveldb(
        attempt.path, name, create=True, write_buffer_bytes=attempt.write_buffer_bytes, open_tables=_LOADED_TABLES
    ) as db:
        loaded = _load(attempt, db, runs, rows)
        flush(db)  # now, since the next records have smaller keys than all others
    return loaded


def _load(attempt: _BuildAttempt, db: Database, runs: Sequence[Runs], rows: int) -> Loaded:
    """Load runs into an empty LevelDB, and delete them."""
    loaded = load_runs(db, attempt.dataset, runs, rows, attempt.memory_bytes // PARTS, attempt.flushed)
    for run in runs:
        run.path.unlink()
    return loaded


def _publish(attempt: _BuildAttempt, built: _Built) -> LeveldbManifest:
    """Write the files, then their manifest, then the input list that makes the version valid."""
    storage, build, plan, meta = attempt.storage, attempt.build, built.plan, built.meta
    manifest = LeveldbManifest(
        dataset=build.dataset,
        dataset_format=meta.format,
        version=build.version,
        directory=build.directory,
        serial=meta.serial,
        counts=meta.counts,
        content_hash=meta.content_hash,
        files=_put_files(attempt, plan.base),
        cover=plan.cover.directories,
        held=tuple(plan.held.encode()),
        base_version=plan.base.manifest.version if plan.base else None,
        rebuilt_because=plan.rebuilt_because,
        followed_projects=attempt.manifest_of(plan.cover.directories[-1]).followed_projects,
    )
    content = manifest.encode()
    storage.put(f"{leveldb_path(build.dataset, build.directory)}/{MANIFEST_NAME}", content)
    inputs = InputList(
        dataset=build.dataset,
        version=build.version,
        directory=build.directory,
        manifest_sha256=hashlib.sha256(content).hexdigest(),
        serial=meta.serial,
        inputs=_inputs(attempt, plan),
    )
    attempt.held.renew()  # publish nothing if the lease was lost
    write_input_list(storage, inputs)
    keep_published(storage, PublishedVersion(inputs, manifest), attempt.path, attempt.cache_dir)
    return manifest


def _put_files(attempt: _BuildAttempt, base: PublishedVersion | None) -> tuple[LeveldbFile, ...]:
    """Write the new files of the LevelDB and return all its files.

    The base's manifest has the paths and hashes of its final files. They are not computed again, so corrupt files stay
    detectable.
    """
    build = attempt.build
    tables = {file.name: file for file in base.manifest.files if file.is_final} if base else {}
    files = []
    for local in sorted(attempt.path.iterdir()):
        size = local.stat().st_size
        if local.name in _NOT_PUBLISHED or (local.suffix == ".log" and size == 0):
            continue
        file = tables.get(local.name) or LeveldbFile(local.name, build.directory, size, file_sha256(local))
        if local.name not in tables:
            target = f"{leveldb_path(build.dataset, build.directory)}/{file.name}"
            if file.is_final:
                attempt.storage.put_linked(target, local)
            else:
                attempt.storage.put(target, local)
            attempt.renewed(0)
        files.append(file)
    return tuple(files)


def _inputs(attempt: _BuildAttempt, plan: _Plan) -> tuple[str, ...]:
    """Return the paths of the cover's files. Paths that the base version names are taken from its input list."""
    known: dict[str, list[str]] = {}
    for path in plan.base.inputs.inputs if plan.base else ():
        known.setdefault(PurePosixPath(path).parent.name, []).append(path)
    for directory in plan.cover.directories:
        if directory not in known:
            known[directory] = [file_path(directory, file.name) for file in attempt.manifest_of(directory).files]
    return tuple(path for directory in plan.cover.directories for path in known[directory])


def _result(manifest: LeveldbManifest, builder: Builder | None, standing_because: str = "") -> BuildResult:
    """Return the result of a build, or without a `builder` the existing version."""
    base, because = manifest.base_version, manifest.rebuilt_because
    return BuildResult(
        dataset=manifest.dataset,
        version=manifest.version,
        published=builder is not None,
        reason=standing_because
        or (f"built on version {base}" if base is not None else f"built from scratch: {because}"),
        serial=manifest.serial,
        counts=manifest.counts,
        content_hash=manifest.content_hash,
        base_version=base,
        rebuilt_because=because,
        rows=builder.rows if builder else 0,
        written=builder.written if builder else 0,
    )
