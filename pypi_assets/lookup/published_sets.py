"""Sets of published versions: one version of each dataset, all of the same serial, for answers that must agree.

Datasets are published one after the other, so their newest versions can differ in serial for a while. The newest
complete set is used until all have caught up. Which versions form a set follows from the storage alone, so all
processes choose the same set.
"""

import hashlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from pypi_assets.errors import FIRST_COMMANDS
from pypi_assets.leveldbs.datasets.registry import DATASETS, require_dataset
from pypi_assets.leveldbs.format.leveldb_errors import (
    LeveldbDamagedError,
    LeveldbError,
    NoVersionError,
    UnknownFormatError,
)
from pypi_assets.leveldbs.versions.input_lists import read_input_list, stored_input_lists
from pypi_assets.lookup.latest import CACHE_BYTES, open_version
from pypi_assets.lookup.reader import AnyReader, DatasetReader
from pypi_assets.storage.store import Storage, StorageError

Answered = TypeVar("Answered")
_NEWEST = 20
"""The number of newest versions of each dataset that are considered. A set of older versions is useless."""


@dataclass(frozen=True)
class PublishedSet:
    """The `versions` of `serial`, by dataset. `published_at` is when the last of them was published."""

    serial: int
    versions: Mapping[str, int]
    published_at: datetime

    @cached_property
    def id(self) -> str:
        """Return the name of the set: its serial, and a hash that differs between sets of the same serial.

        >>> published.id
        '1350-5c1e0a7f'
        """
        named = ",".join(f"{dataset}={version}" for dataset, version in sorted(self.versions.items()))
        return f"{self.serial}-{hashlib.sha256(named.encode()).hexdigest()[:8]}"


UNREADABLE = (LeveldbDamagedError, UnknownFormatError)
"""The errors that opening or reading a version raises if another version is needed."""


class SerialsDifferError(NoVersionError):
    """The datasets that an answer needs have no common serial."""


class OpenSet:
    """A set with its readers. A dataset is opened, and downloaded from a remote storage, when it is first needed.

    Readers never move on to other versions, and close with the last reference to them. If a version cannot be read,
    `sets` skips it from then on.
    """

    def __init__(
        self, sets: "PublishedSets", published: PublishedSet, readers: Mapping[str, DatasetReader] | None = None
    ) -> None:
        self.published = published
        self._sets = sets
        self._readers = dict(readers or {})
        self._opening = threading.RLock()

    @property
    def serial(self) -> int:
        return self.published.serial

    @property
    def id(self) -> str:
        return self.published.id

    @property
    def readers(self) -> Mapping[str, DatasetReader]:
        """Return the open readers, by dataset."""
        return dict(self._readers)

    def reader(self, kind: type[AnyReader]) -> AnyReader:
        """Return the reader of the dataset that `kind` reads.

        Raises NoVersionError if the set has no version of the dataset, and LeveldbDamagedError or UnknownFormatError if
        the version cannot be read.

        >>> opened.reader(ModulesReader).module("yaml").results
        """
        found = self._readers.get(kind.dataset) or self._opened(kind.dataset)
        if not isinstance(found, kind):
            raise NoVersionError(
                f"{kind.dataset} has no version of serial {self.serial}, unlike the other datasets: run"
                " `pypi-assets leveldb update`"
            )
        return found

    def open(self, *datasets: str) -> None:
        """Open these datasets now."""
        for dataset in datasets:
            self._opened(dataset)

    def opened(self, dataset: str) -> AbstractContextManager[DatasetReader | None]:
        """Return the reader of a dataset for hints. The reader stays open.

        It is None if the set lacks the dataset, if the dataset would be downloaded, or if it cannot be read.
        """
        found = self._readers.get(dataset)
        if found is None and self._sets.storage.root is not None:
            try:
                found = self._opened(dataset)
            except (LeveldbError, StorageError):
                found = None
        return nullcontext(found)

    def close(self) -> None:
        """Close all open readers."""
        with self._opening:
            while self._readers:
                self._readers.popitem()[1].close()

    def _opened(self, dataset: str) -> DatasetReader | None:
        version = self.published.versions.get(dataset)
        if version is None:
            return None
        with self._opening:
            if dataset not in self._readers:
                self._readers[dataset] = self._sets.open_reader(dataset, version)
            return self._readers[dataset]


@dataclass
class PublishedSets:
    """The sets of published versions in a storage, to be found and opened.

    `skipped` has the reason for each version that could not be read, by dataset and version. Such versions are not
    tried again.
    """

    storage: Storage
    cache_dir: Path | None = None
    cache_bytes: int = CACHE_BYTES
    skipped: dict[tuple[str, int], str] = field(default_factory=dict)
    _known: dict[tuple[str, int, datetime], int] = field(default_factory=dict)

    def newest(self) -> PublishedSet | None:
        """Return the newest set, or None if nothing is published. Raises StorageError.

        It has as many datasets as possible, and among such sets the greatest serial.
        """
        found = self._all()
        return max(found, key=lambda one: (len(one.versions), one.serial), default=None)

    def newest_of(self, datasets: Collection[str]) -> PublishedSet:
        """Return the newest set of exactly these datasets. Only a few versions are looked at.

        Raises NoVersionError if a dataset has no readable version, SerialsDifferError if the datasets have readable
        versions but no common serial, and StorageError.
        """
        rest = {dataset: self._newest_first(dataset) for dataset in datasets}
        newest = present = {dataset: self._next(dataset, versions) for dataset, versions in rest.items()}
        while len(serials := {serial for _, serial, _ in present.values()}) > 1:
            later = {dataset for dataset, (_, serial, _) in present.items() if serial > min(serials)}
            try:
                present = present | {dataset: self._next(dataset, rest[dataset]) for dataset in later}
            except NoVersionError:
                text = ", and ".join(f"{dataset} is at serial {serial}" for dataset, (_, serial, _) in newest.items())
                raise SerialsDifferError(f"{text}: run `pypi-assets leveldb update` to update all of them") from None
        versions = {dataset: version for dataset, (version, _, _) in present.items()}
        return PublishedSet(serials.pop(), versions, max(written for _, _, written in present.values()))

    def open_newest(self, present: OpenSet | None = None) -> OpenSet | None:
        """Open the newest readable set, or return None if it is the `present` one.

        Raises NoVersionError if nothing readable is published, and StorageError.
        """
        while (published := self.newest()) is not None:
            if present is not None and present.published == published:
                return None
            opened = self.open(published)
            if opened is not None:
                return opened
        raise NoVersionError(f"nothing readable is published in {self.storage.url}: {FIRST_COMMANDS}")

    def open_named(self, set_id: str) -> OpenSet | None:
        """Open the set of this name, even if it is not the newest, or return None if it cannot be read any more."""
        published = self.named(set_id)
        return None if published is None else self.open(published)

    def named(self, set_id: str) -> PublishedSet | None:
        """Return the set of this name without opening it, or None if it is not published. Raises StorageError."""
        return next((one for one in self._all() if one.id == set_id), None)

    def open(self, published: PublishedSet) -> OpenSet | None:
        """Open all datasets of a set. Return None if a version cannot be read; it is skipped from then on."""
        opened = OpenSet(self, published)
        try:
            opened.open(*published.versions)
        except UNREADABLE:
            return None
        return opened

    def open_reader(self, dataset: str, version: int) -> DatasetReader:
        """Open one version. If it cannot be read, now or later, it is skipped from then on."""
        skip = partial(self.skipped.__setitem__, (dataset, version))
        known = require_dataset(dataset)
        return open_version(known, version, self.storage, self.cache_dir, cache_bytes=self.cache_bytes, damaged=skip)

    def is_skipped(self, published: PublishedSet) -> bool:
        """Check whether a version of the set is skipped, so that another set is needed."""
        return any(one in self.skipped for one in published.versions.items())

    def _newest_first(self, dataset: str) -> Iterator[tuple[int, int, datetime]]:
        """Yield the versions of a dataset that are not skipped, newest first, with serial and time of publication."""
        for version, stored in reversed(stored_input_lists(self.storage, dataset).items()):
            if (dataset, version) not in self.skipped:
                try:
                    yield version, read_input_list(self.storage, dataset, version).serial, stored.last_modified
                except LeveldbDamagedError as error:
                    self.skipped[dataset, version] = str(error)

    def _next(self, dataset: str, versions: Iterator[tuple[int, int, datetime]]) -> tuple[int, int, datetime]:
        found = next(versions, None)
        if found is None:
            from pypi_assets.leveldbs.versions.missing_version import no_version

            skipped = {version: reason for (one, version), reason in self.skipped.items() if one == dataset}
            raise no_version(require_dataset(dataset), self.storage, skipped)
        return found

    def _all(self) -> Collection[PublishedSet]:
        versions: defaultdict[int, dict[str, int]] = defaultdict(dict)
        times: dict[int, datetime] = {}
        known: dict[tuple[str, int, datetime], int] = {}
        for dataset in DATASETS:
            stored = stored_input_lists(self.storage, dataset)
            for version in list(stored)[-_NEWEST:]:
                written = stored[version].last_modified
                serial = self._known.get((dataset, version, written))
                if serial is None:
                    serial = self._serial(dataset, version)
                if serial is None:
                    continue
                known[dataset, version, written] = serial
                if (dataset, version) not in self.skipped:
                    versions[serial][dataset] = version
                    times[serial] = max(times.get(serial, written), written)
        self._known = known
        return [PublishedSet(serial, versions[serial], times[serial]) for serial in versions]

    def _serial(self, dataset: str, version: int) -> int | None:
        """Return the serial of a version, or None if its input list is missing or corrupt."""
        try:
            return read_input_list(self.storage, dataset, version).serial
        except LeveldbDamagedError:
            return None


class _MovedError(SerialsDifferError):
    """An answer needs another dataset of a different serial, so it must start again with an older set."""


class NeededDatasets:
    """The newest set of the datasets that answers need, for a process with few queries.

    A dataset is opened when it is first queried, at the serial of the datasets that are open already. If it has no
    readable version of this serial, the answer starts again with the newest set of all datasets that it needs. With
    `refresh_every_s`, an answer starts a background search for a newer set if the last search is that many seconds ago.
    `report` is called with the reason for each version that cannot be used.
    """

    def __init__(
        self, sets: PublishedSets, refresh_every_s: float | None = None, report: Callable[[str], object] = str
    ) -> None:
        self._sets, self._refresh_every_s, self._report = sets, refresh_every_s, report
        self._needed: set[str] = set()
        self._present: OpenSet | None = None
        self._newer: OpenSet | None = None
        self._reported: set[tuple[str, int]] = set()
        self._next_look = time.monotonic() + (refresh_every_s or 0)
        self._looking = threading.Lock()

    def answered(self, make: Callable[[], Answered]) -> Answered:
        """Return the result of `make`, which is called again if its datasets must come from another set."""
        self._follow()
        while True:
            try:
                return make()
            except _MovedError:
                self._present = None
            except UNREADABLE:
                if self._present is None or not self._sets.is_skipped(self._present.published):
                    raise
                self._present = None
            finally:
                self._report_skipped()

    def reader(self, kind: type[AnyReader]) -> AnyReader:
        """Return the reader of a dataset. Raises NoVersionError and StorageError."""
        present = self._present
        if present is None or kind.dataset not in present.published.versions:
            present = self._with(kind.dataset)
            self._needed.add(kind.dataset)
            if present is None:
                raise _MovedError(f"{kind.dataset} has another serial than the open datasets: ask again")
        return present.reader(kind)

    def opened(self, dataset: str) -> AbstractContextManager[DatasetReader | None]:
        """Return the reader of a dataset for hints, as `OpenSet.opened` does."""
        try:
            present = self._with(dataset) if self._sets.storage.root is not None else self._present
        except (LeveldbError, StorageError):
            present = None
        return nullcontext(None) if present is None else present.opened(dataset)

    def close(self) -> None:
        """Close all open readers."""
        for opened in (self._present, self._newer):
            if opened is not None:
                opened.close()

    def _with(self, dataset: str) -> OpenSet | None:
        """Return the open set plus one dataset, or None if that would need other versions of the open datasets."""
        present = self._present
        versions = {} if present is None else present.published.versions
        published = self._sets.newest_of({*self._needed, *versions, dataset})
        if not versions.items() <= published.versions.items():
            return None
        self._present = OpenSet(self._sets, published, {} if present is None else present.readers)
        return self._present

    def _follow(self) -> None:
        """Switch to the newer set if the last search found one, and start the next search if it is due."""
        if self._newer is not None:
            self._present, self._newer = self._newer, None
        if self._refresh_every_s is not None and time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + self._refresh_every_s
            threading.Thread(target=self._look, name="newer versions", daemon=True).start()

    def _look(self) -> None:
        if not self._looking.acquire(blocking=False):  # another search is still running
            return
        try:
            present = self._present
            if present is not None and self._needed:
                published = self._sets.newest_of(tuple(self._needed))
                if not published.versions.items() <= present.published.versions.items():
                    newer = OpenSet(self._sets, published)
                    newer.open(*published.versions)
                    self._newer = newer
        except (LeveldbError, StorageError, OSError):  # keep the present set; the next search tries again
            return
        finally:
            self._looking.release()

    def _report_skipped(self) -> None:
        for (dataset, version), reason in self._sets.skipped.items():
            if (dataset, version) not in self._reported:
                self._reported.add((dataset, version))
                self._report(f"version {version} is not used: {reason}")
