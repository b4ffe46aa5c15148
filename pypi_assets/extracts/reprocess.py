"""Make the records of distributions again from their stored extracts, without a request to the index.

So new rules apply to every file that was ever read. The new records are compared with the stored ones. If a record
cannot be made, the stored one stays.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

from sqlalchemy import Connection

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.observed.followed import mark_projects_of
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.reads.stored_extracts import (
    ExtractPlace,
    NamesChange,
    RecordContent,
    StoredRecord,
    changed_names,
    count_older_than,
    count_unsupplied,
    find_extracts,
    make_pending,
    records_of_project,
    records_older_than,
    store_reprocessed,
    unsupplied_records,
)
from pypi_assets.catalog.work.read_queue import queue_reads
from pypi_assets.distributions.extract import ExtractError
from pypi_assets.distributions.reader_pool import ReaderFailure, ReaderPool, StoredExtract
from pypi_assets.distributions.record import EXTRACTOR_VERSION, DistributionRecord
from pypi_assets.extracts.packs import PackError, read_extracts
from pypi_assets.progress import Progress
from pypi_assets.storage.store import Storage

PROCESSES = min(os.cpu_count() or 1, 8)
"""The default number of readers. Each takes about 100 MB."""

_BATCH = 500
_SENT_BYTES = 16 * 1024**2
_EXAMPLES = 5
_SHOWN_NAMES = 10
_SHOWN_PROBLEMS = 20


@dataclass(slots=True)
class Reprocessed:
    """The result of a reprocess, counted in distributions.

    `changed` distributions got another record: they gained or lost modules, or have other requirements or another
    error. `overtaken` ones were read by a crawl meanwhile and keep its record. `unread` ones keep their record because
    no new one could be made. `problems` has the first reasons, and `broken_packs` the packs that are missing or
    corrupt. `examples` are a few changes of each kind.

    `not_supplied` counts live files that keep the record of an older extractor because no stored extract supplies a new
    one: the `unread` ones, and files without an extract. `not_supplied_files` are the first of them. `queued` counts
    the files that were queued for reading.
    """

    looked_at: int = 0
    changed: int = 0
    gained_modules: int = 0
    lost_modules: int = 0
    changed_requirements: int = 0
    changed_errors: int = 0
    overtaken: int = 0
    unread: int = 0
    broken_packs: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    examples: dict[str, list[str]] = field(
        default_factory=lambda: {"modules": [], "requirements": [], "errors": [], "other": []}
    )
    seconds: float = 0.0
    not_supplied: int = 0
    not_supplied_files: list[str] = field(default_factory=list)
    queued: int = 0


@dataclass(frozen=True, slots=True)
class _RemadeRecords:
    """New records, or None if the record is unchanged, and the reasons why other records could not be made."""

    made: list[tuple[StoredRecord, DistributionRecord | None]]
    problems: list[str]
    broken_packs: list[str]


def reprocess(
    catalog: Catalog,
    storage: Storage,
    readers: ReaderPool,
    *,
    older_than: int = EXTRACTOR_VERSION,
    project: str | None = None,
    processes: int = PROCESSES,
    read_again: bool = False,
    report: Callable[[Progress], None] | None = None,
) -> Reprocessed:
    """Make all records again that an extractor older than `older_than` made, or the records of one project.

    Work proceeds from pack to pack and commits a few hundred records at a time. A run that was stopped continues with
    the rest when it is run again. `processes` is the number of `readers` that work. With `read_again`, files that no
    stored extract can supply are queued for reading. Raise CatalogError if the project is unknown, StorageError and
    ReaderStartError.
    """
    started = time.monotonic()
    result = Reprocessed()
    waiting: deque[tuple[int, Future[_RemadeRecords]]] = deque()
    with catalog.read() as connection:
        project_id = None if project is None else _require_project(connection, project)
        total = 0 if project is not None else count_older_than(connection, older_than)

    def store_oldest() -> None:
        count, judged = waiting.popleft()
        _store(catalog, judged.result(), result, count)
        if report is not None:
            report(Progress("extracts", result.looked_at, total, result.unread))

    with ThreadPoolExecutor(processes, thread_name_prefix="reprocess") as threads:
        for records in _batches(catalog, older_than, project_id):
            waiting.append((len(records), threads.submit(_judge, storage, readers, records)))
            if len(waiting) > processes:
                store_oldest()
        while waiting:
            store_oldest()
    _find_unsupplied(catalog, result, min(older_than, EXTRACTOR_VERSION), project_id, read_again=read_again)
    result.seconds = time.monotonic() - started
    return result


def _require_project(connection: Connection, project: str) -> int:
    known = find_project(connection, project)
    if known is None:
        raise CatalogError(f"project {project} is not in the catalog")
    return known.id


def _find_unsupplied(
    catalog: Catalog, result: Reprocessed, version: int, project_id: int | None, *, read_again: bool
) -> None:
    with catalog.read() as connection:
        result.not_supplied = count_unsupplied(connection, version, project_id)
        first = unsupplied_records(connection, version, project_id, limit=_SHOWN_PROBLEMS)
    result.not_supplied_files = [record.filename for record in first]
    if read_again:
        result.queued = _queue_unsupplied(catalog, version, project_id)


def _queue_unsupplied(catalog: Catalog, version: int, project_id: int | None) -> int:
    """Queue the files in transactions of a few hundred, so that crawls need not wait."""
    queued = last = 0
    while ids := catalog.transact(partial(_queue_after, last, version=version, project_id=project_id)):
        queued += len(ids)
        last = ids[-1]
    return queued


def _queue_after(last: int, connection: Connection, *, version: int, project_id: int | None) -> list[int]:
    records = unsupplied_records(connection, version, project_id, after=last, limit=_BATCH)
    queue_reads(connection, [(record.distribution_id, record.project_id) for record in records])
    ids = [record.distribution_id for record in records]
    make_pending(connection, ids)
    return ids


def _batches(catalog: Catalog, older_than: int, project_id: int | None) -> Iterator[list[StoredRecord]]:
    if project_id is not None:
        with catalog.read() as connection:
            records = records_of_project(connection, project_id, older_than)
        for start in range(0, len(records), _BATCH):
            yield records[start : start + _BATCH]
        return
    last = None
    while True:
        with catalog.read() as connection:
            records = records_older_than(connection, older_than, last, _BATCH)
        if not records:
            return
        yield records
        last = records[-1]


def _judge(storage: Storage, readers: ReaderPool, records: Sequence[StoredRecord]) -> _RemadeRecords:
    judged = _RemadeRecords([], [], [])
    extracts: list[tuple[StoredRecord, StoredExtract]] = []
    for pack, of_pack in groupby(records, key=lambda record: record.place.pack):
        olds = list(of_pack)
        try:
            contents = read_extracts(
                storage, pack, olds[0].place.pack_size, [(old.place.offset, old.place.length) for old in olds]
            )
        except PackError as error:
            judged.broken_packs.append(pack)
            judged.problems.append(f"{error}; {len(olds)} distributions keep their records")
            continue
        for old, content in zip(olds, contents, strict=True):
            extracts.append((old, StoredExtract(old.place.filename, old.place.project, content, old.digest)))
    for old, new in zip(
        [old for old, _ in extracts], _records(readers, [extract for _, extract in extracts]), strict=True
    ):
        if isinstance(new, ReaderFailure):
            judged.problems.append(f"{old.place.filename} in pack {old.place.pack}: {new.text}")
        else:
            judged.made.append((old, new))
    return judged


def _records(
    readers: ReaderPool, extracts: Sequence[StoredExtract]
) -> Iterator[DistributionRecord | ReaderFailure | None]:
    """Yield the results of `judge`. Extracts are sent a few MiB at a time, since a batch can be large."""
    group: list[StoredExtract] = []
    size = 0
    for extract in extracts:
        group.append(extract)
        size += len(extract.content)
        if size >= _SENT_BYTES:
            yield from readers.judge(group)
            group, size = [], 0
    yield from readers.judge(group)


def _store(catalog: Catalog, judged: _RemadeRecords, result: Reprocessed, count: int) -> None:
    unchanged = [old for old, new in judged.made if new is None]
    made = [(old, new) for old, new in judged.made if new is not None]

    def store(connection: Connection) -> dict[int, RecordContent]:
        before = store_reprocessed(connection, made, unchanged)
        mark_projects_of(connection, list(before))
        return before

    before = catalog.transact(store)
    changed = [
        (old.place.filename, content, new)
        for old, new in made
        if (content := before.get(old.place.distribution_id)) and not content.is_like(new)  # even if its digest differs
    ]
    with catalog.read() as connection:
        names = changed_names(connection, [(content, new) for _, content, new in changed])
        for (filename, content, new), (modules, requirements) in zip(changed, names, strict=True):
            _tally(result, filename, content, new, modules, requirements)
    result.overtaken += len(made) - len(before)
    result.looked_at += count
    result.unread += count - len(judged.made)
    result.broken_packs += [pack for pack in judged.broken_packs if pack not in result.broken_packs]
    result.problems += judged.problems[: _SHOWN_PROBLEMS - len(result.problems)]


def _tally(
    result: Reprocessed,
    filename: str,
    old: RecordContent,
    new: DistributionRecord,
    modules: NamesChange,
    requirements: NamesChange,
) -> None:
    result.changed += 1
    result.gained_modules += bool(modules.gained)
    result.lost_modules += bool(modules.lost)
    changes: dict[str, Callable[[], str]] = {}
    if modules.before != modules.after:
        changes["modules"] = partial(_describe_names, modules)
    if requirements.before != requirements.after:
        result.changed_requirements += 1
        changes["requirements"] = partial(_describe_names, requirements)
    before, after = old.error, new.error and f"{new.error.kind}: {new.error.text}"
    if before != after:
        result.changed_errors += 1
        changes["errors"] = lambda: f"{before or 'none'} -> {after or 'none'}"
    for sort, describe in (changes or {"other": partial(old.difference, new)}).items():
        if len(result.examples[sort]) < _EXAMPLES:
            result.examples[sort].append(f"{filename}: {describe()}")


def _describe_names(names: NamesChange) -> str:
    parts = [f"+{name}" for name in names.gained] + [f"-{name}" for name in names.lost]
    left_out = len(parts) - _SHOWN_NAMES
    parts = parts[:_SHOWN_NAMES] + ([f"{left_out} more"] if left_out > 0 else [])
    parts += ["unknown before"] if names.before is None else []
    parts += ["unknown now"] if names.after is None else []
    return ", ".join(parts) or "in another order"


def stored_records(
    catalog: Catalog, storage: Storage, readers: ReaderPool, filename: str, project: str | None = None
) -> list[tuple[ExtractPlace, DistributionRecord]]:
    """Return the records that one of `readers` makes, by the current rules, of the stored extracts with that filename.

    There can be several, since the name of one project can be the start of another name. Raise CatalogError if there
    are none, PackError and ExtractError if an extract cannot be read, StorageError and ReaderStartError.
    """
    with catalog.read() as connection:
        places = find_extracts(connection, filename, project)
    if not places:
        of_project = f" of {project}" if project else ""
        raise CatalogError(
            f"no extract of {filename}{of_project} is stored. `pypi-assets lookup files` shows the known files, and"
            " `pypi-assets admin reprocess --read-again` queues files without an extract for reading"
        )
    return [(place, _record_at(storage, readers, place)) for place in places]


def _record_at(storage: Storage, readers: ReaderPool, place: ExtractPlace) -> DistributionRecord:
    [content] = read_extracts(storage, place.pack, place.pack_size, [(place.offset, place.length)])
    [record] = readers.judge([StoredExtract(place.filename, place.project, content)])
    if isinstance(record, DistributionRecord):
        return record
    reason = record.text if record else "no record was made"
    raise ExtractError(f"{place.filename} in pack {place.pack}: {reason}")
