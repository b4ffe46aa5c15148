"""What a source has replaced or pruned of segments that are held: takedowns are taken over, once they are that.

A takedown may put records of the kind `taken down` where others were, and change nothing else.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest

from pypi_assets.journal.segment_files import (
    Head,
    JournalDamagedError,
    Manifest,
    SegmentMissingError,
    read_head,
    read_lines,
    read_manifest,
    segment_path,
    stream_path,
)
from pypi_assets.journal.takedown_files import (
    ReplacedSegment,
    TakedownFile,
    as_replaced,
    is_replacement,
    replaced_segments,
    takedowns_of,
)
from pypi_assets.mirror.errors import BehindError, RefusedSourceError
from pypi_assets.mirror.sources import Source, small_file
from pypi_assets.storage.store import Storage

MOST_TAKEDOWN_BYTES = 16 * 1024**2
_END = re.compile(r"(?:open-)?[0-9]+-([0-9]+)\.")


def new_takedowns(source: Source, held: Head | None, head: Head) -> tuple[TakedownFile, ...]:
    """The takedowns of a source that are not `held` yet. Raises BehindError, RefusedSourceError, SourceError."""
    since = held.takedowns if held is not None and held.generation == head.generation else None
    last = head.takedowns
    if since is not None and (last is None or last.number < since.number):
        raise BehindError(f"the stream {head.stream} of {source.name} lacks takedowns that are held")
    try:
        found = takedowns_of(
            head, lambda path: small_file(source, path, MOST_TAKEDOWN_BYTES), since=since, name=f"{source.name}/"
        )
    except JournalDamagedError as error:
        raise RefusedSourceError(str(error)) from error
    return tuple(found)


def replaced_by(storage: Storage, head: Head, takedowns: Iterable[TakedownFile]) -> Mapping[int, ReplacedSegment]:
    """The files that replace others once `takedowns` are taken over as well."""
    held = read_head(storage, head.stream)
    before = replaced_segments(storage, held) if held is not None and held.generation == head.generation else {}
    return before | {segment.number: segment for takedown in takedowns for segment in takedown.segments}


def changed_segments(storage: Storage, takedowns: Iterable[TakedownFile]) -> Iterator[tuple[Manifest, Manifest]]:
    """The held segments that `takedowns` replace: as they are, and as they will be."""
    newest = {segment.number: (takedown, segment) for takedown in takedowns for segment in takedown.segments}
    for takedown, segment in newest.values():
        held = read_head(storage, takedown.stream)
        if held is None or held.generation != takedown.generation or not _is_held(held, segment.number):
            continue
        manifest = read_manifest(storage, held.stream, held.generation, segment.number)
        now = as_replaced(manifest, replaced_segments(storage, held))
        later = as_replaced(manifest, {segment.number: segment})
        if now != later:  # else there is nothing to replace, and nothing to delete
            yield now, later


def _is_held(held: Head, number: int) -> bool:
    return held.first_number <= number <= held.number


def require_takedown(storage: Storage, before: Manifest, after: Manifest) -> None:
    """Deletes the file of `after`, and raises RefusedSourceError, where other records than those that were taken down
    differ from those of `before`."""
    try:
        for old, new in zip_longest(read_lines(storage, before), read_lines(storage, after), fillvalue=b""):
            if old != new and not is_replacement(new, old):
                storage.delete(segment_path(after))
                raise RefusedSourceError(
                    f"segment {before.number} of the stream {before.stream} was replaced, and not by a takedown alone:"
                    f" {new[:100]!r} is where {old[:100]!r} was. What is held stays"
                )
    except SegmentMissingError:
        return  # a kill after it was deleted; it was compared by then


def dropped_segments(storage: Storage, heads: Iterable[Head]) -> set[str]:
    """The paths of the segments in the storage that were pruned or replaced."""
    found: set[str] = set()
    for head in heads:
        if head.takedowns is None and head.pruned is None:
            continue
        folder = stream_path(head.stream, head.generation)
        replaced = {one.number: one.name for one in replaced_segments(storage, head).values()}
        starts = {_range_of(name): name for name in replaced.values()}
        for stored in storage.list(folder):
            name = stored.path.removeprefix(f"{folder}/")
            match = _END.match(name)
            if match is None or "/" in name:
                continue
            is_pruned = head.pruned is not None and int(match[1]) <= head.pruned.end
            if is_pruned or starts.get(_range_of(name), name) != name:
                found.add(stored.path)
    return found


def _range_of(name: str) -> str:
    return name.partition(".")[0]
