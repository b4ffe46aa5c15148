"""An index in this process with the projects of a filled catalog, which answers from memory without delay.

New releases appear when they are requested. The content of their files is made up from their project's number.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, BinaryIO

from sqlalchemy import func, select

from benchmarks.generated import Project, project_lists
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.stored_files import load_files
from pypi_assets.catalog.observed.events import events_through, last_event
from pypi_assets.catalog.tables import distributions, events, live_intervals, projects, yanked_intervals
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.reader_pool import FinishedReading
from pypi_assets.distributions.record import DistributionKind, DistributionRecord
from pypi_assets.index.models import ChangelogEvent, FetchedBytes, IndexFile, ListedProject, ProjectPage
from pypi_assets.index.protocol import Observation, Report
from pypi_assets_tests.model_index import EmptyRanges, ModelReaders

URL = "https://index.example.org/simple/"
_RELEASE_EVENTS = 3


@dataclass
class AnsweringIndex:
    """The interface of an index for a crawl, with the projects of `catalog`.

    `drifted` are projects whose page has a newer serial than the catalog knows, without an event.
    """

    catalog: Catalog
    index_url: str = URL
    changelog_url: str = "https://index.example.org/pypi"
    log: list[ChangelogEvent] = field(default_factory=list)
    pages: dict[str, ProjectPage] = field(default_factory=dict)
    drifted: set[str] = field(default_factory=set)
    serial: int = 0
    is_observed: bool = False

    def __post_init__(self) -> None:
        with self.catalog.read() as connection:
            self.serial = events_through(connection)
            if (last := last_event(connection)) is not None:
                self.log.append(last)

    def observe(self, _: Report, **__: bool) -> Observation:
        """Return an empty observation, because this index has serials."""
        return Observation()

    def release(self, name: str) -> None:
        """Add a new release of a project with a wheel and an sdist, in three events. Its version is new."""
        normalized, version = name.lower(), f"{self.serial}.0"
        stem = normalized.replace("-", "_")
        page = self.pages.get(normalized) or self._known_page(normalized)
        filenames = (f"{stem}-{version}-py3-none-any.whl", f"{stem}-{version}.tar.gz")
        actions = ("new release", f"add py3 file {filenames[0]}", f"add source file {filenames[1]}")
        for action in actions:
            self.serial += 1
            at = int(self.catalog.clock())
            self.log.append(ChangelogEvent(name, version, at, action, self.serial))
        files = (*page.files, *(_new_file(filename) for filename in filenames))
        self.pages[normalized] = replace(page, last_serial=self.serial, files=files)

    def drift(self, name: str) -> None:
        """Give the project's page the index's serial from now on, without an event of the project."""
        normalized = name.lower()
        self.pages[normalized] = replace(self.project_page(normalized), last_serial=self.serial)
        self.drifted.add(normalized)

    def _known_page(self, normalized: str) -> ProjectPage:
        """Return the page as the catalog knows it."""
        with self.catalog.read() as connection:
            project = connection.execute(select(projects).where(projects.c.normalized == normalized)).one()
            of_project = select(distributions.c.id).where(distributions.c.project_id == project.id)
            live, yanked = (
                set(
                    connection.scalars(
                        select(table.c.distribution_id).where(
                            table.c.distribution_id.in_(of_project), table.c.end.is_(None)
                        )
                    )
                )
                for table in (live_intervals, yanked_intervals)
            )
            last = connection.scalar(select(func.max(events.c.serial)).where(events.c.project_id == project.id))
            stored = load_files(connection, [project.id])[project.id]
        files = tuple(
            IndexFile(filename, yanked=file.id in yanked, **file.facts._asdict())
            for filename, file in stored.items()
            if file.id in live
        )
        return ProjectPage(normalized, max(last or 0, project.page_serial), project.status, files)

    # the interface for a crawl

    def last_serial(self) -> int:
        return self.serial

    def changelog(self, since: int, until: int) -> Iterator[list[ChangelogEvent]]:
        if found := [event for event in self.log if since < event.serial <= max(until, self.serial)]:
            yield found

    def project_page(self, project: str) -> ProjectPage:
        if project not in self.pages:
            self.pages[project] = self._known_page(project)
        return self.pages[project]

    @contextmanager
    def iter_listing(self) -> Iterator[tuple[int | None, Iterator[ListedProject]]]:
        yield self.serial, self._listed()

    def _listed(self) -> Iterator[ListedProject]:
        with self.catalog.read() as connection:
            latest = select(func.max(events.c.serial)).where(events.c.project_id == projects.c.id).scalar_subquery()
            query = select(projects.c.name, projects.c.normalized, projects.c.page_serial, latest)
            for name, normalized, page_serial, last in connection.execution_options(yield_per=5_000).execute(query):
                known = max(page_serial or 0, last or 0)
                yield ListedProject(name, self.serial if normalized in self.drifted else known)

    def stream_file(
        self, url: str, consume: Callable[[BinaryIO], Any], *, sha256: str | None, size: int | None, max_bytes: int
    ) -> tuple[Any, FetchedBytes]:
        del url, sha256, size, max_bytes
        return consume(BytesIO()), FetchedBytes(0, 1, 0.0)

    @contextmanager
    def open_ranges(self, url: str, **_: object) -> Iterator[EmptyRanges]:
        del url
        yield EmptyRanges()


class MadeUpReaders(ModelReaders):
    """Readers that make up a file's record and its extract."""

    def read(
        self,
        _source: object,
        filename: str,
        *,
        project: str | None,
        kind: DistributionKind | None = None,
        extract_first: bool = False,
    ) -> FinishedReading:
        del kind, extract_first
        parts = parse_filename(filename, project)
        number = re.search(r"(\d+)$", project or "0")
        lists = project_lists(Project(0, int(number[1]) if number else 0, 1, (), 1), int(self._release(parts.version)))
        record = DistributionRecord(
            filename,
            parts.kind,
            parts.project,
            parts.version,
            requires_dist=lists.requires_dist,
            modules=lists.modules,
            modules_by="archive",
            requires_by="METADATA",
        )
        return FinishedReading(record, hashlib.sha512(filename.encode()).digest() * 14)

    @staticmethod
    def _release(version: str | None) -> str:
        return (version or "0").partition(".")[0]


def active_projects(catalog: Catalog, count: int, seed: int) -> list[str]:
    """Return the display names of some projects, each once. Projects with many events are drawn more often."""
    with catalog.read() as connection:
        first, last = connection.execute(select(func.min(events.c.serial), func.max(events.c.serial))).one()
        step = max((last - first) // (4 * count + 1), 1)
        serials = [first + (seed * 7_919 + at * step) % (last - first + 1) for at in range(4 * count)]
        query = (
            select(projects.c.name)
            .join(events, events.c.project_id == projects.c.id)
            .where(events.c.serial.in_(serials), projects.c.id != 1)
            .order_by(events.c.serial)
        )
        return list(dict.fromkeys(connection.scalars(query)))[:count]


def release_each(index: AnsweringIndex, names: Sequence[str]) -> int:
    """Add a new release of each of the projects; return the number of events."""
    for name in names:
        index.release(name)
    return len(names) * _RELEASE_EVENTS


def _new_file(filename: str) -> IndexFile:
    digest = hashlib.sha256(filename.encode()).hexdigest()
    return IndexFile(
        filename=filename,
        url=f"https://files.example.org/packages/{digest[:2]}/{filename}",
        sha256=digest,
        size=100_000,
        uploaded_at="2026-01-02T03:04:05.678901Z",
        requires_python=">=3.9",
        yanked=False,
        yanked_reason=None,
        core_metadata=False,
        core_metadata_sha256=None,
    )
