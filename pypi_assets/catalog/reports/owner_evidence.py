"""What the owners of modules are ranked by, as the catalog has it at a serial."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from pypi_assets.catalog.database import Catalog, at_a_time, read_by_index, storable
from pypi_assets.catalog.observed.followed import answered_at
from pypi_assets.catalog.publications.dump_rows import holds_at, requiring_releases, rows_at, stream_rows
from pypi_assets.catalog.reads.past_generations import counts_later, has_past_generations, rejected_then
from pypi_assets.catalog.reads.stored_lists import StoredLists
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    live_intervals,
    module_roots,
    projects,
    releases,
    required_names,
    yanked_intervals,
)
from pypi_assets.index.models import LONGEST_NAME

_ROWS_AT_A_TIME = 1_000


class LiveFile(NamedTuple):
    """A file that is live at a serial, since which one, and whether it was yanked then. No installer takes it if it
    `is_rejected`.
    """

    distribution_id: int
    normalized: str
    filename: str
    version: str
    live_since: int
    yanked: bool
    is_rejected: bool


def lists_with_modules(connection: Connection, modules: Collection[str]) -> dict[str, list[int]]:
    """The ids of the lists that hold each of the modules. Each list is read once, however many of them it may hold."""
    wanted: dict[str, set[str]] = {}
    for module in modules:
        wanted.setdefault(storable(module.partition(".")[0][:LONGEST_NAME]), set()).add(module)
    found: dict[str, list[int]] = {module: [] for module in modules}
    for root, of_root in wanted.items():
        ids = connection.scalars(select(module_roots.c.list_id).where(module_roots.c.name == root)).all()
        for some in at_a_time(ids):
            for list_id, names in StoredLists(connection).load(some).items():
                for module in of_root.intersection(names):
                    found[module].append(list_id)
    return found


def live_files_of(catalog: Catalog, serial: int, normalized: Iterable[str]) -> Iterator[LiveFile]:
    """The files of these projects that are live at `serial`."""
    live, yanked = live_intervals, yanked_intervals
    query = (
        select(
            distributions.c.id,
            projects.c.normalized,
            distributions.c.filename,
            releases.c.version,
            live.c.start,
            yanked.c.start.label("yanked"),
            distribution_data.c.is_rejected,
        )
        .select_from(projects)
        .join(distributions, distributions.c.project_id == projects.c.id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
        .join(live, (live.c.distribution_id == distributions.c.id) & holds_at(live.c.start, live.c.end, serial))
        .outerjoin(
            yanked,
            (yanked.c.distribution_id == distributions.c.id) & holds_at(yanked.c.start, yanked.c.end, serial),
        )
    )
    with catalog.read() as connection:
        query = query.where(answered_at(connection, projects.c.id, serial))
        read_by_index(connection)
        wanted = sorted(normalized)
        was = rejected_then(connection, serial, wanted)
        for some in at_a_time(wanted):
            of_some = query.where(projects.c.normalized.in_(some))
            for row in connection.execution_options(yield_per=_ROWS_AT_A_TIME).execute(of_some):
                is_rejected = was.get(row.id, row.is_rejected)
                is_yanked = row.yanked is not None
                yield LiveFile(row.id, row.normalized, row.filename, row.version, row.start, is_yanked, is_rejected)


def rows_of_files(catalog: Catalog, serial: int, distribution_ids: Iterable[int]) -> Iterator[dict[str, Any]]:
    """The rows, as dumps have them, of these files that are live at `serial`."""
    query = rows_at(catalog, serial).where(live_intervals.c.start.is_not(None))
    for some in at_a_time(sorted(distribution_ids)):
        yield from stream_rows(catalog, query.where(distributions.c.id.in_(some)), serial)


def rows_of_projects(catalog: Catalog, serial: int, normalized: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The same of all files of these projects."""
    query = rows_at(catalog, serial).where(live_intervals.c.start.is_not(None))
    for some in at_a_time(sorted(normalized)):
        yield from stream_rows(catalog, query.where(projects.c.normalized.in_(some)), serial)


def count_dependents(catalog: Catalog, serial: int, normalized: Iterable[str]) -> dict[str, int]:
    """How many projects have a file live at `serial` that requires each of these; without those that none requires."""
    names = sorted(normalized)
    live, data, required = live_intervals, distribution_data, required_names
    query = (
        select(required.c.name, func.count(distributions.c.project_id.distinct()))
        .select_from(required)
        .join(data, data.c.requires_dist_id == required.c.list_id)
        .join(live, live.c.distribution_id == data.c.distribution_id)
        .join(distributions, distributions.c.id == data.c.distribution_id)
        .where(
            holds_at(live.c.start, live.c.end, serial),
            ~counts_later(data.c.distribution_id, serial),
            ~data.c.is_rejected,
        )
        .group_by(required.c.name)
    )
    with catalog.read() as connection:
        if not has_past_generations(connection):
            query = query.where(answered_at(connection, distributions.c.project_id, serial))
            read_by_index(connection)
            return {
                name: count
                for some in at_a_time(names)
                for name, count in connection.execute(query.where(required.c.name.in_(some)))
            }
    counted = ((name, {row[0] for row in requiring_releases(catalog, serial, name)}) for name in names)
    return {name: len(found) for name, found in counted if found}
