"""Processes that maintain or read one storage concurrently until they are stopped or killed.

A process appends its results to its own log, a word and a number first: `published 1 modules 7 ...`.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import current_process
from pathlib import Path
from random import Random

from sqlalchemy import func, select

from pypi_assets.catalog.coordination.leases import LeaseTakenError
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.range_ledger import last_allocated_serial
from pypi_assets.catalog.publications.dump_registry import DumpDroppedError
from pypi_assets.catalog.publications.dump_rows import project_rows_at, providing_releases
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.catalog.tables import changes
from pypi_assets.dumps.compaction import compact
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, NoVersionError
from pypi_assets.leveldbs.versions.input_lists import newest_serials, published_versions
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.lookup.depgraph_reader import DepgraphReader, distributions_of
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.modules_reader import ModulesReader, providing_projects
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets.upkeep.deletion import clean_versions_and_dumps
from pypi_assets_tests.small_catalog import continued

GRACE_S = 3.0
VERSIONS_KEPT = 2
MOST_LIVE = 150
SHARDS = 16
PROJECTS = tuple(f"project{number}" for number in range(20))
MODULES = tuple(f"module{number}{child}" for number in range(6) for child in ("", ".child"))


@dataclass(frozen=True)
class Site:
    """The shared settings of all processes. `folder` is for logs, caches and stop files."""

    folder: Path
    database_url: str
    storage_url: str
    environment: Mapping[str, str]

    @property
    def end(self) -> Path:
        """Return the path of the stop file. Once it exists, all processes finish their work and exit."""
        return self.folder / "end"

    def was_stopped(self, process_name: str) -> Path:
        """Return the path of the file that marks a process as replaced. Once it exists, the process does no more."""
        return self.folder / f"stopped {process_name}"

    @property
    def work_dir(self) -> Path:
        return self.folder / "work"

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


@dataclass(frozen=True)
class Process:
    """The state of a process. `chance` decides its next action."""

    site: Site
    catalog: Catalog
    storage: Storage
    chance: Random

    def goes_on(self) -> bool:
        orphaned = os.getppid() == 1
        return not (orphaned or self.site.end.exists() or self.site.was_stopped(current_process().name).exists())

    def pause(self, most_s: float) -> None:
        time.sleep(self.chance.uniform(0, most_s))

    def report(self, what: str, count: int = 1, text: object = "") -> None:
        sys.stdout.write(f"{what} {count} {text} {time.time():.2f}\n")


def run(name: str, site: Site, seed: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(site.environment)
    with site.log(name).open("a", buffering=1) as log:
        os.dup2(log.fileno(), sys.stderr.fileno())
        sys.stdout = log
        process = Process(site, open_catalog(site.database_url), open_storage(site.storage_url), Random(seed))
        process.report("begun", 1, f"pid {os.getpid()} seed {seed}")
        while process.goes_on():
            try:
                PROGRAMS[name](process)
            except LeaseTakenError as error:
                process.report("waited", 1, error)
                process.pause(0.2)
            except DumpDroppedError as error:  # a later full dump was faster, and a clean-up followed
                process.report("dropped", 1, error)
            except NoVersionError as error:  # all listed versions have been deleted since, or are corrupt in a cache
                process.report("refused", 1, error)


# Writers


def change_files(process: Process) -> None:
    """Add, remove, restore and yank files, and complete ranges."""
    small, catalog, chance = continued(process.catalog), process.catalog, process.chance
    with catalog.read() as connection:
        serial = max(last_allocated_serial(connection), connection.scalar(select(func.max(changes.c.serial))) or 0)
    shown = {file.filename: file.yanked for file in live_files(catalog, sys.maxsize)}
    gone = [filename for filename in small.filenames if filename not in shown]
    while process.goes_on():
        for _ in range(chance.randrange(1, 8)):
            serial += 1
            change = chance.choice(["add", "add", "remove", "show again", "yank"])
            if (change == "remove" and shown) or len(shown) > MOST_LIVE:
                gone.append(chance.choice(list(shown)))
                small.remove(serial, gone[-1])
                shown.pop(gone[-1])
            elif change == "show again" and gone:
                filename = gone.pop(chance.randrange(len(gone)))
                small.show_again(serial, filename)
                shown[filename] = True  # an unknown yank is set to true, so that the file is not yanked again
            elif change == "yank" and (filename := next((one for one in shown if not shown[one]), None)):
                small.yank(serial, filename)
                shown[filename] = True
            else:
                project, version = chance.choice(PROJECTS), f"1.{chance.randrange(4)}"
                filename = f"{project}-{version}-{serial}{chance.choice(['-py3-none-any.whl', '.tar.gz', '.zip'])}"
                modules, required = chance.sample(MODULES, 3), chance.sample(PROJECTS, 2)
                small.add(serial, project, version, filename, modules=tuple(modules), requires_dist=tuple(required))
                shown[filename] = False
        serial += chance.randrange(3)
        process.report("completed", 1, small.complete(serial))
        process.pause(0.5)


def dump_ranges(process: Process) -> None:
    for manifest in write_missing_ranges(process.catalog, process.storage):
        process.report("dumped", 1, manifest.directory)
    process.pause(0.1)


def redo_dump(process: Process) -> None:
    """Begin a new full dump or continue an incomplete one."""
    process.pause(3)
    since = process.chance.choice([None, process.catalog.clock()])
    manifest = full_dump(process.catalog, process.storage, SHARDS, since=since, concurrency=2)
    process.report("redone", 1, manifest.directory)


def compact_dumps(process: Process) -> None:
    process.pause(1)
    try:
        held = process.chance.choice([[], newest_serials(process.storage, DATASETS)])
    except LeveldbDamagedError as error:  # it was deleted after it was listed
        process.report("gone", 1, error)
        return
    growth = process.chance.choice([1, 2, 4])
    for manifest in compact(process.catalog, process.storage, held=held, growth=growth):
        process.report("compacted", 1, f"{manifest.directory} of {len(manifest.inputs)}")


def clean(process: Process) -> None:
    process.pause(0.5)
    catalog, storage = process.catalog, process.storage
    for removal in clean_versions_and_dumps(catalog, storage, grace_s=GRACE_S, versions_kept=VERSIONS_KEPT):
        process.report("removed", 1, f"{removal.path}, {removal.reason}, {removal.files} files")


def update(process: Process) -> None:
    for dataset in process.chance.sample(list(DATASETS), 2):
        result = build_version(
            dataset,
            storage=process.storage,
            catalog=process.catalog,
            work_dir=process.site.work_dir,
            from_scratch=process.chance.random() < 0.02,
        )
        if result.published:
            process.report("published", 1, f"{dataset} {result.version} at {result.serial}, {result.reason}")
    process.pause(0.3)


# Readers


def verify_versions(process: Process) -> None:
    """Verify each version once while it exists."""
    checked = dict.fromkeys(DATASETS, 0)
    while process.goes_on():
        for dataset in DATASETS:
            for version in published_versions(process.storage, dataset):
                if version > checked[dataset]:
                    checked[dataset] = version
                    _verify(process, dataset, version)
        process.pause(0.1)


def _verify(process: Process, dataset: str, version: int) -> None:
    verification = verify(dataset, version, storage=process.storage, deep=True, work_dir=process.site.work_dir)
    if version in published_versions(process.storage, dataset):
        assert verification.problems == (), f"{dataset} {version}: {verification.problems}"
        process.report("verified", 1, f"{dataset} {version}, {verification.records} records")
    else:
        process.report("gone", 1, f"{dataset} {version} was removed while it was verified")


def read_on(process: Process) -> None:
    """Read each dataset with a long-lived reader that refreshes."""
    cache = process.site.folder / "cache"
    with (
        open_latest("modules", process.storage, cache, refresh_every_s=0.3) as modules,
        open_latest("depgraph", process.storage, cache) as depgraph,
    ):
        serial = 0
        while process.goes_on():
            process.report("answered", check_answers(process.catalog, process.chance, modules, depgraph))
            if depgraph.refresh():
                assert serial <= depgraph.serial, f"back from serial {serial} to {depgraph.serial}"
                serial = depgraph.serial
                process.report("moved", 1, f"to {depgraph.version} of serial {serial}")
            if modules.refresh_problem:
                process.report("troubled", 1, modules.refresh_problem)
            process.pause(0.1)


def visit(process: Process) -> None:
    """Open readers again each time, from a cache that others have corrupted."""
    chance, cache = process.chance, process.site.folder / "damaged cache"
    process.report("damaged", _damage(cache, chance))
    check_hashes = chance.random() < 0.7
    with (
        open_latest("modules", process.storage, cache, check_hashes=check_hashes) as modules,
        open_latest("depgraph", process.storage, cache, check_hashes=check_hashes) as depgraph,
    ):
        answered = check_answers(process.catalog, chance, modules, depgraph)
        process.report("answered", answered, f"by {modules.version} and {depgraph.version}")
        if check_hashes:
            process.report("compared", check_whole(process.catalog, depgraph), f"files of {depgraph.version}")
    process.pause(0.1)


def check_answers(catalog: Catalog, chance: Random, modules: ModulesReader, depgraph: DepgraphReader) -> int:
    """Compare sampled answers with the catalog at their serials and return the number of answers."""
    for module, project in zip(chance.sample(MODULES, 5), chance.sample(PROJECTS, 5), strict=True):
        answer = modules.module(module)
        expected = providing_projects(module, providing_releases(catalog, answer.serial, module))
        assert answer.results == tuple(expected), f"{module} in version {answer.version} of serial {answer.serial}"
        of_project = depgraph.project(project)
        rows = project_rows_at(catalog, of_project.serial, project)
        wanted = distributions_of(map(as_dumped, rows))
        assert of_project.results == tuple(wanted), f"{project} in version {of_project.version}"
    return 10


def check_whole(catalog: Catalog, depgraph: DepgraphReader) -> int:
    """Compare a complete version with the catalog at its serial and return the number of files."""
    stream = depgraph.projects()
    found = {(result["filename"], result["yanked"]) for result in stream}
    expected = {(file.filename, file.yanked) for file in live_files(catalog, stream.serial)}
    assert found == expected, f"version {stream.version} of serial {stream.serial}: {found ^ expected}"
    return len(found)


def _damage(cache: Path, chance: Random) -> int:
    """Corrupt a file of the cache, if there is one, and return the number of files. Readers that have linked the file
    keep theirs.
    """
    files = sorted(cache.glob("*/files/*"))
    if not files or chance.random() < 0.5:
        return 0
    path = chance.choice(files)
    content = path.read_bytes()
    harm = chance.choice(["flip", "cut", "delete", "part"])
    path.unlink()
    if harm == "flip":
        path.write_bytes(bytes(byte ^ 0xFF for byte in content))
    elif harm == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif harm == "part":
        path.with_suffix(".part").write_bytes(b"x" * (len(content) // 2))
    return 1


PROGRAMS: dict[str, Callable[[Process], None]] = {
    program.__name__: program
    for program in (
        *(change_files, dump_ranges, redo_dump, compact_dumps, clean, update, verify_versions),
        *(read_on, visit),
    )
}
LEASES = {
    "update": [f"publish {dataset}" for dataset in DATASETS],
    "compact_dumps": ["compact dumps"],
    "clean": ["clean up"],
}
"""Which leases a program takes: those of a process that was killed would only end in time."""
