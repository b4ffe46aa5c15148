"""A catalog on SQLite that tests fill by hand, file by file, with ranges and changes at chosen serials."""

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from packaging.utils import canonicalize_name
from sqlalchemy import Connection, insert, select, update

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger import ask_range, complete_range
from pypi_assets.catalog.lists import store_lists
from pypi_assets.catalog.ranges import SerialRange
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


@dataclass
class SmallCatalog:
    """`catalog`, and what puts files into it; every method happens at a serial and is logged as a change there."""

    catalog: Catalog
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _files: dict[str, int] = field(default_factory=dict)

    def complete(self, end: int) -> SerialRange:
        """The next range of the ledger, complete up to `end`."""
        with self.catalog.write() as connection:
            serials = ask_range(connection, end, 0.0)
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
            lists = store_lists(
                connection,
                [] if requires_dist is None else [requires_dist],
                [] if modules is None else [modules],
            )
            connection.execute(
                insert(distribution_data).values(
                    distribution_id=file_id,
                    outcome="data" if modules is not None else "error",
                    error_kind=None if modules is not None else "corrupt archive",
                    extractor_version=1,
                    metadata_version="2.1",
                    requires_dist_id=None if requires_dist is None else lists[requires_dist],
                    modules_id=None if modules is None else lists[modules],
                    details=json.dumps({"provides_extra": []}),
                )
            )
            connection.execute(insert(live_intervals).values(distribution_id=file_id, start=serial))
            self._log(connection, serial, filename, "add file")

    def remove(self, serial: int, filename: str) -> None:
        with self.catalog.write() as connection:
            connection.execute(
                update(live_intervals)
                .where(live_intervals.c.distribution_id == self._files[filename])
                .values(end=serial)
            )
            self._log(connection, serial, filename, "remove file")

    def yank(self, serial: int, filename: str) -> None:
        with self.catalog.write() as connection:
            connection.execute(insert(yanked_intervals).values(distribution_id=self._files[filename], start=serial))
            self._log(connection, serial, filename, "yank release")

    def _log(self, connection: Connection, serial: int, filename: str, cause: str) -> None:
        row = {"distribution_id": self._files[filename], "serial": serial, "cause": cause, "logged_serial": serial}
        connection.execute(insert(changes).values(**row))


def small_catalog(folder: Path, url: str | None = None) -> SmallCatalog:
    """An empty catalog below `folder`, or in the database at `url`; `.catalog.close()` ends it."""
    catalog = open_catalog(url or f"sqlite:///{folder / 'catalog.sqlite'}")
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
