"""Measure look-ups in a version of a million rows, compared with the bare reading of the same records.

    python -m benchmarks.lookups FOLDER [--rows 1000000] [--asked 10000]

FOLDER is a storage with published versions of all datasets. If it has none, a dump of `--rows` rows is generated there,
and they are built. `--asked` names are drawn evenly, with repetition, from all names with at most 100 results. They are
looked up one after the other, after a warm-up, in one process and one thread. The table shows how many different names
there are, and the bytes of their records. Answers are complete, with all results decoded. The bare loop reads the same
records from a LevelDB with the same memory, with their checksums, without decoding. For one version of a project, too,
it reads all records of the project. All times are of the processor, except the seconds to the first answer.
"""

import argparse
import gc
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from benchmarks.generated import generate_projects, write_full_dump
from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets.dumps.dump_manifest import committed_directories
from pypi_assets.dumps.restore import restore_index
from pypi_assets.leveldbs.datasets import provided_names
from pypi_assets.leveldbs.datasets.depgraph import dependents
from pypi_assets.leveldbs.datasets.depgraph import depgraph_records as depgraph
from pypi_assets.leveldbs.datasets.hashes import hash_records as hashes
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.format.records import records_of
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.leveldbs.versions.private_copy import copy_published, private_folder, private_parent
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup import (
    Answer,
    CommandsReader,
    DepgraphReader,
    Distribution,
    HashesReader,
    ModulesReader,
    SimpleReader,
    open_latest,
)
from pypi_assets.lookup.latest import CACHE_BYTES
from pypi_assets.storage.store import Storage, open_storage

MOST_RESULTS, FEW_RESULTS = 100, 5
UNKNOWN = {
    "modules": partial(ModulesReader.module, name="unknown"),
    "depgraph": partial(DepgraphReader.project, name="unknown"),
    "commands": partial(CommandsReader.command, name="unknown"),
    "hashes": partial(HashesReader.file, sha256="0" * 64),
    "simple": partial(SimpleReader.files, name="unknown"),
}
"""Asks each dataset for a name that it does not have."""
OPENINGS, TURNS = 5, 3


def publish(storage: Storage, rows: int) -> None:
    """Publish a version of each dataset with `rows` rows."""
    if not committed_directories(storage):
        write_full_dump(storage, generate_projects(rows))
    with tempfile.TemporaryDirectory() as folder:
        catalog = open_catalog(f"sqlite:///{Path(folder) / 'catalog.sqlite'}")
        open_crawl(catalog, 1, 1, "https://index.example.org/simple/", Selection())
        restore_index(catalog, storage)
        for dataset in DATASETS:
            build_version(dataset, storage=storage, catalog=catalog)
        catalog.close()


def time_opening(storage: Storage) -> None:
    print("| opened | MB | hashes | seconds to the first answer | processor s |\n|---|---|---|---|---|")
    for dataset, ask in UNKNOWN.items():
        files = read_published(storage, dataset, published_versions(storage, dataset)[-1]).manifest.files
        for check_hashes in (True, False):
            times = []
            for _ in range(OPENINGS):
                begun, used = time.perf_counter(), time.process_time()
                with open_latest(dataset, storage, check_hashes=check_hashes) as reader:
                    assert not ask(reader).results
                    times.append((time.perf_counter() - begun, time.process_time() - used))
            clock, processor = (median(column) for column in zip(*times, strict=True))
            checked = "checked" if check_hashes else "not checked"
            megabytes = sum(file.size for file in files) / 1e6
            print(f"| `{dataset}` | {megabytes:.0f} | {checked} | {clock:.3f} | {processor:.3f} |")


def time_answers(storage: Storage, names: int) -> None:
    print("\n| lookup | names | MB | results | answers/s | bare reads/s | ratio | median µs | p99 µs | p99.9 µs |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with open_latest(ModulesReader, storage) as reader, bare_leveldb("modules", storage) as db:
        counts = counted(one["module"] for one in reader.modules())
        print_rates("`module`", reader.module, partial(provider_records, db), drawn(counts, names))
    with open_latest(DepgraphReader, storage) as reader, bare_leveldb("depgraph", storage) as db:
        bare = partial(depgraph.project_records, db)
        versions = {one["normalized"]: one["version"] for one in reader.projects()}
        counts = counted(one["normalized"] for one in reader.projects())
        few = [one for one in counts if one[1] <= FEW_RESULTS]
        most = most_results(counts)
        for what, known in (("any", counts), (f"of at most {FEW_RESULTS} files", few), ("with the most files", most)):
            print_rates(f"`project`, {what}", reader.project, bare, drawn(known, names))
        print_rates(
            "`project`, its newest version", partial(look_up_newest, reader, versions), bare, drawn(counts, names)
        )
        counts = counted(one["required"] for one in reader.all_dependents())
        bare = partial(records_below, db, dependents.dependents_prefix)
        for what, known in (("any", counts), ("with the most", most_results(counts))):
            print_rates(f"`dependents`, {what}", reader.dependents, bare, drawn(known, names))

    with open_latest(CommandsReader, storage) as reader, bare_leveldb("commands", storage) as db:
        counts = counted(one["command"] for one in reader.commands())
        print_rates("`command`", reader.command, partial(provider_records, db), drawn(counts, names))
    with open_latest(HashesReader, storage) as reader, bare_leveldb("hashes", storage) as db:
        counts = counted(one["sha256"] for one in reader.files())
        print_rates("`hash`", reader.file, partial(records_below, db, hashes.hash_prefix), drawn(counts, names))


def provider_records(db: Database, name: str) -> list[tuple[bytes, bytes]]:
    found = records_of(db, provided_names.name_prefix(name))
    answers = [provided_names.answer_key(record_key, group) for record_key, group in found]
    return [*found, *((answer, provided_names.read_answer(db, answer)) for answer in answers)]


def records_below(db: Database, start_of: Callable[[str], bytes], name: str) -> list[tuple[bytes, bytes]]:
    return records_of(db, start_of(name))


def look_up_newest(reader: DepgraphReader, versions: Mapping[str, str], name: str) -> Answer[Distribution]:
    return reader.project(name, versions[name])


def counted(names: Iterable[str]) -> list[tuple[str, int]]:
    """Return each of the sorted names with its number of occurrences, if that is not too large."""
    found = ((name, sum(1 for _ in same)) for name, same in groupby(names))
    return [(name, count) for name, count in found if count <= MOST_RESULTS]


def most_results(counts: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(counts, key=lambda one: one[1])[-100:]


def drawn(counts: Sequence[tuple[str, int]], names: int) -> list[str]:
    return [name for name, _ in Random(0).choices(counts, k=names)]


def print_rates(
    what: str,
    look_up: Callable[[str], Answer[Any]],
    bare: Callable[[str], list[tuple[bytes, bytes]]],
    names: Sequence[str],
) -> None:
    gc.collect()
    gc.freeze()  # the benchmark's names do not belong to the reader
    rates: dict[Callable[[str], object], list[float]] = {look_up: [], bare: []}
    for turn in range(1 + TURNS):
        for one in rates:
            used = time.process_time()
            for name in names:
                one(name)
            if turn:
                rates[one].append(len(names) / (time.process_time() - used))
    times = []
    results = 0
    for name in names:
        begun = time.thread_time()
        answer = look_up(name)
        times.append(time.thread_time() - begun)
        results += len(answer.results)
    times.sort()
    different = set(names)
    records = (record for name in different for record in bare(name))
    megabytes = sum(len(record_key) + len(value) for record_key, value in records) / 1e6
    rate, bare_rate = median(rates[look_up]), median(rates[bare])
    shown = " | ".join(f"{1e6 * times[int(len(times) * share)]:,.0f}" for share in (0.5, 0.99, 0.999))
    print(f"| {what} | {len(different):,} | {megabytes:.0f} | {results / len(names):.1f} |", end=" ")
    print(f"{rate:,.0f} | {bare_rate:,.0f} | {rate / bare_rate:.2f} | {shown} |", flush=True)


@contextmanager
def bare_leveldb(dataset: str, storage: Storage) -> Iterator[Database]:
    published = read_published(storage, dataset, published_versions(storage, dataset)[-1])
    with private_folder(private_parent(storage, None)) as folder:
        copy_published(storage, published, folder / "leveldb", hashes=False)
        with open_leveldb(folder / "leveldb", published.name, cache_bytes=CACHE_BYTES) as db:
            yield db


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--asked", dest="names", type=int, default=10_000, help="number of names to look up")
    arguments = parser.parse_args()
    storage = open_storage(arguments.folder.resolve().as_uri())
    if not all(published_versions(storage, dataset) for dataset in DATASETS):
        publish(storage, arguments.rows)
    time_opening(storage)
    time_answers(storage, arguments.names)


if __name__ == "__main__":
    main()
