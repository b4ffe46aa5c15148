"""Measure the search for the event that changed a resolution, over 10,000 serials of a catalog.

    python -m benchmarks.blame [--sets 40] [--projects 3000]

The baseline is one resolution at the last of these serials, without a cache.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from sqlalchemy import update

from benchmarks.closures import graph, requirement_sets, rows
from benchmarks.filled_catalog import fill_catalog
from benchmarks.resolutions import question
from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.reports.moments import answerable_serial
from pypi_assets.catalog.tables import catalog_state, full_crawls
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets.resolve.blame import CatalogHistory, OutcomeHistory, blame
from pypi_assets.resolve.questions import Semantics

URL = "https://index.example.org/simple/"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=40)
    parser.add_argument("--projects", type=int, default=3_000)
    options = parser.parse_args()
    required = graph(projects=options.projects)
    sets = requirement_sets(required, options.sets)
    with tempfile.TemporaryDirectory(prefix="pypi-assets-blame-") as folder:
        catalog = open_catalog(f"sqlite:///{Path(folder) / 'catalog.sqlite'}")
        last = 1_000_000
        count = fill_catalog(catalog, rows(required, last))
        open_crawl(catalog, last, 1, URL, Selection())
        with catalog.write() as connection:
            connection.execute(update(full_crawls).values(listed_at=0.0, completed_at=0.0, open=None))
            connection.execute(update(catalog_state).values(exact_from=1))
        print(f"{options.projects:,} projects, {count:,} files uploaded at 1 to {last:,}; {len(sets)} sets\n")
        print("| serials | changes looked at | resolutions, most | seconds, median | most | one resolution, ms |")
        print("|---|---|---|---|---|---|")
        history, bad = CatalogHistory(catalog), answerable_serial(catalog)
        for serials in (10_000, last // 2):
            seconds, made, looked, alone = [], [], [], []
            for requirements, _ in sets:
                wanted = question(requirements, Semantics.PIP)
                started = time.perf_counter()
                OutcomeHistory(history, wanted).at(bad)
                alone.append(time.perf_counter() - started)
                found = blame(OutcomeHistory(history, wanted), bad - serials, bad)
                seconds.append(time.perf_counter() - started - alone[-1])
                made.append(found.resolutions)
                looked.append(found.candidates)
            print(
                f"| {serials:,} | {min(looked):,} to {max(looked):,} | {max(made)} | {statistics.median(seconds):.2f} |"
                f" {max(seconds):.2f} | {statistics.median(alone) * 1_000:.0f} |"
            )
        catalog.close()


if __name__ == "__main__":
    main()
