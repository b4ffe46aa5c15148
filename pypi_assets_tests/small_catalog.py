"""A catalog that tests fill file by file, with ranges and changes at chosen serials."""

import hashlib
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from packaging.utils import canonicalize_name
from sqlalchemy import Connection, Table, func, insert, select, update

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.range_ledger import allocate_range, complete_range
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reads.read_outcomes import FinishedRead, ReadOutcome, store_reads
from pypi_assets.catalog.reads.stored_contents import store_lists
from pypi_assets.catalog.tables import (
    catalog_state,
    changes,
    distribution_data,
    distributions,
    live_intervals,
    projects,
    releases,
    yanked_intervals,
)
from pypi_assets.distributions.installability import is_installable
from pypi_assets.distributions.record import DistributionKind, DistributionRecord
from pypi_assets_tests.databases import sqlite_database


@dataclass
class SmallCatalog:
    """A catalog, and methods that change its files at a serial and log the change there."""

    catalog: Catalog
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _files: dict[str, int] = field(default_factory=dict)

    @property
    def filenames(self) -> list[str]:
        """Return all files that were ever added."""
        return list(self._files)

    def complete(self, end: int) -> SerialRange:
        """Allocate the next range and complete it up to `end`."""
        with self.catalog.write() as connection:
            serials = allocate_range(connection, end, 0.0)
            assert serials is not None
            complete_range(connection, serials, 0.0)
        return serials

    def add(
        self,
        serial: int,
        project: str,
        version: str,
        filename: str,
        *,
        modules: tuple[str, ...] | None = ("demo",),
        requires_dist: tuple[str, ...] | None = (),
        requires_python: str | None = None,
        stubs: tuple[str, ...] = (),
        import_names: tuple[str, ...] | None = None,
        refusals: tuple[str, ...] = (),
    ) -> None:
        normalized = canonicalize_name(project)
        digest = hashlib.sha256(normalized.encode()).digest()
        with self.catalog.write() as connection:
            project_id = connection.scalar(select(projects.c.id).where(projects.c.normalized == normalized))
            if project_id is None:
                project_id = next(self._ids)
                connection.execute(
                    insert(projects).values(
                        id=project_id,
                        normalized=normalized,
                        name=project,
                        bucket=int.from_bytes(digest[:2], "big"),
                        shard=0,
                        known_since=0,
                    )
                )
            release = (releases.c.project_id == project_id) & (releases.c.version == version)
            release_id = connection.scalar(select(releases.c.id).where(release))
            if release_id is None:
                release_id = next(self._ids)
                connection.execute(insert(releases).values(id=release_id, project_id=project_id, version=version))
            file_id = self._files[filename] = next(self._ids)
            connection.execute(
                insert(distributions).values(
                    id=file_id,
                    project_id=project_id,
                    release_id=release_id,
                    filename=filename,
                    kind="wheel" if filename.endswith(".whl") else "sdist",
                    url=f"https://files.example.org/{filename}",
                    sha256=hashlib.sha256(filename.encode()).hexdigest(),
                    size=len(filename),
                    uploaded_at="2026-01-02T03:04:05Z",
                    requires_python=requires_python,
                )
            )
            connection.execute(
                insert(distribution_data).values(
                    distribution_id=file_id,
                    **_lists(connection, modules, requires_dist),
                    outcome="data" if modules is not None else "error",
                    error_kind=None if modules is not None else "corrupt archive",
                    extractor_version=1,
                    metadata_version="2.1",
                    details=_details(modules, stubs, import_names, refusals),
                    is_rejected=not is_installable(refusals),
                )
            )
            connection.execute(insert(live_intervals).values(distribution_id=file_id, start=serial))
            self._log(connection, serial, filename, "add file")

    def remove(self, serial: int, *filenames: str) -> None:
        """End the live intervals of the files, as a removal or a quarantine does."""
        self._end(live_intervals, serial, filenames, "remove file")

    def show_again(self, serial: int, *filenames: str) -> None:
        """Make removed files live again, as clearing a quarantine does."""
        self._begin(live_intervals, serial, filenames, "clear quarantine")

    def yank(self, serial: int, filename: str) -> None:
        self._begin(yanked_intervals, serial, [filename], "yank release")

    def unyank(self, serial: int, filename: str) -> None:
        self._end(yanked_intervals, serial, [filename], "unyank release")

    def store(self, records: Iterable[DistributionRecord]) -> None:
        """Store these records as reads of their files, in one transaction."""
        reads = [FinishedRead(self._files[record.filename], ReadOutcome.DATA, record) for record in records]
        with self.catalog.write() as connection:
            store_reads(connection, reads, 0.0)

    def read(self, filename: str, modules: tuple[str, ...] | None, requires_dist: tuple[str, ...] | None) -> int:
        """Read the file after its change was logged. Return the serial at which the read is published."""
        record = DistributionRecord(
            filename,
            DistributionKind.SDIST,
            None,
            None,
            modules=modules,
            requires_dist=requires_dist,
            entry_points=_entry_points(modules),
        )
        file_id = self._files[filename]
        with self.catalog.write() as connection:
            store_reads(connection, [FinishedRead(file_id, ReadOutcome.DATA, record)], 0.0)
            logged = select(func.max(changes.c.logged_serial)).where(changes.c.distribution_id == file_id)
            return int(connection.scalar(logged) or 0)

    def reprocess(self, filename: str, modules: tuple[str, ...] | None, requires_dist: tuple[str, ...] | None) -> None:
        """Replace the data read from the file. This is not a change, and nothing is logged."""
        with self.catalog.write() as connection:
            connection.execute(
                update(distribution_data)
                .where(distribution_data.c.distribution_id == self._files[filename])
                .values(_lists(connection, modules, requires_dist))
                .values(details=_details(modules), shared_details_id=None)
            )

    def _begin(self, intervals: Table, serial: int, filenames: Iterable[str], cause: str) -> None:
        with self.catalog.write() as connection:
            for filename in filenames:
                connection.execute(insert(intervals).values(distribution_id=self._files[filename], start=serial))
                self._log(connection, serial, filename, cause)

    def _end(self, intervals: Table, serial: int, filenames: Iterable[str], cause: str) -> None:
        with self.catalog.write() as connection:
            for filename in filenames:
                of_file = intervals.c.distribution_id == self._files[filename]
                connection.execute(update(intervals).where(of_file, intervals.c.end.is_(None)).values(end=serial))
                self._log(connection, serial, filename, cause)

    def _log(self, connection: Connection, serial: int, filename: str, cause: str) -> None:
        row = {"distribution_id": self._files[filename], "serial": serial, "cause": cause, "logged_serial": serial}
        connection.execute(insert(changes).values(**row))


def _entry_points(modules: tuple[str, ...] | None) -> dict[str, dict[str, str]]:
    """Return console scripts: a command for each module, with the module's name."""
    return {"console_scripts": {module: f"{module}:main" for module in modules}} if modules else {}


def _details(
    modules: tuple[str, ...] | None,
    stubs: tuple[str, ...] = (),
    import_names: tuple[str, ...] | None = None,
    refusals: tuple[str, ...] = (),
) -> str:
    details: dict[str, object] = {} if modules is None else {"entry_points": _entry_points(modules)}
    if stubs:
        details["stubs"] = stubs
    if import_names is not None:
        details["import_names"] = import_names
    if refusals:
        details["refusals"] = refusals
    return json.dumps({"provides_extra": [], **details})


def _lists(
    connection: Connection, modules: tuple[str, ...] | None, requires_dist: tuple[str, ...] | None
) -> dict[str, int | None]:
    lists = store_lists(
        connection, [] if requires_dist is None else [requires_dist], [] if modules is None else [modules]
    )
    return {
        "requires_dist_id": None if requires_dist is None else lists[requires_dist],
        "modules_id": None if modules is None else lists[modules],
    }


def small_catalog(folder: Path, url: str | None = None, clock: Callable[[], float] = time.time) -> SmallCatalog:
    """Create an empty catalog below `folder`, or in the database at `url`. `.catalog.close()` closes it."""
    catalog = open_catalog(url or sqlite_database(folder / "catalog.sqlite"), clock)
    with catalog.write() as connection:
        connection.execute(
            insert(catalog_state).values(
                id=1,
                index_url="https://index.example.org/simple/",
                events_since=0,
                events_through=0,
                exact_from=0,
                next_dump_sequence=1,
            )
        )
    return SmallCatalog(catalog)


def continued(catalog: Catalog) -> SmallCatalog:
    """Wrap a catalog that `small_catalog` created and that already has files."""
    with catalog.read() as connection:
        ids = [connection.scalar(select(func.max(table.c.id))) or 0 for table in (projects, releases, distributions)]
        files = connection.execute(select(distributions.c.filename, distributions.c.id))
        return SmallCatalog(catalog, itertools.count(max(ids) + 1), {row.filename: row.id for row in files})
