"""No record is lost or out of order, however often the journal's writer and readers are killed.

    python -m pypi_assets_tests.journal.killed_consumers [--records 1000000] [--kills 30] [--seed 1]

A generated catalog with that many records is split into ranges. A process writes their journal and is killed with
SIGKILL at random moments. Meanwhile, other processes read it from their last cursor, which each keeps in a file. They
are killed as well. At the end, each reader must have every record in order, with equal bytes for repeated records. A
reader that starts at any of 200 drawn cursors must get all later records. Exits with 1 if a check fails.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from itertools import islice, pairwise
from pathlib import Path

from sqlalchemy import delete, insert, text

from benchmarks.journal import URL, filled, rows_of
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.catalog.tables import leases, serial_ranges
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.journal_errors import NoJournalError
from pypi_assets.journal.publishing import write_missing
from pypi_assets.journal.record_reader import Journal, Place
from pypi_assets.journal.verification import verify_stream
from pypi_assets.storage.root_owner import require_owner
from pypi_assets.storage.store import Storage, open_storage

# ruff: noqa: T201 - it prints its results

RECORDS_A_ROW = 3
"""About: an event, an observed record, and what was read."""
RANGES, READERS, CURSORS = 60, 3, 200
KEPT_EVERY, FOLLOWED = 1_000, 100
_KILLED_AFTER_S = (0.5, 8.0)
Seen = tuple[Place, int]
"""A record's place, and the checksum of its line."""


def catalog_of(folder: Path, rows: int) -> Catalog:
    """Return a catalog of `rows` generated distributions in RANGES complete serial ranges."""
    catalog = filled(folder, rows_of(rows))
    with catalog.write() as connection:
        last = int(connection.scalar(text("SELECT max(serial) FROM events")) or 0)
        cuts = sorted({1, *(1 + (last - 1) * number // RANGES for number in range(1, RANGES)), last})
        connection.execute(delete(serial_ranges).where(serial_ranges.c.start == 1))
        connection.execute(
            insert(serial_ranges),
            [
                {
                    "start": start,
                    "end": end,
                    "state": "complete",
                    "sealed": end != last,
                    "requested_at": 0,
                    "visited": 0,
                }
                for start, end in pairwise(cuts)
            ],
        )
    return catalog


def write(catalog: Catalog, storage: Storage) -> None:
    with catalog.write() as connection:
        connection.execute(delete(leases))  # leases of killed writers, which would expire later
    for one in write_missing(catalog, storage):
        print(one.serials, flush=True)


def read(storage: Storage, folder: Path) -> None:
    """Read from the cursor in `folder` until killed, or until all is read and `folder/../written` exists."""
    kept, seen = folder / "cursor", folder / "seen"
    cursor = Cursor.parse(kept.read_text()) if kept.exists() else Cursor.after_serial(0)
    journal = Journal(storage)
    with seen.open("a") as target:
        while True:
            is_written = (folder.parent / "written").exists()
            try:
                heads = journal.heads()
            except NoJournalError:
                time.sleep(0.1)
                continue
            lines = journal.lines(cursor, heads)
            while some := list(islice(lines, KEPT_EVERY)):
                target.writelines(f"{','.join(map(str, place))} {zlib.crc32(line)}\n" for place, line in some)
                target.flush()
                os.fsync(target.fileno())
                cursor = Cursor(*some[-1][0])
                (folder / "next").write_text(str(cursor))
                (folder / "next").replace(kept)
            if is_written:
                return
            time.sleep(0.1)


def killed_often(command: list[str], drawn: random.Random, kills: int) -> int:
    """Run a command until it ends by itself, after up to `kills` kills, and return the number of kills."""
    killed = 0
    while True:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            code = process.wait(drawn.uniform(*_KILLED_AFTER_S) if killed < kills else None)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
            continue
        if code:
            raise RuntimeError(f"{command[3:]} ended with {code}")
        return killed


def seen_by(folder: Path) -> tuple[list[Seen], int]:
    """Return a reader's records in the order of first sight, and the number of repeats.

    Raise RuntimeError if a repeat differs.
    """
    found: list[Seen] = []
    checksums: dict[Place, int] = {}
    again = 0
    for line in (folder / "seen").read_text().splitlines():
        place_text, _, checksum = line.partition(" ")
        serial, rank, ordinal = map(int, place_text.split(","))
        place = serial, rank, ordinal
        if place in checksums:
            again += 1
            if checksums[place] != int(checksum):
                raise RuntimeError(f"{folder.name}: the record at {place} came again with other bytes")
            continue
        checksums[place] = int(checksum)
        found.append((place, int(checksum)))
    return found, again


def show(folder: Path, records: int, kills: int, drawn: random.Random) -> bool:
    catalog = catalog_of(folder, max(records // RECORDS_A_ROW, 1))
    database, storage = str(catalog.engine.url), open_storage((folder / "storage").as_uri())
    catalog.close()
    require_owner(storage, URL)
    command = [sys.executable, "-m", __spec__.name]
    readers = []
    for number in range(READERS):
        (folder / f"reader{number}").mkdir()
        given = ["--kills", str(kills), "--seed", str(drawn.randrange(2**31))]
        readers.append(subprocess.Popen([*command, "--read", storage.url, str(folder / f"reader{number}"), *given]))
    killed = killed_often([*command, "--write", database, storage.url], drawn, kills)
    (folder / "written").touch()
    print(f"the writer was killed {killed} times", flush=True)
    holds = [process.wait() for process in readers] == [0] * READERS
    journal = Journal(storage)
    truth = [(place, zlib.crc32(line)) for place, line in journal.lines(Cursor.after_serial(0), journal.heads())]
    print(f"{len(truth):,} records")
    holds &= all(one < other for (one, _), (other, _) in pairwise(truth))
    for stream in JournalStream:
        verified = verify_stream(storage, stream)
        holds &= verified.is_sound
        print(f"{stream.value}: {verified.records:,} records, {'sound' if verified.is_sound else verified.fault}")
    for number in range(READERS):
        seen, again = seen_by(folder / f"reader{number}")
        holds &= seen == truth
        lost = len(set(truth) - set(seen))
        print(f"reader {number}: {len(seen):,} records, {lost} lost, {again:,} again, in order: {seen == truth}")
    for at in drawn.sample(range(len(truth)), min(CURSORS, len(truth))):
        lines = journal.lines(Cursor(*truth[at][0]), journal.heads())
        follows = [(place, zlib.crc32(line)) for place, line in islice(lines, FOLLOWED)]
        holds &= follows == truth[at + 1 : at + 1 + FOLLOWED]
    print(f"from {CURSORS} drawn cursors on: {'what follows there' if holds else 'FAILED'}")
    return holds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=30, help="how often each process is killed, at the most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    drawn = random.Random(options.seed)
    if options.write:
        write(open_catalog(options.write[0]), open_storage(options.write[1]))
    elif options.read and options.once:
        read(open_storage(options.read[0]), Path(options.read[1]))
    elif options.read:
        killed = killed_often(
            [sys.executable, "-m", __spec__.name, "--once", "--read", *options.read], drawn, options.kills
        )
        print(f"{Path(options.read[1]).name} was killed {killed} times", flush=True)
    else:
        with tempfile.TemporaryDirectory() as folder:
            sys.exit(0 if show(Path(folder), options.records, options.kills, drawn) else 1)


if __name__ == "__main__":
    main()
