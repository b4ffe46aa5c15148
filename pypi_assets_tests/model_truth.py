"""Record the files that an index showed at each serial, for comparison with a catalog."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

Shown = frozenset[tuple[str, bool]]
"""Shown files: (filename, is yanked)."""
Spans = list[tuple[int, int]]
"""Ordered spans of serials. The first serial is included, the second is not."""
FOREVER = 2**62


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file on a page: whether it is yanked, and its release in the spelling of the index."""

    yanked: bool
    version: str


@dataclass(slots=True)
class _Span:
    start: int
    end: int
    file: ShownFile


@dataclass
class Truth:
    """The files that were shown at each serial.

    `doubtful` has the serials at which no follower can know whether a file was shown: the file appeared or disappeared
    without an event, and no visit has taken place since.
    """

    serial: int = 0
    doubtful: dict[str, tuple[int, int]] = field(default_factory=dict)
    _spans: dict[str, list[_Span]] = field(default_factory=dict)
    _now: dict[str, dict[str, ShownFile]] = field(default_factory=dict)

    def note(self, serial: int, project: str, files: Mapping[str, ShownFile]) -> None:
        """Record that the page of `project` shows exactly `files` from `serial` on."""
        self.serial = max(self.serial, serial)
        before = self._now.get(project, {})
        for filename in before.keys() - files.keys():
            self._spans[filename][-1].end = serial
        for filename, file in files.items():
            if before.get(filename) != file:
                spans = self._spans.setdefault(filename, [])
                if filename in before:
                    spans[-1].end = serial
                spans.append(_Span(serial, FOREVER, file))
        self._now[project] = dict(files)

    def note_added(self, serial: int, project: str, filename: str, file: ShownFile) -> None:
        """Record that the page of `project` shows an additional file from `serial` on."""
        self.serial = max(self.serial, serial)
        self._now.setdefault(project, {})[filename] = file
        self._spans.setdefault(filename, []).append(_Span(serial, FOREVER, file))

    def doubt(self, filename: str, since: int) -> None:
        """Record that the file appeared or disappeared without an event. It may be unknown from `since` on, until a
        visit.
        """
        known = self.doubtful.get(filename, (since, FOREVER))
        self.doubtful[filename] = (min(known[0], since), FOREVER)

    def is_seen(self, serial: int) -> None:
        """Record that visits have seen all such changes. From `serial` on, nothing is doubtful."""
        self.doubtful = {name: (since, min(end, serial)) for name, (since, end) in self.doubtful.items()}

    def now(self) -> dict[str, ShownFile]:
        """Return the files that all pages show now."""
        return {filename: file for files in self._now.values() for filename, file in files.items()}

    def of_project(self, project: str) -> Mapping[str, ShownFile]:
        return self._now.get(project, {})

    def filenames(self) -> set[str]:
        """Return all files that were ever shown."""
        return set(self._spans)

    def at(self, serial: int) -> Shown:
        """Return the files that all pages showed at a serial."""
        return frozenset(
            (filename, span.file.yanked)
            for filename, spans in self._spans.items()
            for span in spans
            if span.start <= serial < span.end
        )

    def live(self, filename: str) -> Spans:
        return joined((span.start, span.end) for span in self._spans.get(filename, ()))

    def yanked(self, filename: str) -> Spans:
        return joined((span.start, span.end) for span in self._spans.get(filename, ()) if span.file.yanked)


@dataclass(frozen=True, slots=True)
class ShownBySerial:
    """The shown files by serial: `shown[serial]` returns them, and iteration yields all serials from 0."""

    truth: Truth

    def __getitem__(self, serial: int) -> Shown:
        return self.truth.at(serial)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.truth.serial + 1))


def joined(spans: Iterable[tuple[int, int]]) -> Spans:
    """Merge adjacent and overlapping spans."""
    found: Spans = []
    for start, end in sorted(spans):
        if start == end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def within(spans: Iterable[tuple[int, int]], first: int, last: int, *, without: tuple[int, int] | None = None) -> Spans:
    """Return the parts of `spans` from serial `first` to `last`, except for the span `without`."""
    cut = [(max(start, first), min(end, last + 1)) for start, end in spans]
    if without is not None:
        cut = [part for start, end in cut for part in ((start, min(end, without[0])), (max(start, without[1]), end))]
    return joined((start, end) for start, end in cut if start < end)
