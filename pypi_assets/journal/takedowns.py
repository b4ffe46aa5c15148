"""Takes records down from the journal: replaces them with records of the kind `taken down`, and deletes the old files.

A takedown is first stored in the catalog, so that nothing written later contains its records. Then the published files
are replaced in this order: the new segments, the file of the takedown, the head that names it. The old files are
deleted last. If this is interrupted, the next writer completes it. Files of former generations, which readers cannot
find, are deleted if they contain such a record.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import orjson
import zstandard
from packaging.utils import canonicalize_name, canonicalize_version

from pypi_assets.catalog.coordination.leases import renewing, waiting_for_lease
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.journal_segments import (
    Takedown,
    all_takedowns,
    finish_takedowns,
    latest_generation,
    replace_unchained,
    stream_lease,
    unchained_segments,
)
from pypi_assets.catalog.publications.written_segments import SegmentFile
from pypi_assets.catalog.reads.stored_json import to_utf8_json
from pypi_assets.catalog.reports.journal_format import GAP, TAKEN_DOWN, JournalStream, Record
from pypi_assets.catalog.reports.release_comparisons import NEW_PROVIDER, RELEASE_COMPARED
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.errors import ExpectedError
from pypi_assets.journal.segment_files import (
    JOURNAL,
    OPEN_PREFIX,
    Head,
    OpenSegment,
    SegmentManifest,
    open_manifest,
    raw_lines,
    read_lines,
    read_manifest,
    segment_path,
    write_head,
    write_lines,
)
from pypi_assets.journal.signing import publish_heads
from pypi_assets.journal.takedown_files import (
    ReplacedSegment,
    TakedownFile,
    as_replaced,
    replaced_segments,
    replacement,
    write_takedown,
)
from pypi_assets.storage.store import ObjectNotFoundError, Storage

Progress = Callable[[int], None]
_PLACE = re.compile(r"([a-z]+):([0-9]{1,18}):([0-9]{1,18})")
_OF_RELEASES = frozenset({RELEASE_COMPARED, NEW_PROVIDER})
"""The kinds of records that have names from the files of a release, without the names of these files."""
_TAKEN_DOWN_LITERAL = b'"kind":' + orjson.dumps(TAKEN_DOWN)


class TakedownError(ExpectedError, ValueError):
    """A takedown does not name valid records. The message describes what is accepted."""


def wanted_takedown(
    reason: str,
    project: str | None = None,
    version: str | None = None,
    filename: str | None = None,
    record: str | None = None,
    *,
    hides_name: bool = False,
) -> Takedown:
    """Return the takedown that a user requests: of a project, one of its releases or files, or one record.

    `record` is STREAM:SERIAL:ORDINAL, such as `observed:1350:0`. Raises TakedownError.
    """
    if not reason.strip() or not reason.isprintable():
        raise TakedownError("the reason is shown in place of the records: it must be printable and not empty")
    if (project is None) == (record is None) or (record is not None and (version or filename)):
        raise TakedownError("name a project, optionally with a release or a file, or name one record")
    if record is None:
        name = canonicalize_name(project or "")
        return Takedown(0, 0.0, reason, name, version, filename, hides_name=hides_name)
    match = _PLACE.fullmatch(record)
    if match is None or match[1] not in set(JournalStream):
        raise TakedownError(f"{record[:100]!r} is not a record; give STREAM:SERIAL:ORDINAL, such as observed:1350:0")
    place = (match[1], int(match[2]), int(match[3]))
    return Takedown(0, 0.0, reason, None, None, None, *place, hides_name=hides_name)


@dataclass
class Taking:
    """Replaces the records that `takedowns` name.

    `count` is the number of replaced lines, `least_serial` their least serial.
    """

    takedowns: Sequence[Takedown]
    count: int = 0
    least_serial: int | None = None
    _literals: list[bytes] = field(init=False)
    _waiting: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self._waiting = {int(takedown.added_at) for takedown in self.takedowns if takedown.done_at is None}
        self._literals = [
            b'{"serial":%d,"of_serial":' % takedown.serial
            if takedown.serial is not None
            else b'"normalized":' + orjson.dumps(takedown.project)
            for takedown in self.takedowns
        ]

    @property
    def newest(self) -> int:
        """The id of the newest takedown, or 0 if there are none."""
        return self.takedowns[-1].id if self.takedowns else 0

    def record(self, record: Record) -> Record:
        """Return the record, or its replacement."""
        for takedown in self.takedowns:
            if _is_of(takedown, record):
                record = replacement(record, takedown.reason, takedown.added_at, hides_name=takedown.hides_name)
        return record

    def records(self, records: Iterable[Record]) -> Iterable[Record]:
        """Return several records, or their replacements."""
        return map(self.record, records) if self.takedowns else records

    def line(self, line: bytes) -> bytes:
        """Return a record's line of JSON, or the line of its replacement, which is counted."""
        is_replaced = _TAKEN_DOWN_LITERAL in line
        if not is_replaced and not any(literal in line for literal in self._literals):
            return line
        record = orjson.loads(line)
        taken = self.record(record)
        if taken is not record:
            self.count += 1
        elif not is_replaced or record.get("taken_down_at") not in self._waiting:
            return line
        serial = int(record["serial"])  # includes records that were replaced before a kill
        self.least_serial = serial if self.least_serial is None else min(self.least_serial, serial)
        return line if taken is record else to_utf8_json(taken)


def _is_of(takedown: Takedown, record: Record) -> bool:
    if record["normalized"] is None and (record["kind"] == GAP or "problem" not in record):
        return False  # an announcement, which does not belong to a project
    if record["kind"] == TAKEN_DOWN:
        is_whole = takedown.version is None and takedown.filename is None
        return takedown.hides_name and is_whole and record["normalized"] == takedown.project
    if takedown.serial is not None:
        place = (record["stream"], record["serial"], record["ordinal"])
        return place == (takedown.stream, takedown.serial, takedown.ordinal)
    if record["normalized"] != takedown.project:
        return False
    if record["stream"] == JournalStream.VISITS:
        return _shows(takedown, record)
    if record["kind"] in _OF_RELEASES:
        return _compares(takedown, record)
    return (takedown.filename is None or record.get("filename") == takedown.filename) and (
        takedown.version is None or _same_version(record.get("version"), takedown.version)
    )


def _compares(takedown: Takedown, record: Record) -> bool:
    """Check whether a record of a release has facts of the takedown's file or release, as the new or the earlier one.

    A file that the catalog does not have belongs to the release in its name, or without a version there, to any.
    """
    version = takedown.version or takedown.release
    if version is None and takedown.filename is not None:
        version = parse_filename(takedown.filename, takedown.project).version
    return version is None or any(_same_version(record.get(name), version) for name in ("version", "against"))


def _shows(takedown: Takedown, record: Record) -> bool:
    """Check whether a visit's record names a file of the takedown. Its files have no version except in their names."""
    if takedown.version is None and takedown.filename is None:
        return True
    names = [*record["gone"], *(name for name, *_ in record["changed"])]
    if takedown.filename is not None:
        names = [name for name in names if name == takedown.filename]
    if takedown.version is None:
        return bool(names)
    versions = (parse_filename(name, takedown.project).version for name in names)
    return any(version is None or _same_version(version, takedown.version) for version in versions)


def _same_version(found: str | None, wanted: str) -> bool:
    return found is not None and (found == wanted or canonicalize_version(found) == canonicalize_version(wanted))


def take_down(
    catalog: Catalog,
    storage: Storage,
    chain: Callable[[JournalStream], Head],
    progress: Progress | None = None,
    *,
    wait_s: float = 0.0,
) -> int:
    """Replace the published records that the stored takedowns name, and return their number.

    `chain` brings the head of a stream up to date with the catalog; it is called while the stream's lease is held. Does
    nothing if all takedowns are done. Waits up to `wait_s` seconds for each stream that another process is writing,
    then raises LeaseTakenError; the next writer completes the rest. Raises JournalDamagedError.
    """
    with catalog.read() as connection:
        takedowns = all_takedowns(connection)
    if all(takedown.done_at is not None for takedown in takedowns):
        return 0
    taking = Taking(takedowns)
    for stream in JournalStream:
        waiting_for_lease(partial(_of_stream, catalog, storage, stream, chain, taking, progress), wait_s)
    finish_takedowns(catalog, takedowns[-1].id, taking.least_serial)
    return taking.count


def _of_stream(
    catalog: Catalog,
    storage: Storage,
    stream: JournalStream,
    chain: Callable[[JournalStream], Head],
    taking: Taking,
    progress: Progress | None,
) -> None:
    with stream_lease(catalog, stream) as held:
        report = renewing(held, progress)
        head = _replace_published(storage, chain(stream), taking, report, int(catalog.clock()))
        with catalog.read() as connection:
            generation = latest_generation(connection, stream)
        _replace_unchained(catalog, storage, stream, generation, taking)
        publish_heads(storage)  # before the old files are deleted, since mirrors follow it
        _delete_others(catalog, storage, stream, head, taking)


def _replace_published(storage: Storage, head: Head, taking: Taking, report: Progress, now: int) -> Head:
    replaced = replaced_segments(storage, head)
    new, read = [], 0
    for number in range(head.first_number, head.number + 1):
        manifest = as_replaced(read_manifest(storage, head.stream, head.generation, number), replaced)
        written = _rewritten(storage, manifest, taking)
        if written is not None:
            new.append(ReplacedSegment(number, written.name, written.content_bytes, written.sha256))
        report(read := read + manifest.records)
    opened = head.open
    if opened is not None and (written := _rewritten(storage, open_manifest(head, opened), taking)) is not None:
        opened = OpenSegment(opened.serials, written.name, written.records, written.content_bytes, written.sha256)
    if new:
        last = head.takedowns
        takedown = TakedownFile(
            head.stream,
            head.generation,
            1 if last is None else last.number + 1,
            now,
            tuple(new),
            None if last is None else last.digest,
        )
        write_takedown(storage, takedown)
        head = replace(head, takedowns=takedown.as_last)
    if new or opened != head.open:
        head = replace(head, open=opened)
        write_head(storage, head)
    return head


def _rewritten(storage: Storage, segment: SegmentManifest, taking: Taking) -> SegmentFile | None:
    """Write a segment with its records replaced, or return None if it has no records to replace."""
    before = taking.count
    if not any(taking.line(line) is not line for line in read_lines(storage, segment)):
        return None
    taking.count = before
    prefix = OPEN_PREFIX if segment.name.startswith(OPEN_PREFIX) else ""
    return write_lines(
        storage,
        JournalStream(segment.stream),
        segment.generation,
        segment.serials,
        map(taking.line, read_lines(storage, segment)),
        prefix=prefix,
    )


def _replace_unchained(
    catalog: Catalog, storage: Storage, stream: JournalStream, generation: int, taking: Taking
) -> None:
    """Replace records in segments that are written but not published yet."""
    with catalog.read() as connection:
        waiting = unchained_segments(connection, stream, generation)
    for file in waiting:
        written = _rewritten(storage, SegmentManifest.of(file, 0, None), taking)
        if written is not None:
            replace_unchained(catalog, written)


def _delete_others(catalog: Catalog, storage: Storage, stream: JournalStream, head: Head, taking: Taking) -> None:
    """Delete each file of the stream that readers cannot find and that has such a record or cannot be read."""
    named = _named_files(storage, head)
    with catalog.read() as connection:
        generation = latest_generation(connection, stream)
        named |= {segment_path(file) for file in unchained_segments(connection, stream, generation)}
    for stored in list(storage.list(f"{JOURNAL}/{stream.value}")):
        if stored.path in named or not stored.path.endswith(".jsonl.zst"):
            continue
        if _has_one(storage, stored.path, taking):
            storage.delete(stored.path)


def _has_one(storage: Storage, path: str, taking: Taking) -> bool:
    looking = Taking(taking.takedowns)
    try:
        return any(looking.line(line) is not line for line in raw_lines(storage, path))
    except (zstandard.ZstdError, orjson.JSONDecodeError, KeyError):
        return True
    except ObjectNotFoundError:
        return False  # another process has deleted it


def _named_files(storage: Storage, head: Head) -> set[str]:
    """Return the paths of the segments that readers of a stream find. Raises JournalDamagedError."""
    replaced = replaced_segments(storage, head)
    numbers = range(head.first_number, head.number + 1)
    manifests = (read_manifest(storage, head.stream, head.generation, number) for number in numbers)
    named = {segment_path(as_replaced(manifest, replaced)) for manifest in manifests}
    if head.open is not None:
        named.add(segment_path(open_manifest(head, head.open)))
    return named
