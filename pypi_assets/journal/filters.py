"""Filters for the records of the journal: by project, kind, stream, module, and the facts that a release has gained.

A record matches if it matches one value of each given part. All parts are evaluated where the journal is read, so a
reader receives only matching records.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import orjson
from packaging.utils import canonicalize_name

from pypi_assets.catalog.ledger.epochs import NoticeKind
from pypi_assets.catalog.reports.journal_contents import FILE_READ, NOT_READ
from pypi_assets.catalog.reports.journal_format import (
    GAP,
    TAKEN_DOWN,
    UNREADABLE,
    FileKind,
    JournalStream,
    Record,
    VisitKind,
)
from pypi_assets.catalog.reports.release_comparisons import COMPARED_FACTS, NEW_PROVIDER, RELEASE_COMPARED
from pypi_assets.errors import ExpectedError
from pypi_assets.index.actions import Action
from pypi_assets.journal.cursors import RANKS

KINDS: Mapping[str, tuple[str, ...]] = {
    JournalStream.INDEX.value: (*(action.value for action in Action), GAP, UNREADABLE, TAKEN_DOWN),
    JournalStream.OBSERVED.value: (
        *(kind.value for kind in FileKind),
        GAP,
        *(kind.value for kind in NoticeKind),
        TAKEN_DOWN,
    ),
    JournalStream.CONTENT.value: (FILE_READ, NOT_READ, RELEASE_COMPARED, NEW_PROVIDER, TAKEN_DOWN),
    JournalStream.VISITS.value: (*(kind.value for kind in VisitKind), TAKEN_DOWN),
}
"""The kinds of records, by stream."""
CHANGES = frozenset({JournalStream.INDEX.value, JournalStream.OBSERVED.value, JournalStream.CONTENT.value})
"""The streams that a reader gets if it names neither streams nor kinds."""
MOST_VALUES = 1_000
LONGEST_VALUE = 1_000
_FIELDS = ("project", "kind", "stream", "module", "gained")
GAINED = tuple(fact.replace("_", "-") for fact in COMPARED_FACTS)
"""The facts that a release can have gained, as written in a filter."""
_COMPARED = orjson.dumps(RELEASE_COMPARED)
_TEXT = rb'"[^"\\]*"'
_HEAD = re.compile(
    rb'\{"serial":[0-9]+,"of_serial":[0-9]+,"ordinal":[0-9]+,"stream":(TEXT),"kind":(TEXT),"at":(?:null|[0-9]+),'
    rb'"project":(?:null|TEXT),"normalized":(null|TEXT)[,}]'.replace(b"TEXT", _TEXT)
).match
"""Matches the beginning of a record, unless it has escapes: stream, kind and normalized name, as JSON."""


class FilterError(ExpectedError, ValueError):
    """A value of the part `field` of a filter is invalid. `accepts` describes the valid values."""

    def __init__(self, field: str, text: str, accepts: str) -> None:
        super().__init__(f"{field}: {text}; it accepts {accepts}")
        self.field, self.accepts = field, accepts


class _Literals(NamedTuple):
    """The wanted values as they appear in a line: texts as JSON, and the beginnings of module names."""

    projects: frozenset[bytes]
    kinds: frozenset[bytes]
    streams: frozenset[bytes]
    modules: tuple[bytes, ...]
    gained: tuple[bytes, ...]


@dataclass(frozen=True)
class RecordFilter:
    """The records that a reader wants.

    An empty part matches all. Projects are normalized, and kinds are spelled as in records.

    For example:

        RecordFilter.parse(projects=["Flask"], kinds=["file-added"]).wants(record)
    """

    projects: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    streams: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    gained: frozenset[str] = frozenset()

    @classmethod
    def parse(
        cls,
        projects: Iterable[str] = (),
        kinds: Iterable[str] = (),
        streams: Iterable[str] = (),
        modules: Iterable[str] = (),
        gained: Iterable[str] = (),
    ) -> Self:
        """Return the filter for these texts. Raises FilterError, which names the accepted values.

        Without `streams` and `kinds`, the streams of changes are wanted: most visits change nothing.
        """
        wanted_kinds = frozenset(_kind(text) for text in _checked("kind", kinds))
        wanted_streams = frozenset(_stream(text) for text in _checked("stream", streams))
        return cls(
            frozenset(_project(text) for text in _checked("project", projects)),
            wanted_kinds,
            wanted_streams or (frozenset() if wanted_kinds else CHANGES),
            frozenset(_module(text) for text in _checked("module", modules)),
            frozenset(_fact(text) for text in _checked("gained", gained)),
        )

    @classmethod
    def of_fields(cls, fields: Mapping[str, object]) -> Self:
        """Return the filter for the given fields (`project`, `kind`, `stream`, `module`, `gained`).

        Each value is a text or a list of texts. Raises FilterError.
        """
        if unknown := sorted(fields.keys() - set(_FIELDS)):
            raise FilterError("filter", f"there is no {unknown[0]!r:.100}", f"the fields {', '.join(_FIELDS)}")
        return cls.parse(*(_texts(field, fields.get(field, ())) for field in _FIELDS))

    @cached_property
    def read_streams(self) -> tuple[str, ...]:
        """The streams that can have wanted records, in their order."""
        given = set(self.streams or RANKS)
        if self.kinds:
            given = {stream for stream in given if self.kinds & set(KINDS[stream])}
        if self.gained and self.kinds and RELEASE_COMPARED not in self.kinds:
            given = set()
        if self.modules or self.gained:
            given = {stream for stream in given if stream == JournalStream.CONTENT}
        return tuple(stream for stream in RANKS if stream in given)

    def wants(self, record: Record) -> bool:
        """Check whether a record matches."""
        return self.wants_all or (
            (not self.projects or record["normalized"] in self.projects)
            and (not self.kinds or record["kind"] in self.kinds)
            and (not self.streams or record["stream"] in self.streams)
            and (not self.modules or self._names_module(record))
            and (not self.gained or self._names_gain(record))
        )

    @cached_property
    def wants_all(self) -> bool:
        """True if every record matches."""
        return not any(self.question)

    def wants_line(self, line: bytes) -> bool:
        """Check whether a record, given as its line of JSON, matches.

        The first fields of the line usually decide. A filter by module or gain parses the line only if the line
        contains one of the wanted texts.
        """
        head = _HEAD(line)
        if head is None:
            return self.wants_all or self.wants(orjson.loads(line))
        given = self._literals
        stream, kind, normalized = head.groups()
        return (
            (not given.projects or normalized in given.projects)
            and (not given.kinds or kind in given.kinds)
            and (not given.streams or stream in given.streams)
            and (not given.gained or (kind == _COMPARED and any(map(line.__contains__, given.gained))))
            and (not given.modules or any(map(line.__contains__, given.modules)))
            and (not (given.gained or given.modules) or self.wants(orjson.loads(line)))
        )

    @cached_property
    def question(self) -> tuple[tuple[str, ...], ...]:
        """The wanted values in a canonical order, so that equal filters have equal values."""
        parts = (self.projects, self.kinds, self.streams, self.modules, self.gained)
        return tuple(tuple(sorted(part)) for part in parts)

    @cached_property
    def _literals(self) -> "_Literals":
        return _Literals(
            frozenset(orjson.dumps(name) for name in self.projects),
            frozenset(orjson.dumps(name) for name in self.kinds),
            frozenset(orjson.dumps(name) for name in self.streams),
            # the beginning of a name; a name that is not ASCII can be escaped in the line
            tuple(orjson.dumps(name)[:-1] if name.isascii() else b"" for name in sorted(self.modules)),
            tuple(orjson.dumps(fact) for fact in sorted(self.gained)),
        )

    def _names_gain(self, record: Record) -> bool:
        return record["kind"] == RELEASE_COMPARED and not self.gained.isdisjoint(record["gained"])

    def _names_module(self, record: Record) -> bool:
        return record["stream"] == JournalStream.CONTENT and any(
            name == module or name.startswith(f"{module}.")
            for name in _named_modules(record)
            for module in self.modules
        )


def _named_modules(record: Record) -> Iterable[str]:
    """Return the modules that a record of the content stream names."""
    if record["kind"] == NEW_PROVIDER:
        return (record["module"],)
    if record["kind"] == RELEASE_COMPARED:
        return (*record["gained"].get("modules", ()), *record["lost"].get("modules", ()))
    return record.get("modules") or ()


def _texts(field: str, value: object) -> Iterable[str]:
    texts: list[Any] = [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise FilterError(field, "it is neither a text nor a list of texts", "a text, or a list of texts")
    return texts


def _checked(field: str, texts: Iterable[str]) -> list[str]:
    found = list(texts)
    if len(found) > MOST_VALUES:
        raise FilterError(field, f"there are {len(found):,}", f"at most {MOST_VALUES:,} values")
    if any(not text.strip() or len(text) > LONGEST_VALUE for text in found):
        raise FilterError(field, "it is empty or too long", f"1 to {LONGEST_VALUE:,} characters")
    return found


def _project(text: str) -> str:
    return canonicalize_name(text.strip())


def _module(text: str) -> str:
    return text.strip()


def _kind(text: str) -> str:
    kind = " ".join(re.split(r"[\s_-]+", text.strip().lower()))
    known = list(dict.fromkeys(kind for kinds in KINDS.values() for kind in kinds))
    if kind not in known:
        raise FilterError("kind", f"there are no records of the kind {text!r:.100}", ", ".join(known))
    return kind


def _fact(text: str) -> str:
    fact = re.sub(r"[\s_-]+", "_", text.strip().lower())
    if fact not in COMPARED_FACTS:
        raise FilterError("gained", f"releases are not compared by {text!r:.100}", ", ".join(GAINED))
    return fact


def _stream(text: str) -> str:
    stream = text.strip().lower()
    if stream not in RANKS:
        raise FilterError("stream", f"there is no stream {text!r:.100}", ", ".join(RANKS))
    return stream
