"""Replays the journal into a separate catalog, from its beginning or from a full dump, up to a serial.

The new catalog equals the catalog that wrote the journal in live, yanked and followed files, in contents of files, in
events, in the log of changes, and in visits that have ended. The journal has no texts of pages.

Records are stored in batches, together with the position reached. So a stopped replay continues there; if it was
stopped while it read the dump, it reads the dump again. It must continue with the same journal, so the last manifest of
each stream is stored too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import msgspec
import orjson
from sqlalchemy import Connection

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.replayed_records import (
    Gap,
    ReplayedRecords,
    ReplayedSpan,
    enter_records,
    finish_replay,
    follows_some,
    has_rows,
)
from pypi_assets.catalog.derived.stored_files import SHOWN_FACTS
from pypi_assets.catalog.publications.dump_columns import DumpKind
from pypi_assets.catalog.publications.dump_rows import CONTENT
from pypi_assets.catalog.publications.journal_deliveries import find_consumer, put_consumer
from pypi_assets.catalog.reports.journal_format import GAP, JournalStream, Record
from pypi_assets.dumps.dump_manifest import DumpManifest, committed_directories, read_manifest
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.errors import ExpectedError
from pypi_assets.journal.cursors import RANKS, Cursor
from pypi_assets.journal.record_reader import Journal, Place
from pypi_assets.journal.replayed_types import RecordError, decode_record, decode_row
from pypi_assets.journal.segment_files import Head, JournalDamagedError
from pypi_assets.journal.tailing import Scan
from pypi_assets.storage.root_owner import read_owner
from pypi_assets.storage.store import Storage

CONSUMER = "replay"
BATCH_RECORDS = 10_000
STEP_RECORDS = 1_000_000
"""After this many records, the catalog can answer up to the serial reached, and the replay continues."""
Progress = Callable[[int], None]
_STREAMS = tuple(RANKS)
_CONTENT_DEFAULTS = {"provides_extra": [], "stubs": [], "left_out": 0}


class ReplayError(ExpectedError):
    """The journal cannot be replayed as requested. The message has the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay.

    `through` is the serial reached, `exact_from` the first serial with answers, `records` the number of records stored
    now, and `dump` the dump that it began with. `began` is `from nothing`, `where it was stopped` (or had ended), or
    `with the dump again`.
    """

    through: int
    exact_from: int
    records: int
    dump: str | None
    began: str


@dataclass(frozen=True, slots=True)
class _Position:
    """The progress of a replay: the position of its last record, the dump to begin with, and whether that was read."""

    after: Cursor
    dump: str | None = None
    is_dump_read: bool = True
    events_since: int = 0
    exact_from: int = 0
    gaps: tuple[Gap, ...] = field(default=())
    chains: Mapping[str, tuple[int, int, str]] = field(default_factory=dict)
    """For each stream, the generation, and the number and digest of the last manifest of the replayed journal."""

    def encode(self) -> str:
        return orjson.dumps(
            {
                "after": str(self.after),
                "dump": self.dump,
                "is_dump_read": self.is_dump_read,
                "events_since": self.events_since,
                "exact_from": self.exact_from,
                "gaps": self.gaps,
                "chains": self.chains,
            }
        ).decode()

    @classmethod
    def decode(cls, text: str) -> "_Position":
        fields = orjson.loads(text)
        gaps = tuple((start, until, at) for start, until, at in fields.pop("gaps"))
        places = fields.pop("chains", {}).items()
        chains = {stream: (generation, number, digest) for stream, (generation, number, digest) in places}
        return cls(Cursor.parse(fields.pop("after")), gaps=gaps, chains=chains, **fields)


def replay(
    storage: Storage,
    catalog: Catalog,
    to: int | None = None,
    *,
    from_dump: bool = False,
    progress: Progress | None = None,
) -> Replayed:
    """Replay the journal into an empty or previously replayed catalog, up to the serial `to`.

    If `to` is None, the journal's end is used. With `from_dump`, or if the journal does not begin at 0, the replay
    begins with the newest full dump. `progress` receives the number of records so far. Raises ReplayError,
    NoJournalError and JournalDamagedError.
    """
    journal = Journal(storage)
    heads = journal.heads()
    end = min(head.through for head in heads)
    through = end if to is None else to
    if not 0 < through <= end:
        raise ReplayError(f"the journal in {storage.url} cannot be replayed up to serial {through}: it ends at {end}")
    position, began = _begin(storage, catalog, through, from_dump=from_dump)
    _require_same_chains(journal, heads, position)
    if position.after.serial > through:
        raise ReplayError(f"the catalog was already replayed beyond serial {through}; use a new catalog")
    index_url = read_owner(storage)
    replaying = _Replaying(catalog, replace(position, chains=_chains(heads)), index_url, progress)
    if not position.is_dump_read:
        replaying.take_dump(storage)
    begin = replaying.position.after
    late = [
        head.stream
        for head in heads
        if (head.stream != JournalStream.INDEX and head.start > begin.serial)
        or (head.pruned is not None and head.pruned.end > begin.whole_serial)
    ]
    if late:
        raise ReplayError(
            f"the journal begins after serial {begin.serial}: {', '.join(late)}; use a new catalog, and begin with the"
            " newest full dump"
        )
    index = next(head for head in heads if head.stream == JournalStream.INDEX)
    if replaying.position.dump is None and not begin.serial:
        replaying.position = replace(replaying.position, events_since=index.start)
    for place, line in Scan(journal, begin, heads=heads, through=through):
        if line is None:
            continue
        replaying.count_step(place[0])
        replaying.take(place, line)
    replaying.finish(through)
    last = replaying.position
    return Replayed(through, last.exact_from, replaying.count, last.dump, began)


def _begin(storage: Storage, catalog: Catalog, through: int, *, from_dump: bool) -> tuple[_Position, str]:
    with catalog.read() as connection:
        consumer, is_used = find_consumer(connection, CONSUMER), has_rows(connection)
    if consumer is not None:
        position = _Position.decode(consumer.cursor)
        if not position.is_dump_read and position.dump not in set(committed_directories(storage)):
            raise ReplayError(
                f"the replay was stopped while it read the full dump {position.dump}, which is no longer in"
                f" {storage.url}: use a new catalog"
            )
        return position, "where it was stopped" if position.is_dump_read else "with the dump again"
    if is_used:
        raise ReplayError("the catalog is neither empty nor a replayed catalog: use another database")
    journal = Journal(storage)
    begins_late = any(
        head.readable_from > 0
        for head in journal.heads()
        if head.stream != JournalStream.INDEX or head.pruned is not None
    )
    if not (from_dump or begins_late):
        return _Position(Cursor.after_serial(0)), "from nothing"
    dump = newest_full_dump(storage, through)
    if dump is None:
        raise ReplayError(f"the replay must begin with a full dump, and {storage.url} has none up to serial {through}")
    serial = dump.serials.end
    position = _Position(
        Cursor.after_serial(serial), dump.directory, is_dump_read=False, events_since=serial, exact_from=serial
    )
    return position, "from nothing"


def _chains(heads: Iterable[Head]) -> dict[str, tuple[int, int, str]]:
    return {head.stream: (head.generation, head.number, head.digest) for head in heads if head.digest is not None}


def _require_same_chains(journal: Journal, heads: Iterable[Head], position: _Position) -> None:
    """Raise ReplayError if the journal is not the one replayed so far.

    A later generation of a stream is accepted, since it covers the same past.
    """
    for head in heads:
        generation, number, digest = position.chains.get(head.stream, (0, 0, ""))
        if generation != head.generation:
            continue
        if number > head.number or journal.manifest(head, number).digest != digest:
            raise ReplayError(
                f"the catalog was replayed from another journal than the one in {journal.storage.url}: segment {number}"
                f" of the stream {head.stream} differs or is missing. Use another database, or an empty one"
            )


def newest_full_dump(storage: Storage, through: int | None = None) -> DumpManifest | None:
    """Return the full dump with the greatest end, up to the serial `through` if given; None if there are no full dumps.

    If several dumps end at the same serial, the result is the dump that began to read last.
    """
    manifests = (read_manifest(storage, directory) for directory in committed_directories(storage))
    full = [
        manifest
        for manifest in manifests
        if manifest.kind == DumpKind.FULL and (through is None or manifest.serials.end <= through)
    ]
    return max(full, key=lambda manifest: (manifest.serials.end, manifest.sequence), default=None)


@dataclass
class _Replaying:
    """Stores records in `catalog` and tracks the position."""

    catalog: Catalog
    position: _Position
    index_url: str
    progress: Progress | None
    count: int = 0
    _counted: int = 0
    _waiting: ReplayedRecords = field(default_factory=ReplayedRecords)
    _waiting_count: int = 0
    _last: Place | None = None

    def take_dump(self, storage: Storage) -> None:
        """Store the rows of the dump that the replay begins with."""
        directory = self.position.dump or ""
        is_of_scopes = read_manifest(storage, directory).followed_projects is not None
        serial = self.position.after.serial
        for row in iter_dump(storage, directory, decode_row):
            for record in _records_of(row, serial, is_of_scopes=is_of_scopes):
                self._waiting.add(record)
            self._waiting.log.clear()  # the changes that led to the dump's state are not known
            self._waiting_count += 1
            if self._waiting_count >= BATCH_RECORDS:
                self._enter()
        self.position = replace(self.position, is_dump_read=True)
        self._enter()

    def take(self, place: Place, line: bytes) -> None:
        """Add the next record of the journal, given as its line of JSON."""
        try:
            record = decode_record(place, line)
        except RecordError as error:
            raise JournalDamagedError(f"{_named(place)} is not one that this version reads: {error}") from error
        if self._waiting_count >= BATCH_RECORDS or self._waiting.is_full_for(record):
            self._enter()
        self._waiting.add(record)
        self._waiting_count += 1
        self._last = place
        if record["kind"] == GAP:
            position, span = self.position, (record["serial"], record["until"])
            if span[0] == 1 and not position.dump:
                self.position = replace(position, exact_from=max(position.exact_from, span[1]))
            else:  # two streams have it, and one of them has its time
                known = {gap[:2]: gap[2] for gap in position.gaps}
                known[span] = known.get(span) or record.get("at")
                self.position = replace(position, gaps=tuple((*each, at) for each, at in known.items()))

    def count_step(self, serial: int) -> None:
        """Complete a step before the first record of a new serial, if enough records were stored since the last."""
        reached = 0 if self._last is None else self._last[0]
        if self.count - self._counted >= STEP_RECORDS and reached < serial:
            self.finish(reached)

    def finish(self, through: int) -> None:
        """Store the waiting records. The catalog then answers up to the serial `through`."""
        self._enter()
        done = replace(self.position, after=Cursor.after_serial(through))

        def work(connection: Connection) -> None:
            span = ReplayedSpan(
                self.index_url,
                done.events_since,
                done.exact_from,
                through,
                follows_all=not follows_some(connection),
                gaps=done.gaps,
            )
            finish_replay(connection, span, self.catalog.clock())
            self._keep(connection, replace(done, gaps=()))

        self.catalog.transact(work)
        self.position = replace(done, gaps=())
        self._last, self._counted = None, self.count

    def _enter(self) -> None:
        records, count = self._waiting, self._waiting_count
        self._waiting, self._waiting_count = ReplayedRecords(), 0
        if self._last is not None:
            self.position = replace(self.position, after=Cursor(*self._last))

        def work(connection: Connection) -> None:
            enter_records(connection, records, self.position.events_since)
            self._keep(connection, self.position)

        try:
            self.catalog.transact(work)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            last = "the full dump" if self._last is None else _named(self._last)
            raise JournalDamagedError(f"a record up to {last} has no list of texts: {error}") from error
        self.count += count
        if self.progress is not None:
            self.progress(self.count)

    def _keep(self, connection: Connection, position: _Position) -> None:
        put_consumer(connection, CONSUMER, position.encode(), position.after.serial, self.catalog.clock())


def _named(place: Place) -> str:
    serial, rank, ordinal = place
    return f"record {ordinal} of the journal's stream {_STREAMS[rank]} at serial {serial}"


def _records_of(row: Record, serial: int, *, is_of_scopes: bool) -> Iterator[Record]:
    """Yield a row of a full dump that ends at `serial` as records.

    About the time before the dump, a row only states the serial since which the file is live without a break.
    """
    place = {name: row[name] for name in ("project", "normalized", "version", "filename")}
    observed = place | {name: row.get(name) for name in SHOWN_FACTS} | {"stream": "observed", "serial": serial}
    observed |= {"of_serial": serial, "cause": "", "generation": 1, "distribution_kind": row["kind"]}
    observed |= {"live": [[row["live_since"], None]], "yanked": [[serial, None]] if row["yanked"] else []}
    if is_of_scopes:
        observed["followed"] = [[serial, None, serial]]
    yield observed | {"project_status": row.get("project_status")}
    if row["outcome"] != "pending":
        yield {name: _CONTENT_DEFAULTS.get(name) for name in CONTENT} | row | {"stream": "content", "cause": ""}
