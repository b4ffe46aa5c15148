"""Answers about a lock as a whole: what is known of its pins, from where, and as of which serial."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pypi_assets.locks.environments import Environment
from pypi_assets.locks.pins import Pin, Remark
from pypi_assets.locks.reading import read_lock
from pypi_assets.locks.selection import selected_pins
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.install_order import Installed, pip_order
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.modules_reader import ModulesReader
from pypi_assets.lookup.pinned_files import FilesAtSerial, PinnedRelease, PublishedFiles, pinned_releases

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog


@dataclass(frozen=True, slots=True)
class LockedAnswer:
    """What is known of the pins of a lock that an environment installs, as of `serial`.

    `pip_order` are the normalized names of the releases in the order in which pip installs them. `epoch` is that of the
    serial, for answers of the catalog.
    """

    lock: str
    serial: int
    environment: Environment
    pins: tuple[Pin, ...]
    releases: tuple[PinnedRelease, ...]
    pip_order: tuple[str, ...]
    remarks: tuple[Remark, ...]
    epoch: int | None = None


class LockedPins:
    """The pins of a lock that an environment installs. Raises LockError, before anything is opened."""

    def __init__(self, path: Path, environment: Environment) -> None:
        lock = read_lock(path)
        self._filename, self._environment = lock.filename, environment
        self._pins, remarks = selected_pins(lock, environment)
        self._remarks = (*lock.remarks, *remarks)

    def published(self) -> LockedAnswer:
        """What the newest published versions of the storage of the settings have of them. Raises LeveldbError."""
        with _opened() as source:
            return self._answer(source, tuple(source.remarks()))

    def at_serial(self, catalog: "Catalog", serial: int) -> LockedAnswer:
        """What the catalog has of them as of a serial that it can answer for."""
        return self._answer(FilesAtSerial(catalog, serial), ())

    def _answer(self, source: PublishedFiles | FilesAtSerial, remarks: tuple[Remark, ...]) -> LockedAnswer:
        releases, found = pinned_releases(self._pins, source, self._environment)
        return LockedAnswer(
            lock=self._filename,
            serial=source.serial,
            environment=self._environment,
            pins=self._pins,
            releases=tuple(releases),
            pip_order=tuple(pip_order(map(_installed, releases), self._environment)),
            remarks=(*self._remarks, *remarks, *found),
        )


@contextmanager
def _opened() -> Iterator[PublishedFiles]:
    with ExitStack() as stack:
        depgraph = stack.enter_context(open_latest(DepgraphReader, check_hashes=False))
        modules = stack.enter_context(open_latest(ModulesReader, check_hashes=False))
        yield PublishedFiles(depgraph, modules)


def _installed(release: PinnedRelease) -> Installed:
    """What pip's order depends on: the file that it takes, or the first of those that it may take."""
    file = next(iter(release.chosen or release.files))
    return Installed(
        name=release.pin.normalized,
        requires_dist=file.requires_dist or (),
        extras=release.pin.extras,
        has_requires_python=file.requires_python is not None,
    )
