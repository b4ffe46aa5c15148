"""The changes of files that are logged in a range, in batches with everything that records of the journal need of them.

Several streams of the journal are made from one batch, so the catalog is read once for all of them.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sqlalchemy import Connection, Table, and_, exists, select

from pypi_assets.catalog.database import bare_rows, sent_values
from pypi_assets.catalog.derived.stored_files import interval_rows
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_rows import Contents, DumpedFile, dumped_files
from pypi_assets.catalog.reads.past_generations import has_past_generations, replaced_files
from pypi_assets.catalog.tables import (
    changes,
    distributions,
    events,
    live_intervals,
    projects,
    releases,
    yanked_intervals,
)

FILES_AT_A_TIME = 4_000
Span = tuple[int, int | None]
"""The serials from the first one up to, but not including, the second one; None if the interval has not ended."""


class LoggedFile(NamedTuple):
    """A logged change of a file. `is_repeated`: it is also logged at its own serial."""

    logged_serial: int
    serial: int
    cause: str
    is_repeated: bool
    distribution_id: int
    project_id: int
    project: str
    normalized: str
    version: str
    filename: str


@dataclass(frozen=True, slots=True)
class Times:
    """The events at some serials, and the time of each serial: the time of the last event up to it."""

    events: dict[int, tuple[int, str]]
    seconds: dict[int, int | None]

    @classmethod
    def of(cls, connection: Connection, serials: Collection[int]) -> "Times":
        """Return the events and times of `serials`. An event is given by the id of its project, and its action."""
        found: dict[int, tuple[int, str]] = {}
        seconds: dict[int, int | None] = {}
        wanted = sorted(serials)
        if wanted:
            c = events.c
            sent = sent_values(connection, c.serial, wanted)
            query = select(c.serial, c.timestamp, c.project_id, c.action)
            query = query.select_from(sent).join(events, c.serial == sent.c.value)
            for serial, timestamp, project_id, action in bare_rows(connection, query):
                found[serial] = project_id, action
                seconds[serial] = timestamp
        for serial in wanted:
            if serial not in found:
                before = select(events.c.timestamp).where(events.c.serial < serial).order_by(events.c.serial.desc())
                seconds[serial] = connection.scalar(before.limit(1))
        return cls(found, seconds)


@dataclass
class LoggedBatch:
    """Some consecutive changes of files. What records need of them is read when it is first used.

    `replaced` are the distributions whose content was replaced under the same name at some time.
    """

    connection: Connection
    files: Sequence[LoggedFile]
    has_past: bool

    @cached_property
    def ids(self) -> list[int]:
        """The distributions, in order."""
        return sorted({file.distribution_id for file in self.files})

    @cached_property
    def stored(self) -> dict[int, DumpedFile]:
        """The present facts and contents of the distributions."""
        return dumped_files(self.connection, self.ids)

    @cached_property
    def replaced(self) -> set[int]:
        return replaced_files(self.connection, self.ids) if self.has_past else set()

    @cached_property
    def live(self) -> dict[int, list[Span]]:
        """When the distributions were live. Those that never were are missing."""
        return spans_of(self.connection, live_intervals, self.ids)

    @cached_property
    def yanked(self) -> dict[int, list[Span]]:
        return spans_of(self.connection, yanked_intervals, self.ids)

    @cached_property
    def times(self) -> Times:
        return Times.of(self.connection, {file.serial for file in self.files})

    def facts(self, file: LoggedFile) -> DumpedFile:
        """Return the facts of the content that counted when the change was logged."""
        stored = self.stored[file.distribution_id]
        if file.distribution_id not in self.replaced:
            return stored
        return Contents(self.connection, file.logged_serial).loaded([stored])[0]


def logged_batches(connection: Connection, serials: SerialRange) -> Iterator[LoggedBatch]:
    """Yield the changes of files that are logged in a range.

    They are ordered by logged serial, serial, project and file.
    """
    own = changes.alias()
    is_repeated = and_(
        changes.c.logged_serial != changes.c.serial,
        exists().where(
            own.c.distribution_id == changes.c.distribution_id,
            own.c.serial == changes.c.serial,
            own.c.logged_serial == changes.c.serial,
        ),
    )
    query = (
        select(
            changes.c.logged_serial,
            changes.c.serial,
            changes.c.cause,
            is_repeated.label("is_repeated"),
            distributions.c.id,
            projects.c.id.label("project_id"),
            projects.c.name,
            projects.c.normalized,
            releases.c.version,
            distributions.c.filename,
        )
        .join(distributions, distributions.c.id == changes.c.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .where(changes.c.logged_serial > serials.start, changes.c.logged_serial <= serials.end)
        .order_by(
            changes.c.logged_serial,
            changes.c.serial,
            projects.c.normalized,
            distributions.c.filename,
            changes.c.cause,
        )
    )
    has_past = has_past_generations(connection)
    result = connection.execution_options(yield_per=FILES_AT_A_TIME).execute(query)
    for partition in result.partitions():
        yield LoggedBatch(connection, [LoggedFile._make(row) for row in partition], has_past)


def spans_of(connection: Connection, table: Table, distribution_ids: Sequence[int]) -> dict[int, list[Span]]:
    """Return the stored intervals of these distributions, in order, by id. Distributions without any are omitted."""
    found: dict[int, list[Span]] = {}
    for distribution_id, start, end in interval_rows(connection, table, distribution_ids):
        if distribution_id in found:
            found[distribution_id].append((start, end))
        else:
            found[distribution_id] = [(start, end)]
    return found


def is_begun(file: LoggedFile, live: Sequence[Span]) -> bool:
    """Check whether the file became live by this change."""
    if file.is_repeated:
        return False
    for start, _ in live:  # noqa: SIM110 -- a generator takes three times as long
        if start == file.serial:
            return True
    return False
