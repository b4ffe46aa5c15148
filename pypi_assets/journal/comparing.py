"""Compares the journals of two operators that follow the same index, up to the last serial that both have.

The stream `index` must be equal byte for byte from the later of both beginnings on. A *file read* record must be equal
if the file's sha256 and name and the extractor version are equal. The streams `observed` and `visits` can differ, since
each operator sees pages at other times. So the last records of each file are compared, and the pages that both have
seen at the same serial. The first one with a difference is named.

Both journals are read as streams. Data for later lookups goes into temporary files in several parts, and only one part
at a time is in memory.
"""

import hashlib
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

import obstore
import obstore.store
import orjson

from pypi_assets.catalog.reports.journal_format import JournalStream, Record
from pypi_assets.journal.cursors import RANKS, Cursor
from pypi_assets.journal.record_reader import Journal, Placed
from pypi_assets.journal.segment_files import JournalDamagedError
from pypi_assets.journal.takedown_files import is_replacement
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.store import Storage, StorageError, StoredObject, open_storage

if TYPE_CHECKING:
    from obstore.store import ClientConfig

_T = TypeVar("_T")
_MOST_SMALL_BYTES = 16 * 1024**2
"""The most bytes of another operator's head, manifest or takedown file."""
_LONG_AGO = datetime.fromtimestamp(0, UTC)
_PARTS = 32
_ENTRY = struct.Struct("<16s16sqq")
_PLACE_FIELDS = frozenset(
    {"serial", "of_serial", "ordinal", "stream", "at", "project", "normalized", "version", "filename", "cause"}
)
"""The fields of a *file read* record that depend on the file's place on the index. The others follow from its bytes."""


@dataclass(frozen=True, slots=True)
class JournalDifference:
    """The first difference of two journals.

    `filename` is None for a record that is not about a file. `fields` are the fields that differ. `ours` and `theirs`
    are the two records, or None if a journal lacks the record.
    """

    serial: int
    filename: str | None
    fields: tuple[str, ...]
    ours: Record | None
    theirs: Record | None


@dataclass(frozen=True, slots=True)
class ComparedStream:
    """The result of comparing the serials above `start` up to `end`.

    It counts records (in the stream `index`), pages (in `visits`) or files (in the other streams) that are equal, that
    differ, and that only one journal has.
    """

    stream: str
    start: int
    end: int
    equal: int
    differing: int
    only_ours: int
    only_theirs: int
    first: JournalDifference | None


class _WebStorage(Storage):
    """Reads the files of a web server.

    Some web servers do not answer byte range requests, so each file is read as a whole. Web servers do not list files,
    so only the dumps and LevelDBs named by `published.json` are known.
    """

    __slots__ = ()

    def get(self, path: str) -> bytes:
        """Return a small file. Raises ObjectNotFoundError, and StorageError if it is too large."""
        with self._translated(path):
            found = obstore.get(self.objects, path)
            if (size := found.meta["size"]) > _MOST_SMALL_BYTES:
                raise ValueError(f"it has {size:,} bytes, and such a file has at most {_MOST_SMALL_BYTES:,}")
            return bytes(found.bytes())

    def open(self, path: str) -> BinaryIO:
        """Return the file as a temporary file, which the caller must close. Raises ObjectNotFoundError."""
        copy = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        with self._translated(path):
            for chunk in obstore.get(self.objects, path).stream():
                copy.write(chunk)
        copy.seek(0)
        return cast("BinaryIO", copy)

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        """Yield the current manifests and input lists below the folder `prefix`. Raises StorageError."""
        content = self.get(PUBLISHED)
        try:
            fields = orjson.loads(content)
            dumps, leveldbs = (fields[part] or {} for part in ("dumps", "leveldbs"))
            named = [*dumps.get("manifests", []), *(entry for of_dataset in leveldbs.values() for entry in of_dataset)]
            found = [StoredObject(str(entry["path"]), int(entry["size"]), _LONG_AGO) for entry in named]
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise StorageError(f"{self.uri(PUBLISHED)} does not name what is published: {error!r}") from error
        yield from (stored for stored in found if not prefix or stored.path.startswith(f"{prefix}/"))


def open_other(url: str) -> Storage:
    """Open the storage of another operator: any storage URL, or the URL of a web server that serves its files."""
    if url.startswith(("http://", "https://")):
        options: ClientConfig = {"allow_http": url.startswith("http://")}
        return _WebStorage(url, obstore.store.HTTPStore.from_url(url, client_options=options))
    return open_storage(url, read_only=True)


def compare_stream(ours: Journal, theirs: Journal, stream: JournalStream) -> ComparedStream:
    """Compare a stream of both journals. Raises NoJournalError and JournalDamagedError."""
    heads = ours.head(stream.value), theirs.head(stream.value)
    start, end = max(head.readable_from for head in heads), min(head.through for head in heads)
    if stream == JournalStream.INDEX:
        return _compare_index(ours, theirs, start, end)
    with _RecordPlaces.of(ours, stream, start, end) as own, _RecordPlaces.of(theirs, stream, start, end) as other:
        return _compare_found(ours, theirs, stream, start, end, own, other)


def _compare_index(ours: Journal, theirs: Journal, start: int, end: int) -> ComparedStream:
    equal, first = 0, None
    pairs = zip_longest(
        _placed(ours, JournalStream.INDEX, start, end), _placed(theirs, JournalStream.INDEX, start, end)
    )
    for own, other in pairs:
        if own == other:
            equal += 1
            continue
        if own and other and (is_replacement(own[1], other[1]) or is_replacement(other[1], own[1])):
            continue  # one of the operators has taken it down
        serial = min(placed[0][0] for placed in (own, other) if placed is not None)
        shown = [
            _decoded(journal, JournalStream.INDEX, placed, _as_it_is)
            if placed is not None and placed[0][0] == serial
            else None
            for journal, placed in ((ours, own), (theirs, other))
        ]
        first = JournalDifference(serial, None, _differing(*shown), *shown)
        break
    return ComparedStream(JournalStream.INDEX.value, start, end, equal, 0 if first is None else 1, 0, 0, first)


def _placed(journal: Journal, stream: JournalStream, start: int, end: int) -> Iterator[Placed]:
    return journal.lines(Cursor.after_serial(start), [journal.head(stream.value)], end) if start < end else iter(())


def _decoded(journal: Journal, stream: JournalStream, placed: Placed, made: Callable[[Record], _T]) -> _T:
    """Return `made(record)`.

    Raises JournalDamagedError if the line is not a record; the other journal can be anyone's.
    """
    (serial, _, ordinal), line = placed
    try:
        return made(orjson.loads(line))
    except (LookupError, TypeError, ValueError) as error:
        raise JournalDamagedError(
            f"record {ordinal} of the stream {stream.value} at serial {serial} of the journal in {journal.storage.url}"
            f" is not a record: {error!r}"
        ) from error


def _as_it_is(record: Record) -> Record:
    return record


def _differing(ours: Record | None, theirs: Record | None) -> tuple[str, ...]:
    if ours is None or theirs is None:
        return ()
    return tuple(name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name))


def read_facts(record: Record) -> Record:
    """Return the fields of a *file read* record that follow from the bytes of its file."""
    return {name: value for name, value in record.items() if name not in _PLACE_FIELDS}


def observed_facts(record: Record, start: int) -> Record:
    """Return the facts of a record about its file from the serial `start` on, without the time of learning them."""
    facts: Record = {name: record[name] for name in ("version", "sha256")}
    for name in ("live", "yanked"):
        known = (span for span in record[name] if span[1] is None or span[1] > start)
        facts[name] = [[max(span[0], start), span[1]] for span in known]
    return facts


def seen_facts(record: Record) -> Record:
    """Return the facts of a visit's record about the page that it saw."""
    status = next((status.get("page_status") for status in record["statuses"] if "page_status" in status), None)
    return {"snapshot": record["snapshot"], "page_status": status}


_FACTS: Mapping[JournalStream, Callable[[Record], Record]] = {
    JournalStream.CONTENT: read_facts,
    JournalStream.VISITS: seen_facts,
}


class _RecordPlaces:
    """The positions of the compared records, by the hash of their subject, in parts selected by that hash."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._parts = [self._stack.enter_context(tempfile.TemporaryFile()) for _ in range(_PARTS)]  # noqa: SIM115

    @classmethod
    def of(cls, journal: Journal, stream: JournalStream, start: int, end: int) -> "_RecordPlaces":
        """Return the positions of a stream's records that are published above the serial `start`, up to `end`."""
        found = cls()
        digests = partial(_digests, stream=stream, start=start)
        with ExitStack() as begun:
            begun.callback(found._stack.close)
            for placed in _placed(journal, stream, start, end):
                about = _decoded(journal, stream, placed, digests)
                if about is not None:
                    (serial, _, ordinal), _ = placed
                    found._parts[about[0][0] % _PARTS].write(_ENTRY.pack(*about, serial, ordinal))
            begun.pop_all()
        return found

    def part(self, number: int) -> dict[bytes, tuple[bytes, int, int]]:
        """Return the last record about each subject: the hash of its facts, its serial and its ordinal."""
        file = self._parts[number]
        file.seek(0)
        return {key: place for key, *place in _ENTRY.iter_unpack(file.read())}  # type: ignore[misc]

    def __enter__(self) -> "_RecordPlaces":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _digests(record: Record, *, stream: JournalStream, start: int) -> tuple[bytes, bytes] | None:
    """Return the hashes of a record's subject and of its facts, or None if the record is not compared."""
    if stream == JournalStream.CONTENT:
        if record["kind"] != "file read":
            return None
        about, facts = [record["sha256"], record["extractor_version"], record["filename"]], read_facts(record)
    elif stream == JournalStream.VISITS:
        if record.get("snapshot") is None:
            return None
        about, facts = [record["normalized"], record["of_serial"]], seen_facts(record)
    elif "filename" not in record:
        return None
    else:
        about, facts = [record["normalized"], record["filename"]], observed_facts(record, start)
    return _digest(about), _digest(facts)


def _digest(value: object) -> bytes:
    return hashlib.blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _compare_found(
    ours: Journal,
    theirs: Journal,
    stream: JournalStream,
    start: int,
    end: int,
    own: _RecordPlaces,
    other: _RecordPlaces,
) -> ComparedStream:
    equal = differing = only_ours = only_theirs = 0
    first: tuple[int, int, Any, Any] | None = None
    for number in range(_PARTS):
        mine, yours = own.part(number), other.part(number)
        for key in mine.keys() | yours.keys():
            a, b = mine.get(key), yours.get(key)
            if a is not None and b is not None and a[0] == b[0]:
                equal += 1
                continue
            differing += a is not None and b is not None
            only_ours += b is None
            only_theirs += a is None
            if stream in _FACTS and (a is None or b is None):
                continue  # each operator reads different files and pages
            serial, ordinal = min((place[1], place[2]) for place in (a, b) if place is not None)
            if first is None or (serial, ordinal) < first[:2]:
                first = serial, ordinal, a, b
    shown = None
    if first is not None:
        records = (_record(ours, stream, first[2]), _record(theirs, stream, first[3]))
        named = next(record for record in records if record is not None)
        facts = [None if record is None else _facts(stream, record, start) for record in records]
        shown = JournalDifference(named["serial"], named.get("filename"), _differing(*facts), *records)
    return ComparedStream(stream.value, start, end, equal, differing, only_ours, only_theirs, shown)


def _facts(stream: JournalStream, record: Record, start: int) -> Record:
    return _FACTS[stream](record) if stream in _FACTS else observed_facts(record, start)


def _record(journal: Journal, stream: JournalStream, place: tuple[bytes, int, int] | None) -> Record | None:
    if place is None:
        return None
    _, serial, ordinal = place
    before = Cursor(serial, RANKS[stream.value], ordinal - 1)
    line = next(line for _, line in journal.lines(before, [journal.head(stream.value)], serial))
    record: Record = orjson.loads(line)
    return record


def as_json(compared: ComparedStream) -> Mapping[str, Any]:
    """Return the result as a JSON object."""
    first = compared.first
    return {
        **{
            name: getattr(compared, name)
            for name in ("stream", "start", "end", "equal", "differing", "only_ours", "only_theirs")
        },
        "first": first and {name: getattr(first, name) for name in ("serial", "filename", "fields", "ours", "theirs")},
    }
