"""Measure the growth of the catalog in a year, table by table: fill one with a full crawl, and then with a year.

    python -m benchmarks.size_account SCALE --folder FOLDER
    python -m benchmarks.size_account --table FOLDER ...

The rows come from pypi_size, without the largest project, which has the same size at every scale. But the indexes
exist before the year begins, so they grow as in a live catalog. Ranges are as short as on the whole index, so each
change has its own visit at every scale. After each week of the year, `prune` runs with the default settings, followed
by a vacuum. At the end each project is folded once, which creates the checkpoints that visits would have made.

FOLDER gets the figures in account.json, and they are printed, extrapolated to the size of PyPI. The second form prints
the figures of several folders.
"""

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select

from benchmarks.pypi_size import WORKERS, enter_state, make_database, prepare_tables, server
from benchmarks.size_filling import PERIODS, BulkFill, connect, make_constraints
from benchmarks.size_projects import PROJECTS, RANGES, SERIALS_BEFORE, IndexPlan, plan_index
from benchmarks.size_rows import YEAR_S, CatalogRows
from pypi_assets.catalog import pruning
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.derived.visits import recompute_stored
from pypi_assets.catalog.publications.dump_columns import COLUMNS, DumpKind
from pypi_assets.catalog.publications.dump_registry import DumpState
from pypi_assets.catalog.tables import dump_files, dumps, leveldb_builds, leveldb_versions, metadata, sightings
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.settings import load_settings
from pypi_assets.storage.store import open_storage
from pypi_assets.upkeep.deletion import DeletionChain, kept_from

ENDED_AT = 1_800_000_000.0
FILES_AND_EVENTS = (
    *("events", "releases", "distributions", "distribution_data", "live_intervals", "name_lists", "module_roots"),
    *("required_names", "shared_details", "extract_packs"),
)
"""The tables of new files, their releases and events, and of the data from files. All other tables are counted."""
_BY_PROJECT = (
    *("projects", "visits", "visit_statuses", "sightings", "snapshots", "changes", "yanked_intervals", "read_attempts"),
    *("checkpoints", "visit_statistics", *FILES_AND_EVENTS),
)
"""The tables that grow with the number of projects. Others have a constant number of rows, or some for each range."""
LOGS = ("visits", "visit_statuses", "read_attempts")
"""Rows are deleted by age, but some stay for long, so pages of indexes never become empty."""
_FOLDED_AT_ONCE = 20

Sizes = dict[str, dict[str, int]]


@dataclass
class YearClock:
    """The time in unix seconds, which is the catalog's clock."""

    now: float = field(default=ENDED_AT - YEAR_S)

    def __call__(self) -> float:
        return self.now


def read_sizes(url: str) -> Sizes:
    """Return the bytes of each table and of its indexes, and its rows."""
    query = "SELECT pg_table_size('{0}'), pg_indexes_size('{0}'), (SELECT count(*) FROM {0})"
    found = {}
    with connect(url) as connection:
        for table in metadata.sorted_tables:
            row = connection.execute(query.format(table.name)).fetchone()
            assert row is not None
            found[table.name] = dict(zip(("table", "indexes", "rows"), map(int, row), strict=True))
    return found


def fill_by_periods(url: str, folder: Path, plan: IndexPlan, worker: int, turn: Barrier) -> None:
    """Send the full crawl, then a part of the year at each `turn`, one worker after the other, so that ids ascend."""
    fill = BulkFill(url, folder / "rows", worker)
    CatalogRows(fill, plan, worker, WORKERS, ENDED_AT, first=1).make()
    fill.end_crawl()
    turn.wait()
    for period in range(1, PERIODS + 1):
        for sending in range(WORKERS):
            turn.wait()
            if sending == worker:
                fill.send_period(period)
        turn.wait()
    fill.close()


def publish(connection: Connection, plan: IndexPlan, numbers: Sequence[int]) -> None:
    """Insert the rows of a dump for each of these ranges, and of a version of each dataset, which are now
    superseded.
    """
    columns = json.dumps(list(COLUMNS))
    ranges = [(number, plan.range_end(number - 1), plan.range_end(number)) for number in numbers]
    times = {number: ENDED_AT - YEAR_S + YEAR_S * number / plan.ranges for number in numbers}
    shared = {"kind": DumpKind.INCREMENTAL, "shards": 1, "state": DumpState.DROPPED, "inputs": "[]", "columns": columns}
    connection.execute(
        insert(dumps),
        [
            {"id": number + 1, "start": start, "end": end, "directory": f"{start}-{end}", "sequence": number + 1}
            | {"opened_at": times[number], "committed_at": times[number]}
            | shared
            for number, start, end in ranges
        ],
    )
    file = {"shard": 0, "name": "00000.jsonl.gz", "rows": 100, "size": 10_000, "sha256": "0" * 64, "frozen": True}
    connection.execute(insert(dump_files), [{"dump_id": number + 1} | file for number in numbers])
    versions = [{"version": number + 1, "requested_at": times[number], "serial": end} for number, _start, end in ranges]
    connection.execute(insert(leveldb_versions), versions)
    builds = [
        {"dataset": dataset, "version": number + 1, "directory": f"{number + 1:05d}", "base_version": number}
        | {"started_at": times[number], "published_at": times[number], "serial": end}
        for number, _start, end in ranges
        for dataset in DATASETS
    ]
    connection.execute(insert(leveldb_builds), builds)


def vacuum(url: str) -> None:
    with connect(url) as connection:
        connection.execute("VACUUM (ANALYZE)")


def fold_all(catalog: Catalog) -> None:
    """Fold each project that was seen. This stores the checkpoints of large projects."""
    with catalog.read() as connection:
        ids = list(connection.scalars(select(sightings.c.project_id).distinct().order_by(sightings.c.project_id)))
    for at in range(0, len(ids), _FOLDED_AT_ONCE):
        catalog.transact(partial(recompute_stored, project_ids=ids[at : at + _FOLDED_AT_ONCE]))


def live_a_year(url: str, folder: Path, plan: IndexPlan, turn: Barrier) -> dict[str, Sizes]:
    """Make the workers send the full crawl and the year, and return the sizes before and after the year."""
    turn.wait()
    make_constraints(url, folder)
    before = read_sizes(url)
    enter_state(url, plan, ENDED_AT)
    clock = YearClock()
    catalog = open_catalog(url, clock)
    settings = load_settings(database_url=url, home=folder, contact="benchmark@example.org")
    chain = DeletionChain(catalog, open_storage((folder / "storage").as_uri()), kept_from(settings))
    for period in range(1, PERIODS + 1):
        for _ in range(WORKERS + 1):
            turn.wait()
        clock.now = ENDED_AT - YEAR_S * (PERIODS - period) / PERIODS
        numbers = range(plan.ranges * (period - 1) // PERIODS, plan.ranges * period // PERIODS)
        catalog.transact(partial(publish, plan=plan, numbers=numbers))
        pruned = chain.clean_rows()
        vacuum(url)
        print(f"week {period}: {sum(pruned.values())} rows pruned", flush=True)
    fold_all(catalog)
    catalog.close()
    after = read_sizes(url)
    with connect(url) as connection:
        for name in LOGS:
            connection.execute(f"REINDEX TABLE {name}")  # type: ignore[arg-type]
    return {"before": before, "after": after, "reindexed": read_sizes(url)}


def take_account(scale: float, folder: Path) -> None:
    """Fill a catalog on a new server in `folder`, and write the figures there."""
    (folder / "storage").mkdir(parents=True, exist_ok=True)
    plan = plan_index(scale, start=SERIALS_BEFORE, ranges=RANGES)
    # otherwise, a few projects would keep all their visits
    pruning.FIRST_VISITS_KEPT = round(pruning.FIRST_VISITS_KEPT * scale)
    context = get_context("spawn")
    turn = context.Barrier(WORKERS + 1)
    with server(folder) as (url, _):
        make_database(url)
        prepare_tables(url, folder)
        # parts of the year are sent table by table, and only the complete year satisfies the constraints
        with connect(url) as connection:
            connection.execute("ALTER DATABASE pypi_size SET session_replication_role = replica")
        workers = [
            context.Process(target=fill_by_periods, args=(url, folder, plan, worker, turn)) for worker in range(WORKERS)
        ]
        for one in workers:
            one.start()
        try:
            found = live_a_year(url, folder, plan, turn)
        finally:
            turn.abort()
            for one in workers:
                one.join()
    figures = {"scale": scale, "projects": plan.projects - 1, "ranges": plan.ranges, **found}
    (folder / "account.json").write_text(json.dumps(figures, indent=1))
    for name in ("postgresql", "rows"):
        shutil.rmtree(folder / name)


@dataclass(frozen=True, slots=True)
class Added:
    """The growth of a table in the year on the whole index: rows, and bytes with its indexes."""

    table: str
    rows: float
    size: float
    size_of_indexes: float


def year_of(figures: Mapping[str, Any], until: str = "after") -> list[Added]:
    """Return the growth of each table in the year on the whole index, the largest first."""
    found = []
    for name, after in figures[until].items():
        before = figures["before"][name]
        factor = PROJECTS / figures["projects"] if name in _BY_PROJECT else RANGES / figures["ranges"]
        table, indexes, rows = ((after[key] - before[key]) * factor for key in ("table", "indexes", "rows"))
        found.append(Added(name, rows, table + indexes, indexes))
    return sorted(found, key=lambda one: -one.size)


def print_account(folders: Sequence[Path]) -> None:
    """Print the accounts of the folders next to each other."""
    accounts = [json.loads((folder / "account.json").read_text()) for folder in folders]
    years = [{one.table: one for one in year_of(account)} for account in accounts]
    print(
        "| table | "
        + " | ".join(f"from {account['scale']}: rows | MB | of these indexes" for account in accounts)
        + " |"
    )
    print("|---" * (3 * len(accounts) + 1) + "|")
    for is_counted in (True, False):
        names = [name for name in years[-1] if (name not in FILES_AND_EVENTS) == is_counted]
        for name in names:
            cells = (
                f"{year[name].rows:,.0f} | {year[name].size / 1e6:,.1f} | {year[name].size_of_indexes / 1e6:,.1f}"
                for year in years
            )
            print(f"| `{name}` | " + " | ".join(cells) + " |")
        sums = (f" | {sum(year[name].size for name in names) / 1e6:,.0f} | " for year in years)
        print(f"| {'all that is counted' if is_counted else 'files and events'} | " + " | ".join(sums) + " |")
    for account in (one for one in accounts if "reindexed" in one):
        logs = {one.table: one for one in year_of(account, "reindexed") if one.table in LOGS}
        cells = (f"{name}: {logs[name].size / 1e6:,.0f} MB" for name in LOGS)
        print(f"From {account['scale']}, after a REINDEX: {', '.join(cells)}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scale", type=float, nargs="?", help="share of PyPI's size; 1.0 is all of PyPI")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--table", type=Path, nargs="+", metavar="FOLDER", help="print the accounts of these folders")
    options = parser.parse_args(arguments)
    if options.table:
        print_account(options.table)
    elif options.scale is None or options.folder is None:
        parser.error("name a scale and a folder")
    else:
        take_account(options.scale, options.folder.resolve())
        print_account([options.folder])


if __name__ == "__main__":
    main()
