"""Measure how fast the journal is written, read and replayed, and how much writing it adds to a range's dump.

    python -m benchmarks.journal [--rows 100000] [--repeats 3] [--profile]

Fills a catalog with generated distributions (see benchmarks/generated.py), each added by its own event, in one range.
Then it repeats these steps `--repeats` times: write the dump of the range, and its journal into an empty storage; read
the journal completely: as lines, as `journal tail` prints it, with a filter, and parsed; and replay it into an empty
catalog in SQLite. The baselines are from the same run: for writing, the dump; for reading, the same files decompressed
and cut into lines; for replaying, bare inserts of the same rows into a catalog. Prints the medians, and the time of a
record as a part of a dump's row. The stream index is written before, since its segments are not those of the range.
"""

import argparse
import cProfile
import gc
import pstats
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import orjson
from sqlalchemy import delete, text

from benchmarks.filled_catalog import fill_catalog
from benchmarks.generated import generate_projects, project_rows
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_registry import open_range_dump, range_dump_rows
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.catalog.reports.journal_ranges import BY_RANGE
from pypi_assets.catalog.tables import journal_segments
from pypi_assets.cli import OBJECTS_BETWEEN_COLLECTIONS
from pypi_assets.cli.journal_tail import Printer
from pypi_assets.dumps.dump_format import Row, write_rows
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.filters import RecordFilter
from pypi_assets.journal.publishing import WrittenRange, publish, write_range
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.replay import replay
from pypi_assets.journal.segment_files import read_lines
from pypi_assets.journal.tailing import Scan
from pypi_assets.storage.root_owner import require_owner
from pypi_assets.storage.store import Storage, open_storage

URL = "https://index.example.org/simple/"
_EACH_BY_AN_EVENT = (
    "UPDATE live_intervals SET start = distribution_id + 1",
    (
        "INSERT INTO changes (distribution_id, serial, cause, logged_serial)"
        " SELECT distribution_id, start, 'add file', start FROM live_intervals"
    ),
    (
        "INSERT INTO events (serial, project_id, name, version, timestamp, action, kind)"
        " SELECT d.id + 1, d.project_id, p.name, r.version, 1772000000 + d.id, 'add source file ' || d.filename,"
        " 'add file'"
        " FROM distributions d JOIN projects p ON p.id = d.project_id JOIN releases r ON r.id = d.release_id"
    ),
    "UPDATE catalog_state SET exact_from = 0, events_through = (SELECT max(serial) FROM events)",
    "DELETE FROM serial_ranges",
    (
        'INSERT INTO serial_ranges (start, "end", state, sealed, requested_at, visited)'
        " VALUES (0, 1, 'complete', 1, 0, 0)"
    ),
    (
        'INSERT INTO serial_ranges (start, "end", state, sealed, requested_at, visited)'
        " SELECT 1, max(serial), 'complete', 0, 0, 0 FROM events"
    ),
    "ANALYZE",
)


def rows_of(count: int) -> Iterator[Row]:
    """Yield the rows of whole projects, at least `count` of them together."""
    found = 0
    for project in generate_projects(count):
        rows = project_rows(project)
        yield from rows
        found += len(rows)
        if found >= count:
            break


def filled(folder: Path, rows: Iterable[Row]) -> Catalog:
    catalog = open_catalog(f"sqlite:///{folder}/catalog.sqlite")
    fill_catalog(catalog, rows)
    with catalog.write() as connection:
        for statement in _EACH_BY_AN_EVENT:
            connection.execute(text(statement))
    return catalog


class Times:
    """Seconds by the clock, and of the processor, by step. One process does all the work."""

    def __init__(self) -> None:
        self.found: dict[str, list[tuple[float, float]]] = defaultdict(list)

    @contextmanager
    def of(self, step: str, without: str | None = None) -> Iterator[None]:
        """Measure the block, and subtract the time of the step `without`, which the block does too."""
        clock, processor = self.found[without][-1] if without else (0.0, 0.0)
        started = time.perf_counter(), time.process_time()
        yield
        self.found[step].append(
            (time.perf_counter() - started[0] - clock, time.process_time() - started[1] - processor)
        )

    def clock(self, step: str) -> float:
        return median(clock for clock, _ in self.found[step])

    def processor(self, step: str) -> float:
        return median(processor for _, processor in self.found[step])


def written_journal(catalog: Catalog, folder: Path, serials: SerialRange, times: Times) -> tuple[Storage, WrittenRange]:
    """Return a new storage with the journal of the range, and the range. The stream index is not timed."""
    with catalog.write() as connection:
        connection.execute(delete(journal_segments))
    storage = open_storage(folder.as_uri())
    require_owner(storage, URL)
    write_range(catalog, storage, SerialRange(0, 1))
    with times.of("write"):
        written = write_range(catalog, storage, serials)
    publish(catalog, storage)
    return storage, written


def dump(catalog: Catalog, serials: SerialRange, times: Times) -> None:
    with times.of("dump"), tempfile.TemporaryFile() as target:
        write_rows(target, range_dump_rows(catalog, open_range_dump(catalog, serials)))


def read(storage: Storage, times: Times) -> int:
    journal = Journal(storage)
    with times.of("cut"):
        for head in journal.heads():
            for segment in journal.segments(head, 0):
                for _ in read_lines(storage, segment):
                    pass
    with times.of("lines"):
        count = sum(1 for _ in journal.lines(Cursor.after_serial(0), journal.heads()))
    with times.of("tail"), Path("/dev/null").open("wb") as out:
        tail = Printer(journal, RecordFilter(), Cursor.after_serial(0), out, None, None, as_json=True)
        tail.print_all(None)
    with times.of("filter"):
        for _ in Scan(journal, Cursor.after_serial(0), RecordFilter.parse(projects=["requests"])):
            pass
    with times.of("read"):
        for _, line in journal.lines(Cursor.after_serial(0), journal.heads()):
            orjson.loads(line)
    return count


def measure(rows: int, repeats: int, *, with_profile: bool) -> None:
    times, records = Times(), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with times.of("generate"):
            for _ in rows_of(rows):
                pass
        with times.of("fill", without="generate"):  # the rows are generated again, and never in memory together
            catalog = filled(folder, rows_of(rows))
        with catalog.read() as connection:
            count, end = connection.execute(text("SELECT count(*), max(serial) FROM events")).one()
        serials = SerialRange(1, end)
        for number in range(repeats):
            dump(catalog, serials, times)
            storage, written = written_journal(catalog, folder / f"storage{number}", serials, times)
            records = read(storage, times)
            replayed = open_catalog(f"sqlite:///{folder}/replayed{number}.sqlite")
            with profiled(with_profile), times.of("replay"):
                replay(storage, replayed)
            replayed.close()
        if with_profile:
            with profiled(True):
                written_journal(catalog, folder / "profiled", serials, Times())
        heads = {stream.value: Journal(storage).head(stream.value).number for stream in JournalStream}
        catalog.close()
    of_range = sum(written.records[stream.value] for stream in BY_RANGE)
    print(f"{count:,} files, {records:,} records, {of_range:,} of them in the streams of the range")
    print(f"segments {heads}; medians of {repeats}")
    print(f"{'':24}{'seconds':>9}{'processor':>10}")
    for step, what, of in (
        ("dump", "dump of the range", count),
        ("write", "journal of the range", of_range),
        ("cut", "decompressed and cut", records),
        ("lines", "merged lines", records),
        ("tail", "journal tail --json", records),
        ("filter", "filtered by a project", records),
        ("read", "records read", records),
        ("replay", "replayed", records),
        ("fill", "bare inserts", count),
    ):
        seconds, processor = times.clock(step), times.processor(step)
        print(f"{what:24}{seconds:9.2f}{processor:10.2f} {of / processor:12,.0f} a second of the processor")
    added = times.processor("write") / times.processor("dump")
    print(f"of a dump's row, the journal of a row takes {added:.2f}, and a record {added * count / of_range:.2f}")


@contextmanager
def profiled(is_on: bool) -> Iterator[None]:
    if not is_on:
        yield
        return
    profile = cProfile.Profile()
    profile.enable()
    yield
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="print a profile, which takes longer")
    options = parser.parse_args()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)  # as in the commands
    measure(options.rows, options.repeats, with_profile=options.profile)


if __name__ == "__main__":
    main()
