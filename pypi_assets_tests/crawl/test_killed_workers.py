"""Rule 7 at random: concurrent processes that follow an index are killed at any moment, and their work is finished."""

import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.range_ledger import ledger
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets_tests.crawl.crawl_processes import crawl_process
from pypi_assets_tests.crawl.drawn_changes import PROJECT_KINDS, PROJECTS, RELEASE_KINDS, VERSIONS, do
from pypi_assets_tests.examples import examples
from pypi_assets_tests.served_index import ServedIndex, live, served_index

HISTORIES = examples(3)
KINDS = (*["wheel"] * 8, *["sdist"] * 6, "remove_file", *RELEASE_KINDS, *PROJECT_KINDS)


def change(index: ServedIndex, chance: random.Random, kinds: Sequence[str]) -> None:
    for _ in range(8):
        do(index, chance.choice(kinds), chance.choice(PROJECTS), chance.choice(VERSIONS))


def follow_and_die(index: ServedIndex, database_url: str, work: str, chance: random.Random) -> None:
    """Run two or three processes that do the work. Each is killed after a random time, or runs to its end."""
    started = []
    for _ in range(chance.choice([2, 3])):
        process = crawl_process(index, database_url, work, range_events=10, retry_pause_s=0.01, retry_deadline_s=5)
        process.start()
        lifetime = chance.choice([None, *[chance.uniform(0.05, 1.0)] * 3])
        started.append((process, None if lifetime is None else time.monotonic() + lifetime))
    for process, dies_at in sorted(started, key=lambda pair: pair[1] or float("inf")):
        process.join(60 if dies_at is None else max(dies_at - time.monotonic(), 0))
        if dies_at is not None:
            process.kill()
        process.join(60)
        assert process.exitcode in {0, 1, -signal.SIGKILL}


def a_history(folder: Path, database_url: str, seed: int) -> None:
    chance = random.Random(seed)
    with served_index(folder) as index:
        change(index, chance, [kind for kind in KINDS if "quarantine" not in kind])
        follow_and_die(index, database_url, "full", chance)
        catalog = open_catalog(database_url)
        crawl_full(index.crawler(catalog))
        shown = {}
        for _ in range(2):
            change(index, chance, KINDS)
            shown[index.serial] = index.shown()
            follow_and_die(index, database_url, "incremental", chance)
        crawl_incremental(index.crawler(catalog))
        shown[index.serial] = index.shown()
        status = catalog_status(catalog)
        assert (status.complete_serial, status.ledger_faults) == (index.serial, ())
        assert status.outcomes["pending"] == 0
        with catalog.read() as connection:
            ends = {entry.serials.end for entry in ledger(connection)}
        for serial in shown.keys() & ends:
            assert live(catalog, serial) == shown[serial], f"seed {seed}, serial {serial}"
        catalog.close()


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_killed_processes_lose_nothing(catalog: Catalog, tmp_path: Path, seed: int) -> None:
    a_history(tmp_path / "served", catalog.engine.url.render_as_string(hide_password=False), seed)
