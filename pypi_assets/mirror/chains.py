"""Checks the chains of a source's journal: before anything is copied, they must continue the local chains.

Local segments that takedowns of the source have replaced are replaced here too, and pruned segments are deleted.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.journal.segment_files import (
    GRID,
    Head,
    JournalDamagedError,
    SegmentManifest,
    SegmentMissingError,
    decode_manifest,
    head_path,
    manifest_path,
    open_manifest,
    read_head,
    read_lines,
    read_manifest,
    segment_name,
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
    write_takedown,
)
from pypi_assets.mirror.copying import Copying
from pypi_assets.mirror.sources import BehindError, ForkError, RefusedSourceError, Source, small_file
from pypi_assets.storage.store import ObjectNotFoundError, Storage

MOST_TAKEDOWN_BYTES = 16 * 1024**2
_END = re.compile(r"(?:open-)?[0-9]+-([0-9]+)\.")


def new_takedowns(source: Source, held: Head | None, head: Head) -> tuple[TakedownFile, ...]:
    """Return the takedowns of a source that the mirror lacks.

    Raises BehindError, RefusedSourceError and SourceError.
    """
    since = held.takedowns if held is not None and held.generation == head.generation else None
    last = head.takedowns
    if since is not None and (last is None or last.number < since.number):
        raise BehindError(f"the stream {head.stream} of {source.name} lacks takedowns that this mirror has")
    try:
        found = takedowns_of(
            head, lambda path: small_file(source, path, MOST_TAKEDOWN_BYTES), since=since, name=f"{source.name}/"
        )
    except JournalDamagedError as error:
        raise RefusedSourceError(str(error)) from error
    return tuple(found)


def replaced_by(storage: Storage, head: Head, takedowns: Iterable[TakedownFile]) -> Mapping[int, ReplacedSegment]:
    """Return the replaced segments by number, after `takedowns` are applied as well."""
    held = read_head(storage, head.stream)
    before = replaced_segments(storage, held) if held is not None and held.generation == head.generation else {}
    return before | {segment.number: segment for takedown in takedowns for segment in takedown.segments}


def changed_segments(
    storage: Storage, takedowns: Iterable[TakedownFile]
) -> Iterator[tuple[SegmentManifest, SegmentManifest]]:
    """Yield the local segments that `takedowns` replace, each before and after."""
    newest = {segment.number: (takedown, segment) for takedown in takedowns for segment in takedown.segments}
    for takedown, segment in newest.values():
        held = read_head(storage, takedown.stream)
        if held is None or held.generation != takedown.generation or not _is_held(held, segment.number):
            continue
        manifest = read_manifest(storage, held.stream, held.generation, segment.number)
        now = as_replaced(manifest, replaced_segments(storage, held))
        later = as_replaced(manifest, {segment.number: segment})
        if now != later:  # otherwise there is nothing to replace or delete
            yield now, later


def _is_held(held: Head, number: int) -> bool:
    return held.first_number <= number <= held.number


def require_takedown(storage: Storage, before: SegmentManifest, after: SegmentManifest) -> None:
    """Check that a segment differs only in records that were taken down.

    If it has other differences, delete the file of `after` and raise RefusedSourceError.
    """
    try:
        for old, new in zip_longest(read_lines(storage, before), read_lines(storage, after), fillvalue=b""):
            if old != new and not is_replacement(new, old):
                storage.delete(segment_path(after))
                raise RefusedSourceError(
                    f"segment {before.number} of the stream {before.stream} was replaced, and not by a takedown alone:"
                    f" {new[:100]!r} is in place of {old[:100]!r}. The local segment is kept"
                )
    except SegmentMissingError:
        return  # deleted before a kill, and compared before that


def dropped_segments(storage: Storage, heads: Iterable[Head]) -> set[str]:
    """Return the paths of stored segments that were pruned or replaced."""
    found: set[str] = set()
    for head in heads:
        if head.takedowns is None and head.pruned is None:
            continue
        folder = stream_path(head.stream, head.generation)
        replaced = {segment.number: segment.name for segment in replaced_segments(storage, head).values()}
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


_MOST_MANIFEST_BYTES = 16 * 1024
_BATCH = 64


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """The new part of a stream: its `head`, the manifests that the mirror lacks, and new takedowns.

    The manifests belong to a chain that was checked.
    """

    head: Head
    manifests: tuple[SegmentManifest, ...]
    takedowns: tuple[TakedownFile, ...] = ()


def plan_stream(
    source: Source,
    storage: Storage,
    head: Head,
    *,
    at_once: int = 4,
    again: bool = False,
    is_restart_signed: bool = False,
) -> StreamPlan:
    """Check the chain that leads to `head` against the local chain, and return its new part.

    With `again`, the plan has the whole chain. It also has the whole chain if the source has segments again that were
    pruned. A new generation has another history than the local one, so it is a fork, unless `is_restart_signed`: then a
    key must sign it before it is copied.

    Raises ForkError, which names the stream, and the number and serial of the first difference. Raises BehindError if
    the source has less of the same chain, RefusedSourceError if its manifests do not form a chain, and SourceError.
    """
    held = read_head(storage, head.stream)
    if held is not None and not held.number and (held.generation, held.start) != (head.generation, head.start):
        held = None  # it has no segment that could conflict with the source
    if held is not None and held.generation > head.generation:
        raise ForkError(
            f"the stream {head.stream} of {source.name} is at generation {head.generation}, and the local copy at"
            f" generation {held.generation} up to serial {held.end}: the source was created again"
        )
    if held is not None and held.generation < head.generation and not is_restart_signed:
        raise ForkError(
            f"the stream {head.stream} of {source.name} forks from the local copy: it was restarted as generation"
            f" {head.generation}, and the local copy is generation {held.generation} up to serial {held.end}. The local"
            f" copy is kept; follow its former source, or require its key (--public-key). If you know that its operator"
            f" has restarted the stream, delete {storage.uri(head_path(head.stream))}"
        )
    if held is None or held.generation < head.generation:
        held = Head(head.stream, head.generation, head.start, head.start, 0, None)
    fetch = _Fetched(source, head, at_once)
    if (held.start != head.start and held.number and head.number) or not _goes_on(fetch, storage, held, head):
        raise _fork(fetch, storage, held, head)
    if head.number < held.number or head.through < held.through:
        raise BehindError(
            f"the stream {head.stream} of {source.name} ends at serial {head.through}, and the local copy at"
            f" {held.through}"
        )
    takedowns = new_takedowns(source, held, head)
    if again or head.first_number < held.first_number:
        manifests = _followed(fetch, Head(head.stream, head.generation, head.start, head.start, 0, None), head)
        # the source serves it differently than the first time
        if held.number and manifests[held.number - 1].digest != held.digest:
            raise RefusedSourceError(
                f"the stream {head.stream} of {source.name} does not continue the local copy: segment {held.number} of"
                " its whole chain differs"
            )
    else:
        manifests = _followed(fetch, held, head)
    _require_pruned_end(fetch, storage, head, manifests)
    return StreamPlan(head, manifests, takedowns)


def copy_stream(copying: Copying, plan: StreamPlan, *, holds: Callable[[SegmentManifest], bool]) -> None:
    """Copy the new part of a stream: segments, then their manifests in order, then takedowns and the head.

    Segments that the storage `holds` are not copied again, and segments that a takedown has replaced are deleted.
    Raises RefusedSourceError and SourceError.
    """
    storage, head = copying.storage, plan.head
    changed = list(changed_segments(storage, plan.takedowns))
    replaced = replaced_by(storage, head, plan.takedowns)
    for after in (*(after for _, after in changed), *(as_replaced(manifest, replaced) for manifest in plan.manifests)):
        require_own_name(copying.source, after)
    copying.segments(after for _, after in changed if after.number >= head.first_number and not holds(after))
    for before, after in changed:
        if after.number >= head.first_number:
            require_takedown(storage, before, after)
    for first in range(0, len(plan.manifests), _BATCH):
        batch = plan.manifests[first : first + _BATCH]
        there = [as_replaced(segment, replaced) for segment in batch if segment.number >= head.first_number]
        copying.segments(segment for segment in there if not holds(segment))
        for manifest in batch:
            storage.put(manifest_path(manifest.stream, manifest.generation, manifest.number), manifest.encode())
    if head.open is not None and not holds(last := open_manifest(head, head.open)):
        copying.segments([last])
    for takedown in plan.takedowns:
        write_takedown(storage, takedown)
    if read_head(storage, head.stream) != head:
        storage.put(head_path(head.stream), head.encode())
    for before, _ in changed:
        storage.delete(segment_path(before))


def require_own_name(source: Source, segment: SegmentManifest) -> None:
    """Raise RefusedSourceError if a segment's filename does not match the hash of its records.

    With another name, it could replace another local segment.
    """
    if segment.name != segment_name(segment.serials, segment.sha256):
        raise RefusedSourceError(
            f"segment {segment.number} of the stream {segment.stream} of {source.name} is named {segment.name[:200]!r},"
            " which does not match its serials and hash"
        )


def held_manifest(storage: Storage, stream: str, generation: int, number: int) -> SegmentManifest | None:
    """Return a local manifest, or None if there is none or it cannot be read."""
    path = manifest_path(stream, generation, number)
    try:
        return decode_manifest(storage.get(path), storage.uri(path))
    except (ObjectNotFoundError, JournalDamagedError):
        return None


@dataclass(frozen=True, slots=True)
class _Fetched:
    """Fetches the manifests of a source's stream."""

    source: Source
    head: Head
    at_once: int

    def one(self, number: int) -> SegmentManifest:
        path = manifest_path(self.head.stream, self.head.generation, number)
        content = small_file(self.source, path, _MOST_MANIFEST_BYTES)
        try:
            manifest = decode_manifest(content, f"{self.source.name}/{path}")
        except JournalDamagedError as error:
            raise RefusedSourceError(str(error)) from error
        named = (manifest.stream, manifest.generation, manifest.number)
        if named != (self.head.stream, self.head.generation, number):
            raise RefusedSourceError(f"{self.source.name}/{path} is the manifest of another segment")
        serials = manifest.serials
        if self.head.stream == JournalStream.INDEX and serials.end > (serials.start // GRID + 1) * GRID:
            raise RefusedSourceError(
                f"{self.source.name}/{path} has the serials {serials.key}, more than a segment may have"
            )
        if not 0 <= manifest.content_bytes < 2**53:
            raise RefusedSourceError(f"{self.source.name}/{path} has an impossible size")
        require_own_name(self.source, manifest)
        return manifest

    def many(self, numbers: Iterable[int]) -> list[SegmentManifest]:
        with ThreadPoolExecutor(self.at_once, "manifests") as threads:
            return list(threads.map(self.one, numbers))


def _goes_on(fetch: _Fetched, storage: Storage, held: Head, head: Head) -> bool:
    """Check whether one of the two chains begins with the other."""
    if head.number > held.number:
        return held.number == 0 or fetch.one(held.number + 1).previous == held.digest
    if head.number == held.number:
        return head.digest == held.digest
    own = held_manifest(storage, held.stream, held.generation, head.number)
    return head.number == 0 or (own is not None and own.digest == head.digest)


def _followed(fetch: _Fetched, held: Head, head: Head) -> tuple[SegmentManifest, ...]:
    """Return the manifests after the local ones. Each must name the previous manifest."""
    found: list[SegmentManifest] = []
    digest, end = held.digest, held.end if held.number else head.start
    for first in range(held.number + 1, head.number + 1, _BATCH):
        for manifest in fetch.many(range(first, min(first + _BATCH, head.number + 1))):
            if manifest.previous != digest or manifest.serials.start != end:
                raise RefusedSourceError(
                    f"segment {manifest.number} of the stream {head.stream} of {fetch.source.name} does not follow the"
                    f" previous segment, which ends at serial {end}"
                )
            found.append(manifest)
            digest, end = manifest.digest, manifest.serials.end
    if (digest, end) != (head.digest, head.end):
        raise RefusedSourceError(
            f"the chain of the stream {head.stream} of {fetch.source.name} does not end where its head states, at"
            f" segment {head.number} and serial {head.end}"
        )
    return tuple(found)


def _require_pruned_end(fetch: _Fetched, storage: Storage, head: Head, manifests: Sequence[SegmentManifest]) -> None:
    """Raise RefusedSourceError if the last pruned segment does not end at the serial that the head states."""
    if head.pruned is None:
        return
    new = next((manifest for manifest in manifests if manifest.number == head.pruned.number), None)
    last = new or held_manifest(storage, head.stream, head.generation, head.pruned.number)
    if last is None or last.serials.end != head.pruned.end:
        raise RefusedSourceError(
            f"segment {head.pruned.number} of the stream {head.stream} of {fetch.source.name} was pruned, but does not"
            f" end at serial {head.pruned.end}, as its head states"
        )


def _fork(fetch: _Fetched, storage: Storage, held: Head, head: Head) -> RefusedSourceError:
    """Return the error that names the first segment in which the source differs from the local chain."""
    low, high = 1, min(held.number, head.number)
    while low < high:
        middle = (low + high) // 2
        own = held_manifest(storage, held.stream, held.generation, middle)
        if own is not None and own.digest == fetch.one(middle).digest:
            low = middle + 1
        else:
            high = middle
    own = held_manifest(storage, held.stream, held.generation, low)
    if own is not None and head.number > held.number and own.digest == fetch.one(low).digest:
        return RefusedSourceError(
            f"segment {low + 1} of the stream {head.stream} of {fetch.source.name} does not follow segment {low}"
        )
    serial = own.serials.start if own is not None else held.start
    return ForkError(
        f"the stream {head.stream} of {fetch.source.name} forks from the local copy: segment {low}, after serial"
        f" {serial}, differs. The local copy is kept; follow its former source, or use an empty storage"
    )
