"""Measure the time and the memory to find out which of the most-required projects can be installed.

    python -m benchmarks.solvability [--projects 3000] [--resolved 1000] [--removed 5] [--database URL]

The index comes from closures.py, over 200 days. On the last day some projects that others require are removed, so that
these others lose their solutions, and the events are searched for. The last but one day is made first, without a file
of the day before, so each of its resolutions is made for two days. The last day is made from the file of the day
before, as the schedule does. All of this uses the function that the asset calls.
"""

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from sqlalchemy import func, insert, select, update

from benchmarks.closures import graph, project_name, rows
from benchmarks.filled_catalog import fill_catalog
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.tables import (
    catalog_state,
    distributions,
    events,
    full_crawls,
    live_intervals,
    projects,
    releases,
)
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.index.actions import Action
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup import DepgraphReader, open_latest
from pypi_assets.resolve.solvability import Solvability, publish_day
from pypi_assets.storage.store import Storage, open_storage

DAYS, SERIALS_A_DAY = 200, 5_000
FIRST = date(2026, 1, 1)
SERIALS = DAYS * SERIALS_A_DAY
_FIRST_REMOVED = 100
"""The lowest number of a removed project. Projects below it have the most dependents: few solutions would remain."""


def add_events(catalog: Catalog) -> int:
    """Add an event for each release that was uploaded at a serial; return the number of events."""
    with catalog.write() as connection:
        uploads = connection.execute(
            select(
                live_intervals.c.start,
                func.min(releases.c.id).label("release_id"),
                func.min(distributions.c.filename).label("filename"),
            )
            .join(distributions, distributions.c.id == live_intervals.c.distribution_id)
            .join(releases, releases.c.id == distributions.c.release_id)
            .group_by(live_intervals.c.start)
        ).all()
        named = {
            row.id: row
            for row in connection.execute(
                select(releases.c.id, releases.c.version, releases.c.project_id, projects.c.name).join(
                    projects, projects.c.id == releases.c.project_id
                )
            )
        }
        found = [
            {
                "serial": upload.start,
                "project_id": named[upload.release_id].project_id,
                "name": named[upload.release_id].name,
                "version": named[upload.release_id].version,
                "timestamp": _second(upload.start),
                "action": f"add py3 file {upload.filename}",
                "kind": Action.ADD_FILE,
            }
            for upload in uploads
        ]
        connection.execute(insert(events), found)
        connection.execute(insert(full_crawls).values(serial=0, selection="[]", opened_at=0.0, completed_at=0.0))
        connection.execute(update(catalog_state).values(exact_from=1))
    return len(found)


def remove(catalog: Catalog, names: Sequence[str]) -> None:
    """Remove projects on the last day, each at a separate serial."""
    with catalog.write() as connection:
        first = SERIALS - SERIALS_A_DAY // 2
        taken = set(connection.scalars(select(events.c.serial).where(events.c.serial >= first)))
        free = (serial for serial in range(first, SERIALS) if serial not in taken)
        for name, serial in zip(names, free, strict=False):
            project_id = connection.scalar(select(projects.c.id).where(projects.c.normalized == name))
            files = select(distributions.c.id).where(distributions.c.project_id == project_id)
            since = live_intervals.c.start
            ended = update(live_intervals).where(live_intervals.c.distribution_id.in_(files), since < serial)
            connection.execute(ended.values(end=serial))
            removal = {"serial": serial, "project_id": project_id, "name": name, "version": None}
            removal |= {"timestamp": _second(serial), "action": "remove project", "kind": Action.REMOVE_PROJECT}
            connection.execute(insert(events), removal)


def measure(catalog: Catalog, storage: Storage, required: Sequence[tuple[str, int]], day: date) -> Solvability:
    """Make a day, and print its row."""
    resolutions = 0

    def note(count: int) -> None:
        nonlocal resolutions
        resolutions = count

    began, used = time.perf_counter(), time.process_time()
    made, size = publish_day(catalog, storage, required, day, note)
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    counts = made.counts
    print(
        f"| {day} | {resolutions:,} | {counts['solvable']:,} | {len(made.newly_unsolvable)} |"
        f" {len(made.newly_unsolvable) - made.without_search} | {seconds:.0f} | {processor:.0f} | {size / 1e6:.2f} |"
        f" {peak_mb():.0f} |",
        flush=True,
    )
    return made


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000


def _second(serial: int) -> int:
    """Return the time of a serial's event. The events of a day are spread over it."""
    day, number = divmod(serial - 1, SERIALS_A_DAY)
    start = datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC) + timedelta(days=day)
    return int(start.timestamp() + number * 86_400 / SERIALS_A_DAY)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", type=int, default=3_000)
    parser.add_argument("--resolved", type=int, default=1_000)
    parser.add_argument("--removed", type=int, default=5)
    parser.add_argument("--database", help="URL of an empty database; default: SQLite in a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pypi-assets-solvability-") as folder:
        home = Path(folder)
        catalog = open_catalog(options.database or f"sqlite:///{home / 'catalog.sqlite'}")
        files = fill_catalog(catalog, rows(graph(projects=options.projects), SERIALS))
        count = add_events(catalog)
        storage = open_storage((home / "storage").as_uri())
        full_dump(catalog, storage, 1)
        build_version("depgraph", storage=storage, catalog=catalog)
        with open_latest(DepgraphReader, storage, home / "opened") as depgraph:
            required = depgraph.most_required(options.resolved)
        remove(catalog, [project_name(_FIRST_REMOVED + number) for number in range(options.removed)])
        print(
            f"{options.projects:,} projects, {files:,} files, {count:,} events; the {len(required):,} most-required"
            f" projects; {peak_mb():.0f} MB before\n"
        )
        print(
            "| day | resolutions | solvable | newly unsolvable | of which searched | seconds | processor s | file, MB |"
            " peak MB |\n|---|---|---|---|---|---|---|---|---|"
        )
        last = FIRST + timedelta(days=DAYS - 1)
        for day in (last - timedelta(days=1), last):
            made = measure(catalog, storage, required, day)
        sizes = [len(one.pins) for project in made.projects for one in project.outcomes.values() if one.is_solvable]
        quantiles = statistics.quantiles(sizes, n=20)
        print(f"\nclosures: {statistics.median(sizes):.0f} in the median, {quantiles[18]:.0f} at the 95th percentile")
        catalog.close()


if __name__ == "__main__":
    main()
