"""Measure the dead rows that updates leave in PostgreSQL's tables, and the effect of other settings of these tables.

    python -m benchmarks.dead_rows [RANGES] [--projects 74000] [--updates 1500]

First it follows a generated index for some ranges. It prints for each table the rows inserted, updated and deleted, the
share of updates that needed no new entries in indexes (HOT), and the dead rows at the end. Then it updates the two
large tables that each visit updates, with a tenth of PyPI's projects and a tenth of a year's visits, with several
settings of these tables. It prints by how much tables and indexes grew. The server's autovacuum runs each second.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks.pypi_size import make_database, server
from benchmarks.size_filling import connect
from pypi_assets.catalog.database import open_catalog
from pypi_assets_tests.growing_catalog import GrowingCatalog

AT_ONCE = 120
PAUSE_S = 0.02
"""The pause between updates, so that the autovacuum can run."""
SETTINGS = {
    "as PostgreSQL has them": "",
    "no autovacuum": "autovacuum_enabled = off",
    "autovacuum at 2 % of dead rows": "autovacuum_vacuum_scale_factor = 0.02",
    "fillfactor 80": "fillfactor = 80",
}
TABLES = ("projects", "visit_statistics")
_FILLING = (
    """INSERT INTO projects (id, normalized, name, bucket, shard, known_since, page_serial, status)
       SELECT n, 'project-' || n, 'Project-' || n, n % 65536, n % 1000, 32000000, 31000000 + n, 'active'
       FROM generate_series(1, {0}) n""",
    """INSERT INTO visit_statistics
       (project_id, last_seen_at, last_visited_at, last_successful_at, last_outcome, successive_outcomes)
       SELECT n, 1.7e9 + n, 1.7e9 + n, 1.7e9 + n, 'full', 1 FROM generate_series(1, {0}) n""",
)
_UPDATES = (
    "UPDATE projects SET page_serial = %(serial)s WHERE id = ANY(%(ids)s)",
    """UPDATE visit_statistics SET last_seen_at = %(at)s, last_visited_at = %(at)s, last_successful_at = %(at)s,
       successive_outcomes = successive_outcomes + 1 WHERE project_id = ANY(%(ids)s)""",
)
_STATISTICS = """
SELECT relname, n_tup_ins, n_tup_upd, n_tup_hot_upd, n_tup_del, n_dead_tup, n_live_tup
FROM pg_stat_user_tables WHERE n_tup_upd + n_tup_del > 0 ORDER BY n_tup_upd + n_tup_del DESC
"""


@contextmanager
def new_database(url: str) -> Iterator[None]:
    """Yield an empty catalog on a server whose autovacuum runs each second."""
    make_database(url)
    open_catalog(url).close()
    with connect(url) as connection:
        connection.execute("ALTER SYSTEM SET autovacuum_naptime = '1s'")
        connection.execute("SELECT pg_reload_conf()")
    yield


def follow(url: str, folder: Path, ranges: int) -> None:
    """Follow `ranges` ranges, and print the remaining rows of each table."""
    growing = GrowingCatalog(folder, open_catalog(url), files=40)
    with connect(url) as connection:
        connection.execute("SELECT pg_stat_reset()")
    growing.grow(ranges)
    growing.catalog.close()
    time.sleep(2)  # until the server has updated its statistics
    print("| table | inserted | updated | HOT | deleted | dead at the end | live |")
    print("|---" * 7 + "|")
    with connect(url) as connection:
        for name, inserted, updated, hot, deleted, dead, live in connection.execute(_STATISTICS):
            share = f"{hot / updated:.0%}" if updated else ""
            print(f"| `{name}` | {inserted:,} | {updated:,} | {share} | {deleted:,} | {dead:,} | {live:,} |")


def sizes_of(url: str) -> dict[str, tuple[int, int]]:
    """Return the bytes of each of the two tables, and of its indexes."""
    with connect(url) as connection:
        query = "SELECT pg_table_size(%(name)s), pg_indexes_size(%(name)s)"
        rows = {name: connection.execute(query, {"name": name}).fetchone() for name in TABLES}
    return {name: (row[0], row[1]) for name, row in rows.items() if row is not None}


def update_many(url: str, settings: str, projects: int, updates: int) -> str:
    """Return the sizes of the tables before and after the updates, as cells of a table."""
    with connect(url) as connection:
        for name in TABLES if settings else ():
            connection.execute(f"ALTER TABLE {name} SET ({settings})")  # type: ignore[arg-type]
        for statement in _FILLING:
            connection.execute(statement.format(projects))  # type: ignore[arg-type]
        connection.execute("VACUUM ANALYZE")
        before, draw = sizes_of(url), Random(1)
        for number in range(updates):
            # some projects are visited more often than others
            ids = [1 + int(projects * draw.random() ** 2) for _ in range(AT_ONCE)]
            values = {"serial": 32_000_000 + number, "at": 1.8e9 + 600 * number, "ids": ids}
            for statement in _UPDATES:
                connection.execute(statement, values)  # type: ignore[arg-type]
            time.sleep(PAUSE_S)
    after = sizes_of(url)
    return " | ".join(
        f"{one / 1e6:.1f} to {other / 1e6:.1f} MB"
        for name in TABLES
        for one, other in zip(before[name], after[name], strict=True)
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ranges", type=int, nargs="?", default=60)
    parser.add_argument("--projects", type=int, default=74_000, help="a tenth of PyPI")
    parser.add_argument("--updates", type=int, default=1_500, help=f"of {AT_ONCE} projects each")
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder, server(Path(folder)) as (url, _):
        with new_database(url):
            follow(url, Path(folder), options.ranges)
        print("\n| | " + " | ".join(f"`{name}` | its indexes" for name in TABLES) + " |")
        print("|---" * 5 + "|")
        for name, settings in SETTINGS.items():
            with new_database(url):
                print(f"| {name} | {update_many(url, settings, options.projects, options.updates)} |", flush=True)


if __name__ == "__main__":
    main()
