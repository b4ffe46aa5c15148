"""Stored extracts of distributions: where they are, and the records that are made from them again.

The next full dump publishes a reprocess; its changes are not logged for incremental dumps. Live files whose extract is
missing or corrupt keep the record of an older extractor until they are read again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from isal import isal_zlib
from packaging.utils import canonicalize_name
from sqlalchemy import Connection, Select, bindparam, exists, func, select, tuple_, update

from pypi_assets.catalog.database import at_a_time, lock_rows
from pypi_assets.catalog.ledger.epochs import NoticeKind, announce, note_changed_files
from pypi_assets.catalog.reads.file_counts import counting_files
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome, record_columns, record_outcome, store_record_parts
from pypi_assets.catalog.reads.stored_contents import StoredLists, list_digest, merged_details, record_details
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    extract_packs,
    live_intervals,
    name_lists,
    projects,
    shared_details,
)
from pypi_assets.distributions.record import EXTRACTOR_VERSION, DistributionRecord

_NOT_MADE_OF_BYTES = (ReadOutcome.PENDING, ReadOutcome.VANISHED, ReadOutcome.EXHAUSTED)
"""The outcomes of distributions that wait to be read, possibly because their content is not that of their extract.

These outcomes are listed in place of the others, since a database would search the others by their index, and sort
nearly all rows.
"""
_COMPARED = ("outcome", "error_kind", "error_text", "metadata_version", "requires_python")

_requires = name_lists.alias("requires")
_modules = name_lists.alias("modules")


@dataclass(frozen=True, slots=True)
class ExtractPlace:
    """The place of a distribution's extract: the pack's id, name and size, and the offset and length in bytes."""

    distribution_id: int
    project: str
    filename: str
    pack_id: int
    pack: str
    pack_size: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record that was made from an extract: the extract's place, the extractor's version, and the `record_digest`."""

    place: ExtractPlace
    extractor_version: int
    digest: str | None


@dataclass(frozen=True, slots=True)
class RecordContent:
    """The stored content of a record. Lists are given as (id, hash); None if they are unknown."""

    columns: Mapping[str, str | None]
    details: Mapping[str, object]
    requires_dist: tuple[int, str] | None
    modules: tuple[int, str] | None

    def is_like(self, record: DistributionRecord) -> bool:
        """Check whether storing `record` would change nothing."""
        return (
            _is_list(self.modules, record.modules)
            and _is_list(self.requires_dist, record.requires_dist)
            and self.columns == _columns(record)
            and self.details == _details(record)
        )

    @property
    def error(self) -> str | None:
        """Return the error's kind and text; None without an error."""
        kind, text = self.columns["error_kind"], self.columns["error_text"]
        return None if kind is None else f"{kind}: {text}"

    def difference(self, record: DistributionRecord) -> str:
        """Return the names of the fields that differ in `record`, except for lists."""
        before = {**self.columns, **self.details}
        after = {**_columns(record), **_details(record)}
        absent = object()
        return ", ".join(name for name in before | after if before.get(name, absent) != after.get(name, absent))


def _is_list(stored: tuple[int, str] | None, names: Sequence[str] | None) -> bool:
    if stored is None or names is None:
        return stored is None and names is None
    return stored[1] == list_digest(names)


def _columns(record: DistributionRecord) -> dict[str, str | None]:
    return {"outcome": record_outcome(record)} | record_columns(record)


def _details(record: DistributionRecord) -> dict[str, object]:
    parts = record_details(record)
    return merged_details(parts.own, parts.shared)


def records_older_than(
    connection: Connection, version: int, after: StoredRecord | None, limit: int
) -> list[StoredRecord]:
    """Return records that an extractor older than `version` made from an extract, in order of packs and offsets."""
    place = tuple_(distribution_data.c.pack_id, distribution_data.c.pack_offset)
    query = _older_than(_records(), version).order_by(distribution_data.c.pack_id, distribution_data.c.pack_offset)
    last = (0, 0) if after is None else (after.place.pack_id, after.place.offset)
    return [_record(row) for row in connection.execute(query.where(place > last).limit(limit))]


def records_of_project(connection: Connection, project_id: int, version: int) -> list[StoredRecord]:
    """Return the records of one project like `records_older_than`, all at once."""
    query = _older_than(_records(), version).where(distributions.c.project_id == project_id)
    found = [_record(row) for row in connection.execute(query)]
    return sorted(found, key=lambda record: (record.place.pack_id, record.place.offset))


def count_older_than(connection: Connection, version: int) -> int:
    query = _older_than(select(func.count()).select_from(distribution_data), version)
    return int(connection.scalar(query.where(distribution_data.c.pack_id > 0)) or 0)


def find_extracts(connection: Connection, filename: str, project: str | None = None) -> list[ExtractPlace]:
    """Return the extracts of distributions with this name, in one project or in each that the name can belong to."""
    parts = filename.split("-")
    names = [project] if project else ["-".join(parts[:length]) for length in range(1, len(parts) + 1)]
    query = _records().where(
        projects.c.normalized.in_([canonicalize_name(name) for name in names]), distributions.c.filename == filename
    )
    return [_record(row).place for row in connection.execute(query.order_by(projects.c.normalized))]


def _records() -> Select[Any]:
    data = distribution_data.c
    return (
        select(
            data.distribution_id,
            projects.c.normalized,
            distributions.c.filename,
            data.pack_id,
            extract_packs.c.name,
            extract_packs.c.size,
            data.pack_offset,
            data.pack_length,
            data.extractor_version,
            data.record_digest,
        )
        .select_from(distribution_data)
        .join(distributions, distributions.c.id == data.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(extract_packs, extract_packs.c.id == data.pack_id)
    )


def _older_than(query: Select[Any], version: int) -> Select[Any]:
    return query.where(
        distribution_data.c.extractor_version < version, distribution_data.c.outcome.not_in(_NOT_MADE_OF_BYTES)
    )


def _record(row: Any) -> StoredRecord:
    *place, version, digest = row
    return StoredRecord(ExtractPlace(*place), version, digest)


@dataclass(frozen=True, slots=True)
class NamesChange:
    """A change of a list of names. None stands for a list that was unknown before, or is unknown now."""

    before: tuple[str, ...] | None
    after: tuple[str, ...] | None

    @property
    def gained(self) -> list[str]:
        return sorted(set(self.after or ()) - set(self.before or ()))

    @property
    def lost(self) -> list[str]:
        return sorted(set(self.before or ()) - set(self.after or ()))


def changed_names(
    connection: Connection, changed: Sequence[tuple[RecordContent, DistributionRecord]]
) -> Iterator[tuple[NamesChange, NamesChange]]:
    """Yield the changes of modules and requirements of each record. Only lists that differ are loaded."""
    stored = StoredLists(connection).load(
        names[0]
        for old, new in changed
        for names, known in ((old.modules, new.modules), (old.requires_dist, new.requires_dist))
        if names is not None and not _is_list(names, known)
    )

    def change(old: tuple[int, str] | None, new: tuple[str, ...] | None) -> NamesChange:
        if old is None:
            return NamesChange(None, new)
        return NamesChange(tuple(stored[old[0]]), new) if old[0] in stored else NamesChange(new, new)

    for old, new in changed:
        yield change(old.modules, new.modules), change(old.requires_dist, new.requires_dist)


def store_reprocessed(
    connection: Connection,
    changed: Sequence[tuple[StoredRecord, DistributionRecord]],
    unchanged: Iterable[StoredRecord],
) -> dict[int, RecordContent]:
    """Store the changed records, and the extractor's version for changed and unchanged records.

    A distribution does not change if a crawl has read it in the meantime, or is about to. Return the previous content
    of the changed records, by distribution id.
    """
    unchanged = list(unchanged)
    ids = sorted(record.place.distribution_id for record in (*unchanged, *(old for old, _ in changed)))
    for chunk in at_a_time(ids):
        lock_rows(connection, distribution_data, distribution_data.c.distribution_id.in_(chunk))
    _raise_versions(connection, unchanged)
    before = _lock_unmoved(connection, [old for old, _ in changed])
    stored = [(old, new) for old, new in changed if old.place.distribution_id in before]
    rows = [
        {"changed_id": old.place.distribution_id, "outcome": record_outcome(new)} | columns
        for (old, new), columns in zip(stored, store_record_parts(connection, [new for _, new in stored]), strict=True)
    ]
    if rows:
        statement = update(distribution_data).where(distribution_data.c.distribution_id == bindparam("changed_id"))
        values: dict[str, Any] = {name: bindparam(name) for name in rows[0] if name != "changed_id"}
        with counting_files(connection, list(before)):
            connection.execute(statement.values(values), rows)
        if (since := note_changed_files(connection, before)) is not None:
            announce(connection, NoticeKind.REPROCESSED, since)
    return before


def _raise_versions(connection: Connection, records: Iterable[StoredRecord]) -> None:
    data = distribution_data.c
    for pack_id, of_pack in groupby(records, key=lambda record: record.place.pack_id):
        ids = [record.place.distribution_id for record in of_pack if record.extractor_version != EXTRACTOR_VERSION]
        if ids:
            connection.execute(
                update(distribution_data)
                .where(data.distribution_id.in_(ids), data.pack_id == pack_id, data.outcome.not_in(_NOT_MADE_OF_BYTES))
                .values(extractor_version=EXTRACTOR_VERSION)
            )


def _lock_unmoved(connection: Connection, records: Sequence[StoredRecord]) -> dict[int, RecordContent]:
    """Return the content of records whose extract is still the one that was read, locked until the transaction ends."""
    data = distribution_data.c
    places = {record.place.distribution_id: (record.place.pack_id, record.place.offset) for record in records}
    if not places:
        return {}
    rows = connection.execute(
        select(
            data.distribution_id,
            data.pack_id,
            data.pack_offset,
            data.requires_dist_id,
            _requires.c.sha256,
            data.modules_id,
            _modules.c.sha256,
            data.details,
            shared_details.c.content,
            *(data[name] for name in _COMPARED),
        )
        .outerjoin(_requires, _requires.c.id == data.requires_dist_id)
        .outerjoin(_modules, _modules.c.id == data.modules_id)
        .outerjoin(shared_details, shared_details.c.id == data.shared_details_id)
        .where(data.distribution_id.in_(places), data.outcome.not_in(_NOT_MADE_OF_BYTES))
        .order_by(data.distribution_id)
        .with_for_update(of=distribution_data)
    )
    return {row[0]: _content(*row[3:]) for row in rows if places[row[0]] == row[1:3]}


def _content(
    requires_dist_id: int | None,
    requires_dist_sha256: str,
    modules_id: int | None,
    modules_sha256: str,
    details: str | None,
    shared: bytes | None,
    *columns: str | None,
) -> RecordContent:
    return RecordContent(
        columns=dict(zip(_COMPARED, columns, strict=True)),
        details=merged_details(details, None if shared is None else isal_zlib.decompress(shared)),
        requires_dist=None if requires_dist_id is None else (requires_dist_id, requires_dist_sha256),
        modules=None if modules_id is None else (modules_id, modules_sha256),
    )


@dataclass(frozen=True, slots=True)
class UnsuppliedRecord:
    """A file with an outdated record that could be read again."""

    distribution_id: int
    project_id: int
    filename: str


def count_unsupplied(connection: Connection, version: int, project_id: int | None = None) -> int:
    """Return how many records of an extractor older than `version` remain after a reprocess, of one or all projects."""
    found = _unsupplied(version, project_id, after=0).subquery()
    return int(connection.scalar(select(func.count()).select_from(found)) or 0)


def unsupplied_records(
    connection: Connection, version: int, project_id: int | None = None, *, after: int = 0, limit: int
) -> list[UnsuppliedRecord]:
    """Return the remaining records by distribution id, up to `limit` of them after the id `after`."""
    query = _unsupplied(version, project_id, after).order_by(distribution_data.c.distribution_id).limit(limit)
    return [UnsuppliedRecord(*row) for row in connection.execute(query)]


def make_pending(connection: Connection, distribution_ids: Iterable[int]) -> None:
    """Mark these distributions to be read again. Their stored records are kept until then."""
    for ids in at_a_time(distribution_ids):
        of_these = distribution_data.c.distribution_id.in_(ids)
        with counting_files(connection, ids):
            connection.execute(update(distribution_data).where(of_these).values(outcome=ReadOutcome.PENDING))
        note_changed_files(connection, ids)


def _unsupplied(version: int, project_id: int | None, after: int) -> Select[Any]:
    data, live = distribution_data.c, live_intervals.c
    query = (
        select(data.distribution_id, distributions.c.project_id, distributions.c.filename)
        .select_from(distribution_data)
        .join(distributions, distributions.c.id == data.distribution_id)
        .where(
            data.distribution_id > after,
            data.extractor_version < version,
            data.outcome.in_((ReadOutcome.DATA, ReadOutcome.ERROR)),
            distributions.c.url.is_not(None),
            exists().where(live.distribution_id == data.distribution_id, live.end.is_(None)),
        )
    )
    return query if project_id is None else query.where(distributions.c.project_id == project_id)
