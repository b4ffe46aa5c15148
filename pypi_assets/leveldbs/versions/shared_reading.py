"""Reads dumps once for the builds of several datasets, which follow one another.

    with SharedReading(["modules", "simple"]) as shared:
        for name in shared.names:
            build_version(name, ..., shared=shared)

If a dataset is built from scratch, the other datasets that will be built from scratch from the same dumps join it: one
pass over the rows makes the sorted runs of all of them, and each build loads its own. Otherwise, the changed rows are
decoded once, for the columns of all datasets. Each version is still built and published by itself.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from pypi_assets.catalog.coordination.leases import Lease, LeaseTakenError, lease, renewing
from pypi_assets.catalog.database import Catalog
from pypi_assets.dumps.cover import Cover
from pypi_assets.dumps.dump_format import DumpDamagedError, Row
from pypi_assets.dumps.dump_manifest import DumpManifest
from pypi_assets.dumps.dump_reader import iter_rows
from pypi_assets.dumps.later_rows import later_rows, read_later_rows
from pypi_assets.leveldbs.build.row_decoder import RowDecoder, columns_of, decoded_rows
from pypi_assets.leveldbs.build.sorted_runs import Runs
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.registry import require_dataset
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets.leveldbs.versions.private_copy import private_folder
from pypi_assets.storage.store import Storage

LEASE_TTL_S = 600.0
HELD_BYTES = 8 * 1024**2
"""Changed rows with at most this many bytes of JSON are held in memory, where they take up to four times as much."""


@dataclass(slots=True)
class _Joined:
    """A dataset that waits for its build from scratch: its lease, its runs, and the cover that they were made from."""

    held: Lease
    renew: Callable[[int], None]
    exits: ExitStack
    cover: Cover
    runs: list[Runs] = field(default_factory=list)


class SharedReading:
    """Shares the reading of dumps between the builds of the datasets `names`, which must be built one by one.

    Datasets that have joined keep their leases until they are built, so that their dumps stay. The end of this context
    manager ends the leases of datasets that were not built.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._datasets = [require_dataset(name) for name in names]
        self._waiting = {dataset.name: dataset for dataset in self._datasets}
        self._joined: dict[str, _Joined] = {}
        self._exits = ExitStack()
        self._folder: Path | None = None
        self._changed: tuple[Sequence[str], list[Row] | Path | None] = ((), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        with self._exits:
            for name in list(self._joined):
                self._leave(name)

    @property
    def names(self) -> list[str]:
        return [dataset.name for dataset in self._datasets]

    @contextmanager
    def publishing(self, catalog: Catalog, dataset: Dataset) -> Iterator[Lease]:
        """Hold the lease of a dataset's publisher while it is built. Raises LeaseTakenError if another process has it.

        After this, the dataset joins no other.
        """
        self._waiting.pop(dataset.name, None)
        if joined := self._joined.get(dataset.name):
            try:
                yield joined.held
            finally:
                self._leave(dataset.name)
        else:
            with _lease(catalog, dataset) as held:
                yield held

    def renewing(self, held: Lease, progress: Callable[[int], object] | None = None) -> Callable[[int], None]:
        """Return a function that forwards to `progress`, and renews `held` and the leases of joined datasets in time.

        A joined dataset whose lease was lost leaves, and is built without the others.
        """
        report = renewing(held, progress)

        def renew(done: int) -> None:
            for name, joined in list(self._joined.items()):
                if joined.held is not held:
                    try:
                        joined.renew(0)
                    except LeaseTakenError:
                        self._leave(name)
            report(done)

        return renew

    def folder(self, parent: Path) -> Path:
        """Return the private folder for shared files, which is created below `parent`."""
        if self._folder is None:
            self._folder = self._exits.enter_context(private_folder(parent))
        return self._folder

    def join(self, catalog: Catalog, cover: Cover, is_from_scratch: Callable[[Dataset], bool]) -> list[Dataset]:
        """Return the waiting datasets that will be built from scratch from `cover`, and take their leases.

        `is_from_scratch` checks a dataset while its lease is held.
        """
        joining = []
        for dataset in list(self._waiting.values()):
            with ExitStack() as exits:
                try:
                    held = exits.enter_context(_lease(catalog, dataset))
                    if not is_from_scratch(dataset):
                        continue
                except (LeaseTakenError, LeveldbError, DumpDamagedError):  # its own build will report the error
                    continue
                self._joined[dataset.name] = _Joined(held, renewing(held), exits.pop_all(), cover)
            self._waiting.pop(dataset.name)
            joining.append(dataset)
        return joining

    def give(self, runs: dict[str, list[Runs]]) -> None:
        """Keep the runs of joined datasets until they are built. The runs of others are not needed any more."""
        for name, of_dataset in runs.items():
            if name in self._joined:
                self._joined[name].runs = of_dataset

    def cover_of(self, dataset: Dataset) -> Cover | None:
        """Return the cover from which runs of the dataset were made, or None if there are none."""
        joined = self._joined.get(dataset.name)
        return joined.cover if joined and joined.runs else None

    def runs_of(self, dataset: Dataset, cover: Cover) -> list[Runs] | None:
        """Return the runs of the dataset that were made from `cover`, or None if there are none."""
        return self._joined[dataset.name].runs if self.cover_of(dataset) == cover else None

    def changed_rows(
        self,
        dataset: Dataset,
        storage: Storage,
        dumps: Sequence[DumpManifest],
        parent: Path,
        renewed: Callable[[int], object],
    ) -> Iterator[Row]:
        """Yield the newest row or tombstone of each file in range dumps, sorted by project.

        A project that several dumps change comes once, since a change can take as long as the project is large. The
        rows have the columns of the dataset, and may have others. Shared files are below `parent`.
        """
        directories = [dump.directory for dump in dumps]
        if self._changed[0] != directories:
            self._forget_changed()
            self._changed = directories, self._read_changed(storage, dumps, parent, renewed)
        changed = self._changed[1]
        if isinstance(changed, Path):
            with read_later_rows(1, changed) as later:
                yield from later.newest(RowDecoder(dataset.columns).decode)
        elif changed is not None:
            yield from changed
        else:
            for dump in dumps:
                for file in dump.files:
                    yield from decoded_rows(dataset.columns, storage, dump.directory, file)

    def _read_changed(
        self, storage: Storage, dumps: Sequence[DumpManifest], parent: Path, renewed: Callable[[int], object]
    ) -> list[Row] | Path | None:
        """Return the newest rows if they are few, otherwise a database of them, or None if they are in one file."""
        are_sorted = sum(len(dump.files) for dump in dumps) <= 1
        if not are_sorted or len(self._datasets) > 1:
            rows = _few_newest(columns_of(self._datasets), storage, dumps)
            if rows is not None:
                return rows
        if are_sorted:
            return None
        path = self.folder(parent) / f"{uuid.uuid4().hex}.sqlite"  # an earlier one can be of the same first dump
        with later_rows(1, path) as later:
            later.add_dumps(storage, [dump.directory for dump in dumps], partial(renewed, 0))
        return path

    def _forget_changed(self) -> None:
        """Delete the changed rows of other dumps."""
        changed = self._changed[1]
        if isinstance(changed, Path):
            changed.unlink()
        self._changed = (), None

    def _leave(self, name: str) -> None:
        joined = self._joined.pop(name)
        with joined.exits:
            for runs in joined.runs:
                runs.path.unlink(missing_ok=True)


def _lease(catalog: Catalog, dataset: Dataset) -> AbstractContextManager[Lease]:
    return lease(catalog, f"publish {dataset.name}", LEASE_TTL_S)


def _few_newest(columns: Iterable[str], storage: Storage, dumps: Sequence[DumpManifest]) -> list[Row] | None:
    """Return the newest row or tombstone of each file, sorted by project, or None if they take too much memory."""
    size = 0
    decoder = RowDecoder(columns)

    def decode(line: bytes) -> Row:
        nonlocal size
        size += len(line)
        return decoder.decode(line)

    newest: dict[tuple[object, object], Row] = {}
    for dump in dumps:
        for file in dump.files:
            for row in iter_rows(storage, dump.directory, file, decode):
                if size > HELD_BYTES:
                    return None
                newest[row["normalized"], row["filename"]] = row
    return sorted(newest.values(), key=lambda row: (str(row["normalized"]), str(row["version"]), str(row["filename"])))
