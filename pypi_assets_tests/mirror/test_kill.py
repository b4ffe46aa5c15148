"""Rule 7 for a mirror: killed at any step of its copying or its replay, it resumes and ends equal to the source."""

import random
import subprocess
from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.journal.verification import verify_stream
from pypi_assets.mirror.mirror_state import mirror_status
from pypi_assets.mirror.past_catalog import Past
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples, first_seed
from pypi_assets_tests.forked import ForkedProgram
from pypi_assets_tests.journal.replayed import histories, require_equal
from pypi_assets_tests.mirror.conftest import DAY_S, Mirrors, Origin, assert_whole, contents

_PROGRAM = """
import sys
from pypi_assets.catalog import database
from pypi_assets.journal import replay
from pypi_assets.mirror.following import Mirror
from pypi_assets.mirror.past_catalog import Past
from pypi_assets.mirror.sources import open_source
from pypi_assets.storage import store

source, storage_url, catalog_url, last = sys.argv[1:]
replay.BATCH_RECORDS, replay.STEP_RECORDS = 3, 10
steps = 0

def counted(do):
    def step(*arguments, **options):
        global steps
        for moment in ("before", "after"):
            steps += 1
            if steps == int(last):
                print(moment, do.__name__, flush=True)
                sys.stdin.read()  # until it is killed
            if moment == "before":
                done = do(*arguments, **options)
        return done
    return step

for name in ("put", "delete"):
    setattr(store.Storage, name, counted(getattr(store.Storage, name)))
catalog, storage = database.open_catalog(catalog_url), store.open_storage(storage_url)
database.Catalog.transact = counted(database.Catalog.transact)
Mirror(open_source(source), storage, grace_s=%f, at_once=1).run()
Past(storage, catalog).catch_up()
print("done", steps, flush=True)
"""


def run_and_kill(origin: Origin, storage: Storage, catalog_url: str, step: int) -> list[str]:
    """Run a mirror up to a step and kill it there. Return the step, or `done` and the number of steps."""
    arguments = origin.files.url, storage.url, catalog_url, step
    program = _PROGRAM % DAY_S
    with ForkedProgram(program, *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        reached = process.stdout.readline().split()
        process.kill()
    return reached


def assert_equal(origin: Origin, storage: Storage, catalog: Catalog) -> None:
    """Assert that the mirror has all published content of the source and gives the same answer at each serial."""
    assert mirror_status(storage).state == "following"
    assert_whole(storage)
    assert contents(storage) == contents(origin.storage)
    for stream in JournalStream:
        assert verify_stream(storage, stream).fault is None
    assert Past(storage, catalog).catch_up() is None
    require_equal(origin.published.catalog, catalog, 1, origin.published.index.serial)
    assert histories(catalog) == histories(origin.published.catalog)


def follow_killed(origin: Origin, storage: Storage, catalog_url: str, draw: random.Random, kills: int) -> set[str]:
    """Follow the source, killed at drawn steps. Return the kinds of steps at which it was killed."""
    reached: set[str] = set()
    for _ in range(kills):
        step = run_and_kill(origin, storage, catalog_url, draw.randint(1, 60))
        if step[0] == "done":
            break
        reached.add(step[1])
        assert_whole(storage)
    assert run_and_kill(origin, storage, catalog_url, 0)[0] == "done"
    return reached


def test_mirror_killed_at_drawn_steps_ends_equal_to_its_source(
    changing_origin: Origin, mirrors: Mirrors, tmp_path: Path
) -> None:
    storage = mirrors.storage("mirror")
    url = sqlite_database(tmp_path / "mirror.sqlite")
    draw = random.Random(first_seed())
    follow_killed(changing_origin, storage, url, draw, 4)
    changing_origin.publish()
    follow_killed(changing_origin, storage, url, draw, 2)
    catalog = open_catalog(url)
    assert_equal(changing_origin, storage, catalog)
    catalog.close()


@pytest.mark.nightly
def test_mirror_killed_at_each_step_ends_equal_to_its_source(
    origin: Origin, mirrors: Mirrors, database_url: str, tmp_path: Path
) -> None:
    url = sqlite_database(tmp_path / "undisturbed.sqlite")
    _, steps = run_and_kill(origin, mirrors.storage("undisturbed"), url, 0)
    catalog = open_catalog(url)
    assert_equal(origin, mirrors.storage("undisturbed"), catalog)
    catalog.close()
    storage = mirrors.storage("mirror")
    every = max(1, int(steps) // max(examples(40), 40))  # with fewer kills, none is late enough to meet the replay
    reached: set[str] = set()
    for step in range(1, int(steps), every):  # each run resumes after the previous kill until everything is copied
        outcome = run_and_kill(origin, storage, database_url, step)
        reached.add(outcome[1] if outcome[0] != "done" else "done")
    assert {"put", "transact"} <= reached
    run_and_kill(origin, storage, database_url, 0)
    catalog = open_catalog(database_url)
    assert_equal(origin, open_storage(storage.url), catalog)
    catalog.close()
