"""Sets of published versions: one version of each dataset, all of one serial, for answers that must agree.

Versions of datasets are published one after the other. So the newest ones can be of different serials for a while, and
a set is the newest that is complete. Which versions belong together follows from the storage alone, so all processes
choose the same.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from pypi_assets.errors import FIRST_COMMANDS
from pypi_assets.leveldbs.datasets.registry import DATASETS, require_dataset
from pypi_assets.leveldbs.format.errors import LeveldbDamagedError, NoVersionError, UnknownFormatError
from pypi_assets.leveldbs.versions.input_lists import read_input_list, stored_input_lists
from pypi_assets.lookup.latest import CACHE_BYTES, open_version
from pypi_assets.lookup.reader import Reader
from pypi_assets.storage.store import Storage

AnyReader = TypeVar("AnyReader", bound=Reader)
_NEWEST = 20
"""How many versions of a dataset are looked at: a set of older ones is of no use."""


@dataclass(frozen=True)
class PublishedSet:
    """The `versions`, by dataset, that are of `serial`. `published_at` is when the last of them was published."""

    serial: int
    versions: Mapping[str, int]
    published_at: datetime

    @cached_property
    def id(self) -> str:
        """Its name: the serial, and what no other set of the same serial has.

        >>> published.id
        '1350-5c1e0a7f'
        """
        named = ",".join(f"{dataset}={version}" for dataset, version in sorted(self.versions.items()))
        return f"{self.serial}-{hashlib.sha256(named.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class OpenSet:
    """The readers of a set. They never move on to other versions, and close with the last reference to them."""

    published: PublishedSet
    readers: Mapping[str, Reader]

    @property
    def serial(self) -> int:
        return self.published.serial

    @property
    def id(self) -> str:
        return self.published.id

    def reader(self, kind: type[AnyReader]) -> AnyReader:
        """The reader of the dataset that `kind` reads. Raises NoVersionError where the set has no version of it.

        >>> opened.reader(ModulesReader).module("yaml").results
        """
        found = self.readers.get(kind.dataset)
        if not isinstance(found, kind):
            raise NoVersionError(
                f"{kind.dataset} has no version of serial {self.serial}, of which the other datasets are: run"
                " `pypi-assets leveldb update`"
            )
        return found

    def opened(self, dataset: str) -> AbstractContextManager[Reader | None]:
        """The reader of a dataset, for hints that need another one; it stays open."""
        return nullcontext(self.readers.get(dataset))


@dataclass
class PublishedSets:
    """Finds the sets of a storage and opens them. Versions that cannot be read are not tried again.

    `skipped` has the reason for each of them, by dataset and version.
    """

    storage: Storage
    cache_dir: Path | None = None
    cache_bytes: int = CACHE_BYTES
    skipped: dict[tuple[str, int], str] = field(default_factory=dict)
    _known: dict[tuple[str, int, datetime], int] = field(default_factory=dict)

    def newest(self) -> PublishedSet | None:
        """The newest set; None where nothing is published. Raises StorageError.

        It has as many datasets as possible, and among such sets the greatest serial.
        """
        found = self._all()
        return max(found, key=lambda one: (len(one.versions), one.serial), default=None)

    def open_newest(self, present: OpenSet | None = None) -> OpenSet | None:
        """Opens the newest set that can be read; None where that is the `present` one.

        Raises NoVersionError where nothing is published, or nothing can be read, and StorageError.
        """
        while (published := self.newest()) is not None:
            if present is not None and present.published == published:
                return None
            opened = self.open(published)
            if opened is not None:
                return opened
        raise NoVersionError(f"nothing that can be read is published in {self.storage.url}: {FIRST_COMMANDS}")

    def open_named(self, set_id: str) -> OpenSet | None:
        """Opens the set of this name, also where it is not the newest; None where it cannot be read any more."""
        published = self.named(set_id)
        return None if published is None else self.open(published)

    def named(self, set_id: str) -> PublishedSet | None:
        """Return the set of this name, without opening it; None if it is not published. Raises StorageError."""
        return next((one for one in self._all() if one.id == set_id), None)

    def open(self, published: PublishedSet) -> OpenSet | None:
        """Opens a set; None where a version of it cannot be read, which is skipped from now on."""
        readers: dict[str, Reader] = {}
        for dataset, version in published.versions.items():
            try:
                readers[dataset] = open_version(
                    require_dataset(dataset), version, self.storage, self.cache_dir, cache_bytes=self.cache_bytes
                )
            except (LeveldbDamagedError, UnknownFormatError) as error:
                self.skipped[dataset, version] = str(error)
                return None
        return OpenSet(published, MappingProxyType(readers))

    def skip(self, opened: OpenSet, dataset: str, reason: str) -> None:
        """Keeps a version out of the sets from now on, since it turned out to be damaged."""
        self.skipped[dataset, opened.published.versions[dataset]] = reason

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
        """The serial of a version; None where its input list is gone, or damaged."""
        try:
            return read_input_list(self.storage, dataset, version).serial
        except LeveldbDamagedError:
            return None
