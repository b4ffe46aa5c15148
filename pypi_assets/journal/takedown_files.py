"""The files of takedowns: which segments of a generation were replaced, and by what.

A manifest keeps the hash of its original records, so the chain stays valid. Each takedown has a file with the names and
hashes of the replacing segments, and the hash of the previous takedown. The head of the stream has the hash of the last
takedown. A replacing segment may differ from the original only in records of the kind `taken down`.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from pypi_assets.catalog.reports.journal_format import TAKEN_DOWN, Record, new_record
from pypi_assets.journal.segment_files import (
    FORMAT,
    Head,
    JournalDamagedError,
    LastTakedown,
    SegmentManifest,
    number_in,
    plain_name,
    stream_path,
    text_in,
)
from pypi_assets.storage.store import ObjectNotFoundError, Storage

_KEPT = ("serial", "of_serial", "ordinal", "stream")


@dataclass(frozen=True, slots=True)
class ReplacedSegment:
    """The file that replaces the segment `number`: its name, and the size and hash of its records before compression.

    The number of records does not change.
    """

    number: int
    name: str
    content_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class TakedownFile:
    """The takedown `number` of a generation. `previous` is the hash of the previous takedown's file.

    `at` is in unix seconds.
    """

    stream: str
    generation: int
    number: int
    at: int
    segments: tuple[ReplacedSegment, ...]
    previous: str | None

    def encode(self) -> bytes:
        """Return the takedown in its stored form, one line of JSON."""
        fields = {
            "format": FORMAT,
            "stream": self.stream,
            "generation": self.generation,
            "number": self.number,
            "at": self.at,
            "segments": [
                {
                    "number": segment.number,
                    "name": segment.name,
                    "bytes": segment.content_bytes,
                    "sha256": segment.sha256,
                }
                for segment in self.segments
            ],
            "previous": self.previous,
        }
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)

    @property
    def as_last(self) -> LastTakedown:
        """The takedown as named in the head."""
        return LastTakedown(self.number, hashlib.sha256(self.encode()).hexdigest())


def takedown_path(stream: str, generation: int, number: int) -> str:
    """Return the path of a takedown's file."""
    return f"{stream_path(stream, generation)}/takedowns/{number:08d}.json"


def write_takedown(storage: Storage, takedown: TakedownFile) -> None:
    """Write the file of a takedown. It takes effect once the head names it."""
    storage.put(takedown_path(takedown.stream, takedown.generation, takedown.number), takedown.encode())


def decode_takedown(content: bytes, name: str) -> TakedownFile:
    """Return the takedown in `content`. Errors use `name` for it. Raises JournalDamagedError."""
    try:
        fields = orjson.loads(content)
        if fields["format"] != FORMAT:
            raise ValueError(f"format {fields['format']}")
        takedown = TakedownFile(
            stream=text_in(fields["stream"]),
            generation=number_in(fields["generation"]),
            number=number_in(fields["number"]),
            at=number_in(fields["at"]),
            segments=tuple(_segment(segment) for segment in fields["segments"]),
            previous=None if fields["previous"] is None else text_in(fields["previous"]),
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise JournalDamagedError(f"{name} is not a takedown that this version reads: {error!r}") from error
    if takedown.encode() != content:
        raise JournalDamagedError(f"{name} is not a takedown that this version writes")
    return takedown


def _segment(fields: Mapping[str, Any]) -> ReplacedSegment:
    return ReplacedSegment(
        number_in(fields["number"]),
        plain_name(fields["name"]),
        number_in(fields["bytes"]),
        text_in(fields["sha256"]),
    )


def takedowns_of(
    head: Head, get: Callable[[str], bytes], *, since: LastTakedown | None = None, name: str = ""
) -> list[TakedownFile]:
    """Return the takedowns that lead to a head, after `since`, the oldest first.

    `get` returns the content at a path, and errors use `name` for the location. Raises JournalDamagedError if the files
    do not form a chain, or the chain does not continue from `since`.
    """
    found: list[TakedownFile] = []
    expected = head.takedowns
    while expected is not None and (since is None or expected.number > since.number):
        path = takedown_path(head.stream, head.generation, expected.number)
        try:
            takedown = decode_takedown(get(path), f"{name}{path}")
        except ObjectNotFoundError as error:
            raise JournalDamagedError(f"a takedown of the journal is missing: {error}") from error
        place = (takedown.stream, takedown.generation, takedown.as_last)
        if place != (head.stream, head.generation, expected) or (takedown.previous is None) != (takedown.number == 1):
            raise JournalDamagedError(f"{name}{path} is not the takedown that the chain names: its hash differs")
        found.append(takedown)
        expected = None if takedown.previous is None else LastTakedown(takedown.number - 1, takedown.previous)
    if expected != since:
        raise JournalDamagedError(
            f"the takedowns of the stream {head.stream} of {name or 'the journal'} do not continue the known takedowns"
        )
    return found[::-1]


def replaced_segments(storage: Storage, head: Head) -> dict[int, ReplacedSegment]:
    """Return the replaced segments of the generation of `head`, by number. Raises JournalDamagedError."""
    takedowns = takedowns_of(head, storage.get)
    return {segment.number: segment for takedown in takedowns for segment in takedown.segments}


def newest_takedown_file(storage: Storage, stream: str, generation: int) -> LastTakedown | None:
    """Return the newest takedown of a generation whose head is lost. Raises JournalDamagedError."""
    folder = takedown_path(stream, generation, 1).rpartition("/")[0]
    last = max((stored.path for stored in storage.list(folder)), default=None)
    return None if last is None else decode_takedown(storage.get(last), last).as_last


def as_replaced(manifest: SegmentManifest, replaced: Mapping[int, ReplacedSegment]) -> SegmentManifest:
    """Return a manifest with the name, size and hash of the segment's current file.

    It is only for reading the file: its digest is not part of the chain.
    """
    found = replaced.get(manifest.number)
    if found is None:
        return manifest
    return replace(manifest, name=found.name, content_bytes=found.content_bytes, sha256=found.sha256)


def replacement(record: Record, reason: str, at: float, *, hides_name: bool) -> Record:
    """Return the record that replaces `record`."""
    made = new_record(record["serial"], record["of_serial"], TAKEN_DOWN, record["at"])
    made |= {name: record[name] for name in _KEPT}
    if not hides_name:
        made |= {"project": record["project"], "normalized": record["normalized"]}
    return made | {"reason": reason, "taken_down_at": int(at)}


def is_replacement(line: bytes, original: bytes) -> bool:
    """Check whether a line is a record of the kind `taken down`, at the position of the record in `original`."""
    try:
        new, old = orjson.loads(line), orjson.loads(original)
        return bool(new["kind"] == TAKEN_DOWN and all(new[name] == old[name] for name in _KEPT))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return False
