"""The fields that a replay reads from records and dump rows, with the types and limits that a catalog accepts.

A journal can come from anywhere, so a value that no catalog would have written is rejected with an error that names it.
Further fields of a record are ignored, and so are records of kinds that a replay does not store.
"""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Required, TypedDict, cast

import msgspec

from pypi_assets.catalog.database import storable
from pypi_assets.catalog.derived.replayed_visits import VISIT_FIELDS
from pypi_assets.catalog.derived.visits import VisitStatus
from pypi_assets.catalog.publications.dump_columns import COLUMNS
from pypi_assets.catalog.publications.dump_rows import CONTENT, EARLIEST_CONTENT
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reports.journal_format import GAP, JournalStream, Record, normalized_name
from pypi_assets.distributions.record import DistributionKind
from pypi_assets.index.models import LONGEST_ACTION, LONGEST_NAME
from pypi_assets.journal.cursors import RANKS
from pypi_assets.journal.record_reader import Place

_MOST, _MOST_SMALL = 2**63 - 1, 2**31 - 1
Count = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
Number = Annotated[int, msgspec.Meta(ge=-_MOST, le=_MOST)]
Name = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
Short = Annotated[str, msgspec.Meta(max_length=64)]
Texts = list[str]
Span = tuple[Count, Count | None]
if TYPE_CHECKING:
    from typing import TypeAlias

    OutcomeText: TypeAlias = str
    KindText: TypeAlias = str
    StatusText: TypeAlias = str
else:  # texts, since SQLite takes several times as long for enumeration members
    OutcomeText = Literal[tuple(map(str, ReadOutcome))]
    KindText = Literal[tuple(map(str, DistributionKind))]
    StatusText = Literal[tuple(map(str, VisitStatus))]


class RecordError(msgspec.ValidationError):
    """No catalog would have written this record or row. The message has the reason."""


class _Placed(TypedDict):
    serial: Count
    of_serial: Count
    ordinal: Count
    stream: str
    kind: str


class _IndexRecord(_Placed, total=False):
    at: Number | None
    project: Name | None
    normalized: Name | None
    version: Name | None
    action: Annotated[str, msgspec.Meta(max_length=LONGEST_ACTION)]
    until: Count
    problem: str
    content: str
    digest: Short


class _Facts(TypedDict, total=False):
    """The facts that a page shows about a file."""

    url: str | None
    sha256: Short | None
    size: Count | None
    uploaded_at: str | None
    requires_python: str | None
    yanked_reason: str | None
    core_metadata_sha256: Short | None
    first_seen_at: str | None
    project_status: Short | None


class _ObservedRecord(_Placed, _Facts, total=False):
    at: Number | None
    project: Name | None
    normalized: Name | None
    version: Name
    filename: Name
    cause: Short
    until: Count
    distribution_kind: KindText
    generation: Annotated[int, msgspec.Meta(ge=1, le=_MOST_SMALL)]
    live: list[Span]
    yanked: list[Span]
    followed: list[tuple[Count, Count | None, Count]]


class _VisitStatus(TypedDict, total=False):
    """A status of a visit."""

    at: Required[float]
    status: Required[StatusText]
    page_serial: Count
    seen_through: Count
    page_status: str
    text: str


class _VisitRecord(_Placed, total=False):
    project: Name | None
    normalized: Name | None
    visit: Annotated[int, msgspec.Meta(ge=1, le=_MOST_SMALL)]
    workload: Short
    visit_kind: Short
    started_at: float
    rulesets: str | None
    statuses: Annotated[list[_VisitStatus], msgspec.Meta(min_length=1)]
    snapshot: Short | None
    files: Annotated[int, msgspec.Meta(ge=0, le=_MOST_SMALL)] | None
    base: Short | None
    gone: Texts
    changed: list[tuple[str, str | None, bool | str]]


_TYPES = {
    "string": str,
    "string or null": str | None,
    "integer": Count,
    "integer or null": Count | None,
    "array of strings": Texts,
    "array of strings or null": Texts | None,
}
_BOUNDED = {
    "outcome": OutcomeText,
    "error_kind": Short | None,
    "extractor_version": Annotated[int, msgspec.Meta(ge=0, le=_MOST_SMALL)] | None,
    "requires_dist": msgspec.Raw,
    "modules": msgspec.Raw,
}
"""Columns with bounds, and long lists that are not decoded, since the files of one release have equal lists."""
if TYPE_CHECKING:

    class _Content(TypedDict, total=False):
        pass

else:  # the data read from a file
    _Content = TypedDict(
        "_Content", {name: _BOUNDED.get(name, _TYPES[COLUMNS[name].type]) for name in CONTENT}, total=False
    )


class _ContentRecord(_Placed, _Content, total=False):
    project: Name | None
    normalized: Name | None
    version: Name
    filename: Name
    cause: Short
    sha256: Short | None


class _ReplayedRow(_Facts, _Content, total=False):
    project: Name
    normalized: Name
    version: Name
    filename: Name
    kind: KindText
    live_since: Count
    yanked: bool


_DECODE = {
    RANKS[stream]: msgspec.json.Decoder(cast("Any", fields)).decode
    for stream, fields in (
        (JournalStream.INDEX, _IndexRecord),
        (JournalStream.OBSERVED, _ObservedRecord),
        (JournalStream.CONTENT, _ContentRecord),
        (JournalStream.VISITS, _VisitRecord),
    )
}
_decode_row = msgspec.json.Decoder(cast("Any", _ReplayedRow)).decode
_OBSERVED = RANKS[JournalStream.OBSERVED]
_FILE = ("project", "normalized", "version", "filename", "cause")
_NEEDED: Mapping[int, Mapping[str, frozenset[str]]] = {
    RANKS[JournalStream.INDEX]: {
        "action": frozenset({"project", "normalized", "at"}),
        "problem": frozenset({"content", "digest"}),
    },
    _OBSERVED: {
        "filename": frozenset({*_FILE, "distribution_kind", "generation", "live", "yanked", *_Facts.__annotations__})
    },
    RANKS[JournalStream.CONTENT]: {"outcome": frozenset({*_FILE, "sha256", *EARLIEST_CONTENT})},
    RANKS[JournalStream.VISITS]: {"statuses": frozenset({"project", "normalized", *VISIT_FIELDS})},
}
"""By stream, and by the field that shows what a record stores: the fields that such a record must have."""
_ROW_NEEDED = frozenset({"project", "normalized", "version", "filename", "kind", "live_since", "yanked", "outcome"})


def decode_record(place: Place, line: bytes) -> Record:
    """Return the stored fields of a journal line found at `place`. Raises RecordError."""
    record = _decoded(_DECODE[place[1]], line)
    if (record["serial"], RANKS.get(record["stream"]), record["ordinal"]) != place:
        raise RecordError("its serial, stream or ordinal does not match its place")
    if record["kind"] == GAP and record.get("until", 0) <= record["serial"]:
        raise RecordError("a gap does not end after it begins")
    for marker, needed in _NEEDED[place[1]].items():
        if marker in record:
            _require(record, needed)
            break
    else:
        return record
    if place[1] == _OBSERVED:
        for name in ("live", "yanked", "followed"):
            if not _are_in_order(record.get(name, ())):
                raise RecordError(f"the intervals of {name} are not in order")
    elif marker == "action" and record["at"] is None:
        raise RecordError("it has no time")
    return record


def decode_row(line: bytes) -> dict[str, Any]:
    """Return the stored fields of a line of a full dump. Raises RecordError."""
    row = _decoded(_decode_row, line)
    _require(row, _ROW_NEEDED)
    return row


def _decoded(decode: Any, line: bytes) -> Record:
    try:
        record: Record = decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(str(error)) from error
    if b"\\u0000" in line:  # databases reject NUL in texts; texts from an index have it replaced as well
        return {name: storable(value) if isinstance(value, str) else value for name, value in record.items()}
    return record


def _require(record: Record, needed: frozenset[str]) -> None:
    if not record.keys() >= needed:
        raise RecordError(f"it has no {min(needed - record.keys())}")
    if "project" in needed:
        name, normalized = record["project"], record["normalized"]
        if name is None or normalized_name(name) != normalized:
            raise RecordError(f"the name {name!r:.100} is not normalized as {normalized!r:.100}")


def _are_in_order(spans: Iterable[tuple[int, int | None, Any] | tuple[int, int | None]]) -> bool:
    """Check that no interval is empty, and that each begins at or after the end of the previous one."""
    free_from: float = 0
    for start, end, *_ in spans:
        if start < free_from or (end is not None and end <= start):
            return False
        free_from = math.inf if end is None else end
    return True
