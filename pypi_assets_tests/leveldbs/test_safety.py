"""Changes, dumps, redone dumps, compactions, updates and clean-ups run concurrently in processes that are killed
repeatedly. No reader ever sees an incomplete version, every version verifies, and nothing is left over at the end.

SAFETY_TROUBLES is the number of kills and stops on each storage. SAFETY_SEED determines which and when.
"""

import itertools
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
from sqlalchemy import Connection

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.tables import leases
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_manifest import file_path, manifest_path, read_manifest
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import MANIFEST_NAME, input_list_path, published_versions
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.lookup.latest import open_latest
from pypi_assets.storage.published import PUBLISHED, part_path
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets.upkeep.deletion import clean_versions_and_dumps
from pypi_assets_tests.examples import first_seed
from pypi_assets_tests.forked import processes
from pypi_assets_tests.leveldbs.upkeep_processes import (
    GRACE_S,
    LEASES,
    MODULES,
    PROGRAMS,
    PROJECTS,
    SHARDS,
    VERSIONS_KEPT,
    Site,
    check_answers,
    check_whole,
    run,
)
from pypi_assets_tests.s3_server import BUCKET, s3_server
from pypi_assets_tests.small_catalog import small_catalog
from pypi_assets_tests.waiting import until

TROUBLES = int(os.environ.get("SAFETY_TROUBLES", "10"))
SEED = int(os.environ.get("SAFETY_SEED", first_seed()))
KILLED = [name for name in PROGRAMS if name not in {"read_on", "verify_versions"}]
MOST_PACE_S = 2.0  # a slow machine kills them less often
DAY_S = 24 * 3600.0
_LANDING_S = 0.1  # waits for requests that a process had sent when it was killed


class Crew:
    """One process for each program. Killed and stopped processes are replaced; stopped ones wake up later."""

    def __init__(self, site: Site, catalog: Catalog, chance: random.Random) -> None:
        self.site, self.catalog, self.chance = site, catalog, chance
        self.at_work: dict[str, ForkServerProcess] = {}
        self.stopped: list[tuple[float, ForkServerProcess]] = []
        self.woken: list[ForkServerProcess] = []
        self.done: Counter[str] = Counter()
        for name in PROGRAMS:
            self.start(name)

    def start(self, name: str) -> None:
        seed = self.chance.randrange(2**32)
        arguments = (name, self.site, seed)
        self.at_work[name] = processes.Process(target=run, args=arguments, name=f"{name} {seed}", daemon=True)
        self.at_work[name].start()

    def trouble(self) -> None:
        """Kill a process, or sometimes stop it until its leases expire. Wake up the processes whose pause is over."""
        for name, process in self.at_work.items():
            assert process.is_alive(), self.log_of(name)
        for wakes_at, process in list(self.stopped):
            if time.monotonic() >= wakes_at:
                self.stopped.remove((wakes_at, process))
                self.woken.append(process)
                _signal(process, signal.SIGCONT)
        name = self.chance.choice(KILLED)
        process = self.at_work[name]
        if self.chance.random() < 0.8 or name == "change_files":
            _signal(process, signal.SIGKILL)
            process.join()
            time.sleep(_LANDING_S)
            with self.catalog.write() as connection:
                end_leases(connection, name)
            self.done["killed"] += 1
        else:
            with self.catalog.write() as connection:  # all would wait for a process that is stopped while it writes
                end_leases(connection, name)
                _signal(process, signal.SIGSTOP)
            self.site.was_stopped(process.name).touch()
            self.stopped.append((time.monotonic() + self.chance.uniform(0, GRACE_S / 2), process))
            self.done["stopped"] += 1
        self.start(name)

    def end(self) -> None:
        """Let all processes finish their work. A stopped process may find that its lease has expired."""
        for _, process in self.stopped:
            _signal(process, signal.SIGCONT)
        self.site.end.touch()
        for process in (*self.woken, *(process for _, process in self.stopped), *self.at_work.values()):
            process.join(300)
        for name, process in self.at_work.items():
            assert process.exitcode == 0, self.log_of(name)

    def kill(self) -> None:
        for process in (*self.woken, *(process for _, process in self.stopped), *self.at_work.values()):
            process.kill()

    def log_of(self, name: str) -> str:
        lines = self.site.log(name).read_text().splitlines()
        return "\n".join([f"seed {SEED}; {name} ended, see {self.site.folder}; the end of its log:", *lines[-30:]])

    def counts(self) -> Counter[str]:
        """Return the totals of all processes, by the first word of the lines in their logs."""
        done = Counter(self.done)
        for name in PROGRAMS:
            for line in self.site.log(name).read_text().splitlines():
                word, _, fields = line.partition(" ")
                if (number := fields.partition(" ")[0]).isdecimal():
                    done[word] += int(number)
        return done


def _signal(process: ForkServerProcess, number: int) -> None:
    assert process.pid is not None
    os.kill(process.pid, number)


def end_leases(connection: Connection, *names: str) -> None:
    """End the leases that these programs take. Leases of a killed program would expire later."""
    ended = list(itertools.chain(*(LEASES.get(name, ()) for name in names)))
    connection.execute(leases.delete().where(leases.c.name.in_(ended)))


@contextmanager
def crew(site: Site, catalog: Catalog, chance: random.Random) -> Iterator[Crew]:
    working = Crew(site, catalog, chance)
    try:
        yield working
    finally:
        working.kill()


@pytest.fixture(params=["sqlite and a folder", "postgresql and s3"])
def site(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site"
    folder.mkdir()
    if request.param == "sqlite and a folder":
        yield Site(folder, f"sqlite:///{tmp_path / 'catalog.sqlite'}", (tmp_path / "storage").as_uri(), {})
    else:
        database_url = request.getfixturevalue("postgres_database_url")
        with s3_server(monkeypatch):
            environment = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
            yield Site(folder, database_url, f"s3://{BUCKET}/root", environment)


@pytest.mark.nightly
def test_readers_see_complete_versions_whichever_process_is_killed(site: Site) -> None:
    begun_at = time.monotonic()
    catalog, storage = begin(site)
    pace_s = min(time.monotonic() - begun_at, MOST_PACE_S)
    with crew(site, catalog, random.Random(SEED)) as working:
        for _ in range(TROUBLES):
            time.sleep(working.chance.uniform(0, 2 * pace_s))
            working.trouble()
        until(lambda: min(working.counts()[what] for what in ("verified", "answered")) > 0)
        working.end()
        counts = working.counts()
    site.log("all").write_text(f"seed {SEED}, pace {pace_s:.2f} s, {dict(sorted(counts.items()))}\n")
    assert counts["killed"] + counts["stopped"] == TROUBLES, counts
    finish(catalog, storage, site)
    catalog.close()


def begin(site: Site) -> tuple[Catalog, Storage]:
    """Publish the first versions of a catalog with one file."""
    small, storage = small_catalog(site.folder, site.database_url), open_storage(site.storage_url)
    small.add(1, PROJECTS[0], "1.0", f"{PROJECTS[0]}-1.0.zip", modules=MODULES[:3])
    small.complete(1)
    full_dump(small.catalog, storage, SHARDS)
    update(small.catalog, storage, site)
    return small.catalog, storage


def update(catalog: Catalog, storage: Storage, site: Site) -> None:
    for dataset in DATASETS:
        build_version(dataset, storage=storage, catalog=catalog, work_dir=site.work_dir)


def finish(catalog: Catalog, storage: Storage, site: Site) -> None:
    """Check that all versions verify. Complete pending work, let it age, and check that no orphaned files remain."""
    with catalog.write() as connection:
        end_leases(connection, *PROGRAMS)
    assert_all_verify(storage, site)
    list(write_missing_ranges(catalog, storage))
    update(catalog, storage, site)
    full_dump(catalog, storage, SHARDS, since=catalog.clock())
    update(catalog, storage, site)
    later = replace(catalog, clock=lambda: time.time() + 2 * DAY_S)
    for _ in range(2):
        list(clean_versions_and_dumps(later, storage, grace_s=DAY_S, versions_kept=VERSIONS_KEPT))
    assert_all_verify(storage, site)
    with open_latest("modules", storage) as modules, open_latest("depgraph", storage) as depgraph:
        assert modules.serial == depgraph.serial == cover(catalog).serial
        check_answers(catalog, random.Random(SEED), modules, depgraph)
        check_whole(catalog, depgraph)
    named = paths_with_a_reason(catalog, storage) | {PUBLISHED, part_path("dumps"), part_path("leveldbs")}
    assert {stored.path for stored in storage.list()} == named
    if storage.root:
        assert {str(path.relative_to(storage.root)) for path in storage.root.rglob("*") if path.is_file()} == named


def assert_all_verify(storage: Storage, site: Site) -> None:
    for dataset in DATASETS:
        for version in published_versions(storage, dataset):
            checked = verify(dataset, version, storage=storage, deep=True, work_dir=site.work_dir)
            assert checked.problems == (), f"seed {SEED}, see {site.folder}"


def paths_with_a_reason(catalog: Catalog, storage: Storage) -> set[str]:
    """Return the paths of all versions, of the cover, and of the dumps that versions name."""
    paths: set[str] = set()
    directories = set(cover(catalog).directories)
    for dataset in DATASETS:
        for version in published_versions(storage, dataset):
            published = read_published(storage, dataset, version)
            paths |= {input_list_path(dataset, version), f"{published.path}/{MANIFEST_NAME}"}
            paths |= set(map(published.path_of, published.manifest.files))
            directories |= set(published.manifest.cover)
    for directory in directories:
        paths |= {manifest_path(directory)}
        paths |= {file_path(directory, file.name) for file in read_manifest(storage, directory).files}
    return paths
