"""The projects of an index of PyPI's size and skew, at any scale, and the serials of the last year's events.

A seed and a project's number determine everything, so several processes can each create the rows of some projects.
"""

import math
from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt

from benchmarks.generated import platform_suffixes

PROJECTS = 740_000
SERIALS_BEFORE = 32_000_000
"""The index's last serial when the year begins. The events up to it are unknown."""
LARGEST = 15_000
"""Files of the largest project, at every scale."""
RANGES = 52_560
"""One range every ten minutes."""
_LARGE_EVERY = 74  # of 740,000 projects 10,000 are large
_LARGE_FILES, _LARGE_SHAPE = 500, 1.9  # of a truncated Pareto distribution
_MEDIAN_RELEASES, _SPREAD = 2.7, 1.23  # of a log-normal distribution with a mean of 5.8
_NEW_EVERY = 0.18  # 130,000 of 740,000 projects are from the last year
_ACTIVE = 0.4
_BOTH = ("-py3-none-any.whl", ".tar.gz")


@dataclass(frozen=True, slots=True)
class Unit:
    """Events of one project with the serials from `serial` to `last`: a release, or the yank or removal of one.

    `kind` is one of new, yank, remove, remark.
    """

    kind: str
    release: int
    serial: int
    last: int


@dataclass(frozen=True, slots=True)
class Shape:
    """A project's number of releases and files. The last `new` releases are from the last year; `is_born`: all of it
    is.
    """

    number: int
    releases: int
    suffixes: tuple[str, ...]
    files: int
    new: int
    is_born: bool
    later: tuple[tuple[str, int], ...]
    """Yanks, removals and remarks of the year: their kind, and the release."""

    def files_of(self, release: int) -> int:
        """Return the number of files of a release. The last release can be truncated."""
        return min(len(self.suffixes), self.files - release * len(self.suffixes))

    @property
    def units(self) -> list[tuple[str, int, int]]:
        """Return kind, release, and number of events of each unit, in chronological order."""
        found = []
        first = self.releases - self.new
        waiting = list(self.later)
        for release in range(first, self.releases):
            is_first = self.is_born and release == first
            found.append(("new", release, 1 + is_first + self.files_of(release)))
            if waiting and waiting[0][1] <= release:
                kind, of_release = waiting.pop(0)
                found.append((kind, of_release, 1))
        return found + [(kind, release, 1) for kind, release in waiting]


def shape_of(number: int, seed: int, largest: int = LARGEST) -> Shape:
    """Return the shape of the project `number`; 0 is the largest."""
    draw = Random(seed * 1_000_003 + number)
    is_large = number % _LARGE_EVERY == 0
    is_born = not is_large and draw.random() < _NEW_EVERY
    wheels = round(draw.lognormvariate(math.log(7), 0.8))
    chance = draw.random()
    if is_large:
        suffixes = platform_suffixes(wheels) if chance < 0.35 else _BOTH
        files = largest if number == 0 else _large_files(draw, largest)
        releases = -(-files // len(suffixes))
    else:
        kinds = ((0.15, (".tar.gz",)), (0.3, ("-py3-none-any.whl",)), (0.93, _BOTH))
        suffixes = next((found for limit, found in kinds if chance < limit), None) or platform_suffixes(wheels)
        releases = max(1, round(draw.lognormvariate(math.log(_MEDIAN_RELEASES), _SPREAD) * (0.5 if is_born else 1)))
        files = min(releases * len(suffixes), _LARGE_FILES)
        releases = -(-files // len(suffixes))
    new = releases if is_born else 0
    if is_large:
        new = round(releases * draw.uniform(0.05, 0.35))
    elif not is_born and draw.random() < _ACTIVE:
        new = min(releases - 1, math.ceil(releases * draw.uniform(0.1, 0.6)))
    later = []
    for release in range(releases - new, releases):
        if draw.random() < 0.35:
            chance = draw.random()
            later.append(("yank" if chance < 0.04 else "remove" if chance < 0.06 else "remark", release))
    return Shape(number, releases, suffixes, files, new, is_born, tuple(later))


def _large_files(draw: Random, largest: int) -> int:
    """Return a number above 500 and below `largest`."""
    most = 1 - (_LARGE_FILES / max(largest, _LARGE_FILES + 2)) ** _LARGE_SHAPE
    return int(_LARGE_FILES * (1 - draw.random() * most) ** (-1 / _LARGE_SHAPE)) + 1


@dataclass(frozen=True)
class IndexPlan:
    """All projects of one scale. The year has the serials above `start` up to `end`, in `ranges` ranges."""

    scale: float
    seed: int
    largest: int
    projects: int
    start: int
    end: int
    releases: int
    files: int
    ranges: int
    _first: npt.NDArray[np.int64]
    _serials: npt.NDArray[np.int64]

    def range_of(self, serial: int) -> int:
        """Return the number of the range that contains `serial`."""
        return (serial - self.start - 1) * self.ranges // (self.end - self.start)

    def range_end(self, number: int) -> int:
        """Return the last serial of a range; for number -1, the serial at which the year begins."""
        return self.start + ((number + 1) * (self.end - self.start) + self.ranges - 1) // self.ranges

    def shape(self, number: int) -> Shape:
        return shape_of(number, self.seed, self.largest)

    def units(self, shape: Shape) -> list[Unit]:
        """Return the units of a project in the year, by serial."""
        serials = self._serials[self._first[shape.number] : self._first[shape.number + 1]].tolist()
        return [
            Unit(kind, release, serial, serial + events - 1)
            for (kind, release, events), serial in zip(shape.units, serials, strict=True)
        ]


def plan_index(
    scale: float, seed: int = 0, largest: int = LARGEST, *, start: int | None = None, ranges: int | None = None
) -> IndexPlan:
    """Draw the time of each unit of each project. The serials follow from the times, without a gap.

    The year begins at the serial `start`, and has at most `ranges` ranges; the default is the scale's share of PyPI's.
    """
    projects = max(1, round(PROJECTS * scale))
    counts, first, files, releases = [], [0], 0, 0
    for number in range(projects):
        shape = shape_of(number, seed, largest)
        counts += [events for _, _, events in shape.units]
        first.append(len(counts))
        files += shape.files
        releases += shape.releases
    events = np.array(counts, dtype=np.int64)
    keys = np.random.default_rng(seed).random(len(counts))
    owners = np.repeat(np.arange(projects), np.diff(first))
    keys = keys[np.lexsort((keys, owners))]
    order = np.argsort(keys)
    start = round(SERIALS_BEFORE * scale) if start is None else start
    serials = np.empty(len(counts), dtype=np.int64)
    serials[order] = start + 1 + np.cumsum(events[order]) - events[order]
    end = start + int(events.sum())
    count = max(1, min(round(RANGES * scale) if ranges is None else ranges, end - start))
    return IndexPlan(scale, seed, largest, projects, start, end, releases, files, count, np.array(first), serials)
