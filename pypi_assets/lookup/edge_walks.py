"""Dependents from the edges of a published version: by newest releases, and breadth first.

Each function gives the same results as a search in the records, which readers of versions without edges use.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from heapq import heappush, heappushpop
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from pypi_assets.leveldbs.datasets.depgraph.edges import OLDER_ALONE, Edges

if TYPE_CHECKING:
    from pypi_assets.lookup.depgraph_reader import Dependent, TransitiveDependent

_READ_ALONE = 4
"""Records are read one by one if they are fewer than one in this number of all records of a project."""
FromRecord = Callable[[str, str], "Dependent | None"]
"""Returns a dependent from its record: the required project, and the project that requires it."""


def latest_dependents(
    edges: Edges, required: str, from_record: FromRecord, after: str | None = None
) -> "Iterator[Dependent]":
    """Yield the projects whose newest release requires `required` (normalized), by name, with this release alone.

    With `after`, the result begins after this project. `from_record` returns the dependent of a project whose newest
    release has several spellings, reduced to its newest release.
    """
    number = edges.number(required)
    if number is not None:
        yield from _latest(edges, number, required, from_record, after)


def all_latest_dependents(
    edges: Edges, prefix: str, from_record: FromRecord, after: tuple[str, str] | None = None
) -> "Iterator[Dependent]":
    """Yield the same dependents of all projects whose name begins with `prefix`, by required project and dependent.

    With `after`, a required project and its dependent, the result begins after this pair.
    """
    for number in edges.beginning_with(prefix, None if after is None else after[0]):
        required = edges.name(number)
        begin = after[1] if after is not None and required == after[0] else None
        yield from _latest(edges, number, required, from_record, begin)


def _latest(
    edges: Edges, number: int, required: str, from_record: FromRecord, after: str | None
) -> "Iterator[Dependent]":
    projects, lists = edges.requiring(number)
    begin = 0 if after is None else bisect_right(projects, after, key=edges.name)
    for project, of_edge in zip(projects[begin:], lists[begin:], strict=True):
        if of_edge != OLDER_ALONE:
            release = edges.release(project)
            if release is None:
                continue
            version, is_spelled_in_several_ways = release
            name = edges.name(project)
            if is_spelled_in_several_ways:
                found = from_record(required, name)
                if found is not None:
                    yield found
                continue
            condition = edges.condition(of_edge)
            yield {
                "required": required,
                "normalized": name,
                "always": [version] if condition == 0 else [],
                "marker": [version] if condition == 1 else [],
                "extra": [version] if condition == 2 else [],
            }


def transitive_latest_dependents(
    edges: Edges, required: str, depth: int | None, from_record: FromRecord
) -> "Iterator[TransitiveDependent]":
    """Yield the projects whose newest releases lead to `required`, breadth first, each once at its least depth."""
    start = edges.number(required)
    if start is None:
        return
    found = bytearray(edges.size)
    found[start] = 1
    level, steps = [start], 0
    while level and (depth is None or steps < depth):
        steps += 1
        following: list[int] = []
        for number in level:
            if not edges.count(number):
                continue
            projects, lists = edges.requiring(number)
            name = edges.name(number)
            for project, of_edge in zip(projects, lists, strict=True):
                if of_edge == OLDER_ALONE or found[project]:
                    continue
                release = edges.release(project)
                if release is None:
                    continue
                version, is_spelled_in_several_ways = release
                if is_spelled_in_several_ways:
                    one = from_record(name, edges.name(project))
                    if one is None:
                        continue
                    always, marker, extra = one["always"], one["marker"], one["extra"]
                else:
                    condition = edges.condition(of_edge)
                    always, marker, extra = ([version] if condition == rank else [] for rank in range(3))
                found[project] = 1
                following.append(project)
                yield {
                    "depth": steps,
                    "required": name,
                    "normalized": edges.name(project),
                    "always": always,
                    "marker": marker,
                    "extra": extra,
                }
        level = following


def transitive_dependents(
    edges: Edges,
    required: str,
    depth: int | None,
    from_record: FromRecord,
    of_all: "Callable[[str], Iterator[Dependent]]",
) -> "Iterator[TransitiveDependent]":
    """Yield the projects any of whose releases lead to `required`, breadth first, each once at its least depth.

    `from_record` reads one dependent, and `of_all` reads all dependents of a project, by name. Only projects that were
    not found before are read, unless they are many.
    """
    start = edges.number(required)
    if start is None:
        return
    found = bytearray(edges.size)
    found[start] = 1
    level, steps = [start], 0
    while level and (depth is None or steps < depth):
        steps += 1
        following: list[int] = []
        for number in level:
            if not edges.count(number):
                continue
            projects = edges.requiring(number)[0]
            new = [project for project in projects if not found[project]]
            if not new:
                continue
            name = edges.name(number)
            for project in new:
                found[project] = 1
            following += new
            names = [edges.name(project) for project in new]
            if len(new) * _READ_ALONE < len(projects):
                dependents = (one for project in names if (one := from_record(name, project)) is not None)
            else:
                wanted = set(names)
                dependents = (one for one in of_all(name) if one["normalized"] in wanted)
            for dependent in dependents:
                yield {"depth": steps, **dependent}
        level = following


Ranked = TypeVar("Ranked")


def most_required(edges: Edges, most: int, prefix: str, most_scanned: int | None) -> list[tuple[str, int]]:
    """Return the results of `DepgraphReader.most_required`."""
    counts = ((number, edges.count(number)) for number in edges.beginning_with(prefix))
    required = ((number, count) for number, count in counts if count)
    found = greatest(required, most, most_scanned, lambda number: edges.release(number) is not None)
    return [(edges.name(number), count) for number, count in found]


def greatest(
    counts: Iterable[tuple[Ranked, int]], most: int, most_scanned: int | None, is_known: Callable[[Ranked], bool]
) -> list[tuple[Ranked, int]]:
    """Return the `most` greatest of the first `most_scanned` counts, greatest first, in their order if they are equal.

    Unknown ones are skipped. Memory grows with `most` only.
    """
    best: list[tuple[int, int, Ranked]] = []
    for place, (name, count) in enumerate(islice(counts, most_scanned) if most > 0 else ()):
        one = count, -place, name
        if len(best) == most and one <= best[0]:
            continue
        if is_known(name):  # a project can be required that was never uploaded
            (heappushpop if len(best) == most else heappush)(best, one)
    return [(name, count) for count, _, name in sorted(best, reverse=True)]
