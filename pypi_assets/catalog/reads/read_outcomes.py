"""What was read from each distribution, and the packs that hold the extracts.

What is still to be read is in read_queue.py. The format of packs is in extracts/packs.py.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    Connection,
    Update,
    bindparam,
    delete,
    exists,
    func,
    literal,
    select,
    update,
)

from pypi_assets.catalog.coordination.claims import WORKER_DIED
from pypi_assets.catalog.database import at_a_time, insert_missing, storable
from pypi_assets.catalog.ledger.epochs import note_changed_files
from pypi_assets.catalog.ledger.range_ledger import lock_state, log_changes, sealed_end
from pypi_assets.catalog.reads.stored_contents import record_details, store_lists, store_shared_details
from pypi_assets.catalog.tables import (
    changes,
    distribution_data,
    distributions,
    extract_packs,
    live_intervals,
    projects,
)
from pypi_assets.distributions.installability import is_installable
from pypi_assets.distributions.record import EXTRACTOR_VERSION, DistributionRecord, ErrorKind
from pypi_assets.distributions.record_building import record_digest

_IS_USED = exists().where(distribution_data.c.pack_id == extract_packs.c.id)


@dataclass(frozen=True, slots=True)
class StoredPack:
    """A pack that lies whole in the storage, its size in bytes, and where in it (offset, length) each distribution's
    extract lies, by the distribution's id."""

    name: str
    size: int
    places: Mapping[int, tuple[int, int]]


def enter_pack(connection: Connection, pack: StoredPack) -> dict[int, tuple[int, int, int]]:
    """Enters the pack where it is not known; where each distribution's extract lies: the pack's id, offset, length."""
    insert_missing(connection, extract_packs, [{"name": pack.name, "size": pack.size}])
    pack_id = connection.execute(select(extract_packs.c.id).where(extract_packs.c.name == pack.name)).scalar_one()
    return {distribution_id: (pack_id, *place) for distribution_id, place in pack.places.items()}


def used_packs(connection: Connection, after: str, limit: int) -> Sequence[str]:
    """The names of packs into which a distribution points, in their order, up to `limit` of those after `after`."""
    name = extract_packs.c.name
    return connection.scalars(select(name).where(name > after, _IS_USED).order_by(name).limit(limit)).all()


def have_extracts(connection: Connection, files: Collection[tuple[str, str]]) -> bool:
    """Whether the catalog has an extract, in whatever pack, of each of the files: (normalized project, filename)."""
    found = connection.execute(
        select(projects.c.normalized, distributions.c.filename)
        .join(distributions, distributions.c.project_id == projects.c.id)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
        .where(
            projects.c.normalized.in_({project for project, _ in files}),
            distributions.c.filename.in_({filename for _, filename in files}),
            distribution_data.c.pack_id.is_not(None),
        )
    )
    return {(row.normalized, row.filename) for row in found}.issuperset(files)


def forget_pack(connection: Connection, name: str) -> bool:
    """Removes the pack's row unless a distribution points into it; whether none does."""
    connection.execute(delete(extract_packs).where(extract_packs.c.name == name, ~_IS_USED))
    return connection.scalar(select(extract_packs.c.id).where(extract_packs.c.name == name)) is None


def record_columns(record: DistributionRecord) -> dict[str, str | None]:
    """The columns that are stored as they are in the record."""
    return {
        "error_kind": None if record.error is None else record.error.kind,
        "error_text": None if record.error is None else record.error.text,
        "metadata_version": record.metadata_version,
        "requires_python": record.requires_python,
    }


def store_record_parts(connection: Connection, records: Sequence[DistributionRecord]) -> list[dict[str, Any]]:
    """Stores the lists and the shared details of `records`; returns of each the values of all columns of its row.

    The number of statements does not depend on that of the records.
    """
    lists = store_lists(
        connection,
        [record.requires_dist for record in records if record.requires_dist is not None],
        [record.modules for record in records if record.modules is not None],
    )
    details = [record_details(record) for record in records]
    shared = store_shared_details(connection, [one.shared for one in details if one.shared is not None])
    return [
        record_columns(record)
        | {
            "extractor_version": EXTRACTOR_VERSION,
            "record_digest": record_digest(record),
            "requires_dist_id": None if record.requires_dist is None else lists[record.requires_dist],
            "modules_id": None if record.modules is None else lists[record.modules],
            "details": of_record.own,
            "is_rejected": not is_installable(record.refusals),
            "shared_details_id": None if of_record.shared is None else shared[of_record.shared],
        }
        for record, of_record in zip(records, details, strict=True)
    ]


READ_LATE = "read late"
GONE = "gone"
"""The kind of a read that the index answers with a 404. What it means depends on whether the file is live."""


NO_PAGE = "no page"
"""The kind of a read of a file whose address no page has shown."""


class ReadOutcome(StrEnum):
    """What became of a distribution. All but PENDING are final.

    VANISHED is only what is not live: it was gone before it was read. A file that becomes live again is read again.
    SKIPPED is what the rules of scopes leave out; it is read once they no longer do.
    """

    PENDING = "pending"
    DATA = "data"
    ERROR = "error"
    VANISHED = "vanished"
    UNSUPPORTED = "unsupported"
    EXHAUSTED = "gave up"
    SKIPPED = "skipped"


FAILED = (ReadOutcome.ERROR, ReadOutcome.EXHAUSTED)
_WAITING = frozenset({ReadOutcome.PENDING, ReadOutcome.EXHAUSTED})


@dataclass(frozen=True, slots=True)
class FinishedRead:
    """What came of one attempt: a record, or no record and the outcome that follows.

    A PENDING one is tried again at `due_at`; times are unix seconds. `extract` is what the record was made of, encoded;
    None where nothing was taken out of the file. `sha256` is that of the bytes, where their page has none.
    """

    distribution_id: int
    outcome: ReadOutcome
    record: DistributionRecord | None = None
    error_kind: str | None = None
    error_text: str | None = None
    due_at: float = 0.0
    extract: bytes | None = None
    started_at: float | None = None
    bytes_fetched: int = 0
    requests: int = 0
    seconds: float = 0.0
    sha256: str | None = None

    @property
    def failure(self) -> str | None:
        """The kind of failure: of an error, or of an exhausted read; None of anything else."""
        if self.outcome not in FAILED:
            return None
        error = self.record and self.record.error
        return error.kind if error else self.error_kind


@dataclass(frozen=True, slots=True)
class ShardReads:
    """How many distributions of a shard have which outcome, what kinds of failures there are, and what was fetched for
    them in all."""

    outcomes: Mapping[str, int]
    failures: Mapping[str, int]
    bytes_fetched: int
    requests: int


def record_outcome(record: DistributionRecord) -> ReadOutcome:
    """The outcome that a record stands for."""
    if record.error is None:
        return ReadOutcome.DATA
    return ReadOutcome.UNSUPPORTED if record.error.kind == ErrorKind.UNSUPPORTED_KIND else ReadOutcome.ERROR


def without_vanished(connection: Connection, finished: Sequence[FinishedRead]) -> list[FinishedRead]:
    """`finished`, in which a 404 of a file that is not live now has become VANISHED.

    A 404 of a live file stays the failure that it is, so that it is tried again and shown. What was live when the file
    was claimed does not count: a quarantine can have begun, or have been cleared, since.
    """
    gone = [read.distribution_id for read in finished if read.error_kind == GONE]
    live = {
        id_
        for ids in at_a_time(gone)
        for id_ in connection.scalars(
            select(live_intervals.c.distribution_id).where(
                live_intervals.c.distribution_id.in_(ids), live_intervals.c.end.is_(None)
            )
        )
    }
    vanished = set(gone) - live
    return [
        replace(read, outcome=ReadOutcome.VANISHED, due_at=0.0) if read.distribution_id in vanished else read
        for read in finished
    ]


def reads_by_shard(connection: Connection, shards: Sequence[int]) -> dict[int, ShardReads]:
    """What became of all distributions ever known of the projects in each of `shards`."""
    outcomes: dict[int, Counter[str]] = {shard: Counter() for shard in shards}
    failures: dict[int, Counter[str]] = {shard: Counter() for shard in shards}
    fetched = dict.fromkeys(shards, 0)
    requests = dict.fromkeys(shards, 0)
    of_shard_and_kind = (projects.c.shard, distribution_data.c.outcome, distribution_data.c.error_kind)
    query = (
        select(
            *of_shard_and_kind,
            func.count(),
            func.sum(distribution_data.c.bytes_fetched),
            func.sum(distribution_data.c.requests),
        )
        .join(distributions, distributions.c.project_id == projects.c.id)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
        .where(projects.c.shard.in_(shards))
        .group_by(*of_shard_and_kind)
    )
    for shard, outcome, kind, count, fetched_bytes, sent in connection.execute(query):
        outcomes[shard][outcome] += count
        if outcome in FAILED:
            failures[shard][kind or WORKER_DIED] += count
        fetched[shard] += int(fetched_bytes)
        requests[shard] += int(sent)
    return {shard: ShardReads(outcomes[shard], failures[shard], fetched[shard], requests[shard]) for shard in shards}


def store_reads(
    connection: Connection, finished: Sequence[FinishedRead], now: float, pack: StoredPack | None = None
) -> None:
    """Stores what came of some attempts, and logs those that come after the dump of their changes was sealed.

    `pack` is where their extracts lie in the storage.
    """
    _note_hashes(connection, finished)
    places = {} if pack is None else enter_pack(connection, pack)
    with_record = [(read.distribution_id, read.record) for read in finished if read.record is not None]
    of_records = store_record_parts(connection, [record for _, record in with_record])
    columns = {distribution_id: one for (distribution_id, _), one in zip(with_record, of_records, strict=True)}
    for is_waiting in (True, False):
        for has_record in (True, False):
            rows = [
                _read_parameters(read)
                | columns.get(read.distribution_id, {})
                | ({} if is_waiting else _place(places.get(read.distribution_id)))
                for read in finished
                if (read.outcome in _WAITING) == is_waiting and (read.record is not None) == has_record
            ]
            if rows:
                connection.execute(_read_update(rows[0], is_waiting, now), rows)
    ended = [read.distribution_id for read in finished if read.outcome != ReadOutcome.PENDING]
    _log_late_reads(connection, ended)
    note_changed_files(connection, ended)


def _read_update(parameters: Mapping[str, Any], is_waiting: bool, now: float) -> Update:
    """The statement that stores reads of one shape: all that wait for another try or all that do not."""
    data = distribution_data.c
    added = {"bytes_fetched", "requests", "seconds"}
    columns = {
        name: data[name] + bindparam(name, type_=data[name].type) if name in added else bindparam(name)
        for name in parameters
        if name != "read_id"
    }
    if not is_waiting:
        columns["read_at"] = literal(now)
    return update(distribution_data).where(data.distribution_id == bindparam("read_id")).values(columns)


def _read_parameters(read: FinishedRead) -> dict[str, Any]:
    return {
        "read_id": read.distribution_id,
        "outcome": read.outcome,
        "error_kind": read.error_kind,
        "error_text": None if read.error_text is None else storable(read.error_text),
        "bytes_fetched": read.bytes_fetched,
        "requests": read.requests,
        "seconds": read.seconds,
    }


def _note_hashes(connection: Connection, finished: Iterable[FinishedRead]) -> None:
    """Gives files whose pages have no hash that of the bytes that were read."""
    of = distributions.c
    hashed = sorted((read.distribution_id, read.sha256) for read in finished if read.sha256)
    rows = [{"of_id": id_, "read_sha256": sha256} for id_, sha256 in hashed]
    if rows:
        is_unknown = (of.id == bindparam("of_id")) & of.sha256.is_(None)
        connection.execute(update(distributions).where(is_unknown).values(sha256=bindparam("read_sha256")), rows)


def _place(place: tuple[int, int, int] | None) -> dict[str, int | None]:
    """Where the extract lies. A file that was read again without one has none: the old one may be of other bytes."""
    return dict(zip(("pack_id", "pack_offset", "pack_length"), place or (None, None, None), strict=True))


def _log_late_reads(connection: Connection, distribution_ids: Iterable[int]) -> None:
    lock_state(connection, exclusive=False)
    last_sealed = sealed_end(connection)
    ids = sorted(distribution_ids)
    if not last_sealed or not ids:
        return
    read_late = connection.execute(
        select(changes.c.distribution_id, func.max(changes.c.serial))
        .where(changes.c.distribution_id.in_(ids), changes.c.logged_serial <= last_sealed)
        .group_by(changes.c.distribution_id)
    )
    rows = [
        {"distribution_id": distribution_id, "serial": serial, "cause": READ_LATE, "logged_serial": last_sealed + 1}
        for distribution_id, serial in read_late
    ]
    log_changes(connection, rows)
