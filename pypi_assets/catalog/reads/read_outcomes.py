"""Outcomes of reading distributions, and the packs that contain their extracts.

The queue of pending reads is in read_queue.py. The format of packs is in extracts/packs.py.
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
    """A pack that is complete in the storage, with its size in bytes.

    `places` has the (offset, length) of each distribution's extract in the pack, by distribution id.
    """

    name: str
    size: int
    places: Mapping[int, tuple[int, int]]


def enter_pack(connection: Connection, pack: StoredPack) -> dict[int, tuple[int, int, int]]:
    """Insert the pack if it is unknown. Return the pack's id, offset and length for each distribution's extract."""
    insert_missing(connection, extract_packs, [{"name": pack.name, "size": pack.size}])
    pack_id = connection.execute(select(extract_packs.c.id).where(extract_packs.c.name == pack.name)).scalar_one()
    return {distribution_id: (pack_id, *place) for distribution_id, place in pack.places.items()}


def used_packs(connection: Connection, after: str, limit: int) -> Sequence[str]:
    """Return, in order, the names of up to `limit` packs after `after` that have the extract of a distribution."""
    name = extract_packs.c.name
    return connection.scalars(select(name).where(name > after, _IS_USED).order_by(name).limit(limit)).all()


def have_extracts(connection: Connection, files: Collection[tuple[str, str]]) -> bool:
    """Check whether each of the files, given as (normalized project, filename), has an extract in any pack."""
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
    """Delete the pack's row unless a distribution refers to it. Return whether the row no longer exists."""
    connection.execute(delete(extract_packs).where(extract_packs.c.name == name, ~_IS_USED))
    return connection.scalar(select(extract_packs.c.id).where(extract_packs.c.name == name)) is None


def record_columns(record: DistributionRecord) -> dict[str, str | None]:
    """Return the columns that are stored as they are in the record."""
    return {
        "error_kind": None if record.error is None else record.error.kind,
        "error_text": None if record.error is None else record.error.text,
        "metadata_version": record.metadata_version,
        "requires_python": record.requires_python,
    }


def store_record_parts(connection: Connection, records: Sequence[DistributionRecord]) -> list[dict[str, Any]]:
    """Store the lists and shared details of `records`. Return the values of all columns of each record's row.

    The number of SQL statements does not depend on the number of records.
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
"""The kind of a read that the index answered with a 404. Its meaning depends on whether the file is live."""


NO_PAGE = "no page"
"""The kind of a read of a file whose URL no page has shown."""


class ReadOutcome(StrEnum):
    """The outcome of reading a distribution. All outcomes but PENDING are final.

    VANISHED applies only to files that are not live: they were deleted before they were read. A file that becomes live
    again is read again. SKIPPED files are skipped by the rules of scopes; they are read once the rules no longer skip
    them.
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
    """The result of one attempt to read: a record, or no record and the resulting outcome.

    A PENDING read is tried again at `due_at`; times are unix seconds. `extract` is the encoded extract from which the
    record was made; None if nothing was extracted. `sha256` is the hash of the content, if the page has none.
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
        """Return the kind of failure of an error or an exhausted read; None for other outcomes."""
        if self.outcome not in FAILED:
            return None
        error = self.record and self.record.error
        return error.kind if error else self.error_kind


@dataclass(frozen=True, slots=True)
class ShardReads:
    """The results of reading the distributions of a shard.

    They are the counts by outcome, the counts by kind of failure, and the bytes and requests that were needed in total.
    """

    outcomes: Mapping[str, int]
    failures: Mapping[str, int]
    bytes_fetched: int
    requests: int


def record_outcome(record: DistributionRecord) -> ReadOutcome:
    """Return the outcome of a record."""
    if record.error is None:
        return ReadOutcome.DATA
    return ReadOutcome.UNSUPPORTED if record.error.kind == ErrorKind.UNSUPPORTED_KIND else ReadOutcome.ERROR


def without_vanished(connection: Connection, finished: Sequence[FinishedRead]) -> list[FinishedRead]:
    """Return `finished` with the outcome VANISHED for each 404 of a file that is not live now.

    A 404 of a live file remains a failure, so that it is tried again and displayed. The state at the time of the claim
    does not matter: a quarantine can have begun or ended since.
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
    """Return the results of reading all distributions ever known of the projects in each of `shards`."""
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
    """Store the results of some attempts, and log those that come after the dump of their changes was sealed.

    `pack` has the extracts in the storage.
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
    """Return the statement that stores reads with these columns, all of which wait for another attempt, or none."""
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
    """Store the hash of the content for files whose pages have no hash."""
    c = distributions.c
    hashed = sorted((read.distribution_id, read.sha256) for read in finished if read.sha256)
    rows = [{"of_id": id_, "read_sha256": sha256} for id_, sha256 in hashed]
    if rows:
        is_unknown = (c.id == bindparam("of_id")) & c.sha256.is_(None)
        connection.execute(update(distributions).where(is_unknown).values(sha256=bindparam("read_sha256")), rows)


def _place(place: tuple[int, int, int] | None) -> dict[str, int | None]:
    """Return the columns with the place of the extract.

    They are null if the file was read again without an extract, since the old extract may be of another content.
    """
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
