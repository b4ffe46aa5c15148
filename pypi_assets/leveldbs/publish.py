"""Builds the next version of a dataset from the cover, and publishes it: its input list is written last.

A version is built on the newest one where the cover has only grown since then, else from scratch, and its manifest
says why. One process at a time publishes a dataset.
"""

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.dump_files import DumpKind
from pypi_assets.catalog.dumps import Dump, committed_dumps
from pypi_assets.catalog.leases import Lease, lease, renewing
from pypi_assets.catalog.leveldbs import Build, ask_version, begin_build, mark_published
from pypi_assets.dumps.cover import Cover, cover_of, inputs_of
from pypi_assets.dumps.layout import file_path
from pypi_assets.dumps.manifest import Manifest, read_manifest
from pypi_assets.dumps.reader import iter_rows
from pypi_assets.leveldbs.builder import Builder
from pypi_assets.leveldbs.datasets import Dataset, require_dataset
from pypi_assets.leveldbs.input_lists import InputList, published_versions, write_input_list
from pypi_assets.leveldbs.layout import MANIFEST_NAME, leveldb_path
from pypi_assets.leveldbs.loading import MEMORY_BYTES, is_worth_loading, load_dump
from pypi_assets.leveldbs.manifest import (
    LeveldbFile,
    LeveldbManifest,
    PublishedVersion,
    check_sizes,
    file_sha256,
    read_published,
)
from pypi_assets.leveldbs.private_copy import copy_published, private_folder, private_parent
from pypi_assets.leveldbs.records import (
    WRITE_BUFFER_BYTES,
    LeveldbDamagedError,
    LeveldbError,
    Meta,
    UnknownFormatError,
    open_leveldb,
    read_meta,
)
from pypi_assets.leveldbs.row_decoder import RowDecoder
from pypi_assets.storage.store import Storage

LEASE_TTL_S = 600.0
_NOT_PUBLISHED = frozenset({"LOG", "LOG.old", "LOCK"})

Progress = Callable[[int], None]


class NoCoverError(LeveldbError):
    """There is no committed full dump to build from."""


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What came of asking for a version.

    Where `published` is False, nothing was written and `reason` says why; the rest tells of the version that stands.
    `rows` of dumps were applied, and `written` records put or deleted.
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
    """The cover, the version to build on (or why there is none), and the dumps of the cover to apply to it."""

    cover: Cover
    held: tuple[str, ...]
    base: PublishedVersion | None
    rebuilt_because: str | None
    dumps: tuple[Dump, ...]

    def anew(self, because: str) -> "_Plan":
        return replace(self, base=None, rebuilt_because=because, dumps=self.cover.dumps)


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
) -> BuildResult:
    """Builds and publishes `version`, a number that was handed out, or the next one, from the present cover.

    Nothing is done where the version is valid already; nor, unless asked to `force` it, where a newer one is valid or
    the newest holds all of the cover. The work is done within the storage's folder, or for remote stores below
    `work_dir`, in about `memory_bytes` of memory. `progress` is told the number of rows applied.

    Raises NoCoverError without a full dump, LeaseTakenError where another process publishes this dataset, and
    DumpDamagedError where a dump of the cover is damaged.
    """
    dataset = require_dataset(dataset_name)
    with lease(catalog, f"publish {dataset.name}", LEASE_TTL_S) as held:
        cover = cover_of(committed_dumps(catalog))
        if not cover.dumps:
            raise NoCoverError("there is no full dump to build from: run `pypi-assets dump full` first")
        published = published_versions(storage, dataset.name)
        if version is not None and version in published:
            standing = read_published(storage, dataset.name, version).manifest
            return _result(standing, None, f"version {version} has been published before")
        force = force or from_scratch
        usable = [number for number in published if version is None or number < version or not force]
        newest, problems = _newest_whole(storage, dataset, usable)
        if newest is not None and not force:
            standing = newest.manifest
            if version is not None and version < standing.version:
                return _result(standing, None, f"version {standing.version} has overtaken version {version}")
            if standing.held == inputs_of(cover.dumps):
                return _result(standing, None, f"nothing is new since version {standing.version}")
        plan = _plan(newest, problems, cover)
        if from_scratch:
            plan = plan.anew("it was asked for")
        number = ask_version(catalog, cover.serial) if version is None else version
        build = begin_build(catalog, dataset.name, number)
        with private_folder(private_parent(storage, work_dir)) as folder:
            path = folder / "leveldb"
            plan = _copy_base(storage, plan, path, held)
            flushed = renewing(held, progress)
            builder, meta = _build(dataset, storage, plan, path, build, write_buffer_bytes, memory_bytes, flushed)
            manifest = _publish(storage, plan, path, build, meta, held)
        mark_published(catalog, build, meta.serial, manifest.base_version)
        return _result(manifest, builder)


def apply_dumps(builder: Builder, storage: Storage, manifests: Sequence[Manifest]) -> None:
    """Applies all files of the dumps, in order. A full dump may only come first, into an empty LevelDB."""
    for manifest in manifests:
        for file in manifest.files:
            rows = iter_rows(storage, manifest.directory, file, RowDecoder(builder.dataset.columns).decode)
            name = storage.uri(file_path(manifest.directory, file.name))
            builder.apply(rows, name, fresh=manifest.kind == DumpKind.FULL)


def _newest_whole(
    storage: Storage, dataset: Dataset, versions: Sequence[int]
) -> tuple[PublishedVersion | None, list[str]]:
    """The newest version that can be built on, and what is wrong with those that are newer."""
    problems: list[str] = []
    for version in reversed(versions):
        try:
            published = read_published(storage, dataset.name, version)
            if published.manifest.dataset_format != dataset.format:
                raise UnknownFormatError(f"{published.name} is in format {published.manifest.dataset_format}")
            check_sizes(storage, published)
        except (LeveldbDamagedError, UnknownFormatError) as error:
            problems.append(f"version {version} cannot be built on: {error}")
        else:
            return published, problems
    return None, problems


def _plan(newest: PublishedVersion | None, problems: list[str], cover: Cover) -> _Plan:
    plan = _Plan(cover, inputs_of(cover.dumps), newest, None, ())
    if newest is None:
        return plan.anew("; ".join(problems) or "there is no version yet")
    rest = newest.manifest.held
    for position, dump in enumerate(cover.dumps):
        if not rest:
            return replace(plan, dumps=cover.dumps[position:])
        leaves = inputs_of([dump])
        if rest[: len(leaves)] != leaves:
            break
        rest = rest[len(leaves) :]
    return plan.anew(f"the cover does not begin with what {newest.name} holds") if rest else plan


def _copy_base(storage: Storage, plan: _Plan, path: Path, held: Lease) -> _Plan:
    """Copies the version to build on into the new folder `path`; plans to build anew where that one is damaged."""
    if plan.base is None:
        return plan
    flushed = renewing(held)
    try:
        copy_published(storage, plan.base, path, copied=lambda _name: flushed(0))
    except LeveldbDamagedError as error:
        shutil.rmtree(path, ignore_errors=True)
        return plan.anew(f"{plan.base.name} is damaged: {error}")
    return plan


def _build(
    dataset: Dataset,
    storage: Storage,
    plan: _Plan,
    path: Path,
    build: Build,
    write_buffer_bytes: int,
    memory_bytes: int,
    flushed: Progress,
) -> tuple[Builder, Meta]:
    name = f"version {build.version} of {dataset.name}"
    with open_leveldb(path, name, create=plan.base is None, write_buffer_bytes=write_buffer_bytes) as db:
        meta = read_meta(db, name, dataset=dataset.name, known_format=dataset.format) if plan.base else None
        builder = Builder(db, dataset, meta, flushed)
        manifests = [read_manifest(storage, dump.directory) for dump in plan.dumps]
        if plan.base is None and is_worth_loading(storage, manifests[0]):
            runs = path.with_name("runs")
            runs.mkdir()
            loaded = load_dump(
                db, dataset, storage, manifests.pop(0), folder=runs, memory_bytes=memory_bytes, told=flushed
            )
            shutil.rmtree(runs)
            builder.add_loaded(loaded)
        apply_dumps(builder, storage, manifests)
        meta = builder.finish(plan.cover.serial)
    with open_leveldb(path, name):
        pass  # opening it moves what is in the log into a table, so that readers need not
    return builder, meta


def _publish(storage: Storage, plan: _Plan, path: Path, build: Build, meta: Meta, held: Lease) -> LeveldbManifest:
    """Puts the files, then their manifest, then the input list that makes the version valid."""
    target = leveldb_path(build.dataset, build.directory)
    files = _put_files(storage, path, target, plan.base, held)
    manifest = LeveldbManifest(
        dataset=build.dataset,
        dataset_format=meta.format,
        version=build.version,
        directory=build.directory,
        serial=meta.serial,
        counts=meta.counts,
        content_hash=meta.content_hash,
        files=files,
        cover=plan.cover.directories,
        held=plan.held,
        base_version=plan.base.manifest.version if plan.base else None,
        rebuilt_because=plan.rebuilt_because,
    )
    content = manifest.encode()
    storage.put(f"{target}/{MANIFEST_NAME}", content)
    dumps = [read_manifest(storage, directory) for directory in manifest.cover]
    inputs = InputList(
        dataset=build.dataset,
        version=build.version,
        directory=build.directory,
        manifest_sha256=hashlib.sha256(content).hexdigest(),
        serial=meta.serial,
        inputs=tuple(file_path(dump.directory, file.name) for dump in dumps for file in dump.files),
    )
    held.renew()  # whoever has lost the lease publishes nothing
    write_input_list(storage, inputs)
    return manifest


def _put_files(
    storage: Storage, path: Path, target: str, base: PublishedVersion | None, held: Lease
) -> tuple[LeveldbFile, ...]:
    """Puts LevelDB's files below `target`. A remote store copies the tables that the base has itself."""
    flushed = renewing(held)
    stored = set(base.manifest.files) if base and storage.root is None else set()
    files = []
    for local in sorted(path.iterdir()):
        if local.name in _NOT_PUBLISHED:
            continue
        file = LeveldbFile(local.name, local.stat().st_size, file_sha256(local))
        if base and file in stored:
            storage.copy(f"{base.path}/{file.name}", f"{target}/{file.name}")
        elif local.suffix == ".ldb":
            storage.put_linked(f"{target}/{file.name}", local)
        else:
            storage.put(f"{target}/{file.name}", local)
        files.append(file)
        flushed(0)
    return tuple(files)


def _result(manifest: LeveldbManifest, builder: Builder | None, standing_because: str = "") -> BuildResult:
    """What a build made, or without a `builder` the version that stands."""
    base, because = manifest.base_version, manifest.rebuilt_because
    return BuildResult(
        dataset=manifest.dataset,
        version=manifest.version,
        published=builder is not None,
        reason=standing_because or (f"built on version {base}" if base is not None else f"built anew: {because}"),
        serial=manifest.serial,
        counts=manifest.counts,
        content_hash=manifest.content_hash,
        base_version=base,
        rebuilt_because=because,
        rows=builder.rows if builder else 0,
        written=builder.written if builder else 0,
    )
