"""Follows a source in rounds: a round reads published.json, copies new files, and writes published.json last.

So readers of the mirror always find a complete state, and files copied before a kill are not copied again. Invalid
files of the source are rejected, and local files are kept.
"""

import random
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pypi_assets.journal.segment_files import JournalDamagedError, SegmentManifest, read_head, segment_path
from pypi_assets.mirror.chains import StreamPlan, copy_stream, held_manifest, plan_stream
from pypi_assets.mirror.copying import Copying, FileGroup, is_segment
from pypi_assets.mirror.mirror_state import MirrorState, begin_mirror, read_mirror, require_home, write_mirror
from pypi_assets.mirror.orphaned_files import delete_unnamed, superseded_since
from pypi_assets.mirror.signatures import put_checkpoints, require_signatures
from pypi_assets.mirror.sources import (
    BehindError,
    ForkError,
    MirrorError,
    OtherHomeError,
    RefusedSourceError,
    Source,
    SourceError,
    VanishedError,
    small_file,
)
from pypi_assets.mirror.sync_plan import (
    MOST_PUBLISHED_BYTES,
    Publication,
    PublishedState,
    WantedFile,
    fetch_dump,
    fetch_version,
    held_publication,
    read_state,
)
from pypi_assets.mirror.trials import Trials
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.root_owner import MIRROR, OWNER, find_owner, read_owner, require_owner
from pypi_assets.storage.store import ObjectNotFoundError, Storage, StorageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

LONGEST_PAUSE_S = 3600.0
ROUNDS = 5
"""The most attempts in a round, if files vanish because the source publishes and cleans up at the same time."""
_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class MirrorRound:
    """The result of a round: files and bytes copied, files deleted, and the serial of the local dumps."""

    dumps_serial: int
    files: int
    size: int
    deleted: int
    unknown_datasets: tuple[str, ...] = ()


@dataclass
class Mirror:
    """A mirror of a `source` in a `storage`. `progress` receives the number of copied files.

    With `verify`, local files are checked against their hashes, and copied again if they differ. With `public_key`, a
    source is rejected unless its journal is signed by that key. `cache_dir` is the folder in which readers on this
    machine keep LevelDB files, if the storage is not a folder. `home` identifies the mirror's home: a storage that
    belongs to another home is rejected unless `take_over` is set.
    """

    source: Source
    storage: Storage
    grace_s: float
    at_once: int = 4
    verify: bool = False
    public_key: "Ed25519PublicKey | None" = None
    cache_dir: Path | None = None
    home: str | None = None
    take_over: bool = False
    progress: Callable[[int], None] = lambda _files: None
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    _files: int = 0
    _size: int = 0

    def run(self) -> MirrorRound:
        """Run one round. Raises MirrorError; local files are kept, and mirror.json records the error.

        Raises MirrorError immediately if a catalog writes to the storage. An empty storage stays empty until the source
        has a valid published.json.
        """
        known = self._own_state()
        if known is None:
            read_state(self._published(), f"{self.source.name}/{PUBLISHED}")
        now = self.clock()
        state = known or MirrorState(self.source.name)
        state = replace(state, source=self.source.name, checked_at=now, home=self.home or state.home)
        if known is None:
            begin_mirror(self.storage, state)
        else:
            write_mirror(self.storage, state)
        try:
            done, superseded = self._round_or_error(state)
        except OtherHomeError:  # mirror.json belongs to the other home
            raise
        except (MirrorError, StorageError) as error:
            since = state.failing_since or now
            is_refused = isinstance(error, RefusedSourceError)
            self._note(replace(state, failing_since=since, error=str(error)[:2_000], is_refused=is_refused))
            raise
        write_mirror(
            self.storage,
            replace(state, synced_at=now, failing_since=None, error=None, is_refused=False, superseded=superseded),
        )
        return done

    def _round_or_error(self, state: MirrorState) -> tuple[MirrorRound, dict[str, float]]:
        try:
            return self._round(state)
        except JournalDamagedError as error:  # errors in the source's files are RefusedSourceErrors
            raise MirrorError(
                f"a local file is corrupt: {error}. Delete that file, and run the mirror once with --verify, which"
                " copies missing files"
            ) from error

    def _note(self, state: MirrorState) -> None:
        try:
            write_mirror(self.storage, state)
        except StorageError:
            return  # the error being raised has the same cause, or is the first one

    def _own_state(self) -> MirrorState | None:
        """Return the mirror's state, or None if the storage is empty."""
        try:
            state = read_mirror(self.storage)
        except MirrorError:  # corrupt, but it still marks a mirror
            return MirrorState(self.source.name)
        if not self.take_over:
            require_home(self.storage, self.home)
        if state is None and (self.storage.exists(OWNER) or self.storage.exists(PUBLISHED)):
            raise MirrorError(
                f"a catalog writes to {self.storage.url}, which is not a mirror's storage: use a separate storage for"
                " the mirror (PYPI_ASSETS_HOME or PYPI_ASSETS_STORAGE_URL)"
            )
        return state

    def _round(self, state: MirrorState) -> tuple[MirrorRound, dict[str, float]]:
        self._files = self._size = 0
        content = self._published()
        for attempt in range(1, ROUNDS + 1):
            try:
                held, is_new = self._follow(content)
                break
            except VanishedError as error:
                before, content = content, self._published()
                if attempt == ROUNDS or (content == before and attempt > 1):
                    raise MirrorError(f"the source names a file that it does not have: {error}") from error
                self.sleep(_PAUSE_S * attempt)
        now = self.clock()
        if not is_new and all(since >= now - self.grace_s for since in state.superseded.values()):
            return MirrorRound(held.dumps_serial, 0, 0, 0, held.unknown_datasets), dict(state.superseded)
        superseded = superseded_since(self.storage, held, state.superseded, now)
        deleted = delete_unnamed(self.storage, held, superseded, now - self.grace_s)
        gone = {stored.path for stored in deleted}
        left = {root: since for root, since in superseded.items() if root not in gone}
        return MirrorRound(held.dumps_serial, self._files, self._size, len(deleted), held.unknown_datasets), left

    def _published(self) -> bytes:
        try:
            return small_file(self.source, PUBLISHED, MOST_PUBLISHED_BYTES)
        except VanishedError as error:
            raise SourceError(
                f"nothing is published at {self.source.name}: it has no {PUBLISHED}, which each publication of a dump,"
                " of a LevelDB version or of the journal writes"
            ) from error

    def _follow(self, content: bytes) -> tuple[PublishedState, bool]:
        """Copy the files that a published.json names, and write it last.

        Returns the new state, and whether it changed.
        """
        wanted = read_state(content, f"{self.source.name}/{PUBLISHED}")
        held = self._held()
        if held is not None and held.content == content and not self.verify and self._has_heads(held):
            self._require_signatures(wanted, [])
            return wanted, False
        self._require_index(wanted.index_url)
        if held is not None and wanted.dumps_serial < held.dumps_serial:
            raise BehindError(
                f"{self.source.name} has dumps up to serial {wanted.dumps_serial}, and the local dumps reach"
                f" {held.dumps_serial}: it was set back, or is a mirror that lags"
            )
        plans = [
            plan_stream(
                self.source,
                self.storage,
                head,
                at_once=self.at_once,
                again=self.verify,
                is_restart_signed=self.public_key is not None,
            )
            for head in wanted.heads.values()
        ]
        self._require_signatures(wanted, plans)
        self._claim(wanted.index_url)
        self._copy(self._publications(wanted), plans, held)
        self._require_all_named(wanted, held)
        require_home(self.storage, self.home)  # another home can have taken over in the meantime
        put_checkpoints(self.storage, wanted)
        self.storage.put(PUBLISHED, content)
        return wanted, True

    def _require_all_named(self, wanted: PublishedState, held: PublishedState | None) -> None:
        """Raise BehindError if the source no longer names a dataset or a stream that the mirror has.

        A source never unpublishes one, and files that are not named would be deleted after the grace period.
        """
        if held is None:
            return
        lacking = [
            f"the dataset {name}" for name, named in held.leveldbs.items() if named and not wanted.leveldbs.get(name)
        ]
        lacking += [f"the stream {name}" for name in held.heads.keys() - wanted.heads.keys()]
        if lacking:
            raise BehindError(
                f"{self.source.name}/{PUBLISHED} no longer names {', '.join(sorted(lacking))}, which this mirror has:"
                " the source lags, or its file is corrupt"
            )

    def _require_signatures(self, wanted: PublishedState, plans: list[StreamPlan]) -> None:
        if self.public_key is not None:
            require_signatures(self.source.name, wanted, plans, self.storage, self.public_key)

    def _require_index(self, index_url: str) -> None:
        if self.storage.exists(OWNER) and (own := read_owner(self.storage)) != index_url:
            raise RefusedSourceError(
                f"{self.source.name} belongs to the index {index_url}, and the local files to {own}: use a separate"
                " home for a mirror of the other index"
            )

    def _claim(self, index_url: str) -> None:
        """Make the index the owner of the storage. Raises OtherHomeError if a catalog has claimed it first."""
        try:
            require_owner(self.storage, index_url)
        except StorageError as error:
            owner = find_owner(self.storage)
            if owner is None or owner.catalog is None:
                raise
            self.storage.delete(MIRROR)
            raise OtherHomeError(f"{error}: use a separate storage for the mirror (PYPI_ASSETS_STORAGE_URL)") from error

    def _publications(self, wanted: PublishedState) -> list[Publication]:
        """Return the dumps and LevelDB versions to copy. The versions are first, since look-ups use them."""
        fetches: list[Callable[[], Publication]] = [
            partial(fetch_version, self.source, dataset, named)
            for dataset, entries in wanted.leveldbs.items()
            for named in entries
        ]
        fetches += [partial(fetch_dump, self.source, named) for named in wanted.dumps]
        with ThreadPoolExecutor(self.at_once, "publications") as threads:
            found = list(threads.map(lambda fetch: fetch(), fetches))
        for publication in found:
            version = publication.version
            if version is not None and wanted.dumps and version.manifest.serial > wanted.dumps_serial:
                raise RefusedSourceError(
                    f"{version.name} of {self.source.name} has serial {version.manifest.serial}, but the dumps"
                    f" end at {wanted.dumps_serial}"
                )
        return found

    def _held(self) -> PublishedState | None:
        try:
            return read_state(self.storage.get(PUBLISHED), self.storage.uri(PUBLISHED))
        except (ObjectNotFoundError, RefusedSourceError):
            return None

    def _has_heads(self, held: PublishedState) -> bool:
        return all(read_head(self.storage, stream) == head for stream, head in held.heads.items())

    def _copy(self, publications: list[Publication], plans: list[StreamPlan], held: PublishedState | None) -> None:
        copying = Copying(self.source, self.storage, self.at_once, self._copied, self.sleep)
        objects = {publication.root: self._new_objects(publication) for publication in publications}
        known = self._known(held)
        missing = {publication.root: self._missing(copying, publication, known) for publication in publications}
        if self.storage.root is not None:
            self._require_space(
                self.storage.root,
                sum({file.path: file.size for files in missing.values() for file in files}.values())
                + sum(segment.content_bytes // 8 for plan in plans for segment in self._lacking(plan)),
            )
        wanted: set[str] = set()
        groups = []
        tried = Trials(self.storage, self.cache_dir, self.source.name)
        for publication in publications:
            files = tuple(file for file in missing[publication.root] if file.path not in wanted)
            wanted.update(file.path for file in files)
            groups.append(FileGroup(files, partial(self._complete, tried, publication, objects[publication.root])))
        with closing(tried):
            copying.groups(groups)
        for plan in plans:
            copy_stream(copying, plan, holds=self._holds_segment)

    def _lacking(self, plan: StreamPlan) -> list[SegmentManifest]:
        """Return the segments of a plan whose files are not stored."""
        return [
            segment
            for segment in plan.manifests
            if segment.number >= plan.head.first_number and not self.storage.exists(segment_path(segment))
        ]

    def _complete(self, tried: Trials, publication: Publication, objects: Sequence[tuple[str, bytes]]) -> None:
        """Write the objects that make a publication visible, once its files are stored.

        Raises RefusedSourceError for a LevelDB version that cannot be read, so that no reader sees it.
        """
        if publication.version is not None and (objects or self.verify):
            tried.require_readable(publication.version)
        for path, content in objects:
            self.storage.put(path, content)

    def _known(self, held: PublishedState | None) -> set[WantedFile]:
        """Return the files of the local publications, which were checked when they were copied."""
        if held is None or self.verify:
            return set()
        found = (held_publication(self.storage, root) for root in held.roots)
        return {file for publication in found if publication is not None for file in publication.files}

    def _missing(self, copying: Copying, publication: Publication, known: set[WantedFile]) -> list[WantedFile]:
        """Return the files of a publication that are not stored. Sizes are compared, and hashes too for new files."""
        folders = {file.path.rpartition("/")[0] for file in publication.files}
        sizes = {stored.path: stored.size for folder in folders for stored in self.storage.list(folder)}
        return [
            file
            for file in publication.files
            if sizes.get(file.path) != file.size or (file not in known and not copying.holds(file))
        ]

    def _holds_segment(self, segment: SegmentManifest) -> bool:
        """Check whether a segment was copied before.

        Manifests are written after their segments, so a segment without a local manifest is read and checked.
        """
        path = segment_path(segment)
        if not self.storage.exists(path):
            return False
        own = held_manifest(self.storage, segment.stream, segment.generation, segment.number)
        if own == segment and not self.verify:
            return True
        with self.storage.open(path) as stored:
            return is_segment(stored, segment)

    def _new_objects(self, publication: Publication) -> list[tuple[str, bytes]]:
        """Return the manifest or input lists of a publication that are not stored.

        A stored object is never replaced.
        """
        found = []
        for path, content in publication.objects:
            try:
                own = self.storage.get(path)
            except ObjectNotFoundError:
                found.append((path, content))
                continue
            if own != content:
                raise ForkError(
                    f"{self.source.name}/{path} differs from the local file, though such files never change: the source"
                    " was created again, or the local file is corrupt. It is kept; use an empty storage for this"
                    " source, or delete the file"
                )
        return found

    def _require_space(self, root: Path, size: int) -> None:
        free = shutil.disk_usage(root).free
        if size > free:
            raise MirrorError(f"{size:,} bytes have to be copied, and only {free:,} are free at {root}")

    def _copied(self, size: int) -> None:
        self._files += 1
        self._size += size
        self.progress(self._files)


def follow(
    mirror: Mirror,
    interval_s: float,
    *,
    stop: threading.Event,
    done: Callable[[MirrorRound], None],
    failed: Callable[[Exception, float], None],
) -> None:
    """Run rounds, `interval_s` apart, until `stop` is set. `done` receives each round.

    After errors the pauses grow, up to an hour. `failed` receives the error and the pause in seconds.
    """
    failures = 0
    while not stop.is_set():
        try:
            done(mirror.run())
            failures, pause_s = 0, interval_s
        except (MirrorError, StorageError) as error:
            failures += 1
            pause_s = min(interval_s * 2 ** min(failures, 16), max(LONGEST_PAUSE_S, interval_s))
            pause_s *= random.uniform(0.75, 1.0)
            failed(error, pause_s)
        stop.wait(pause_s)
