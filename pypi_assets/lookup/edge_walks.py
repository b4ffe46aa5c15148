"""Dependents from the edges of a published version: by newest releases, and breadth first.

Each function gives the same results as a search in the records, which readers of versions without edges use.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappush, heappushpop
from itertools import islice
from typing import TypeVar

from pypi_assets.leveldbs.datasets.depgraph.edges import Edges, ProjectNames
from pypi_assets.lookup.dependent_results import Dependent, TransitiveDependent

_FIRST, _AT_ONCE = 20, 2_000
"""The number of results that are made together. The first ones are few, so that they arrive early."""
_READ_ALONE = 4
"""Records are read one by one if they are fewer than one in this number of all records of a project."""
FromRecord = Callable[[str, str], Dependent | None]
"""Returns a dependent from its record: the required project, and the project that requires it."""


def latest_dependents(
    edges: Edges, required: str, from_record: FromRecord, after: str | None = None
) -> Iterator[Dependent]:
    """Yield the projects whose newest release requires `required` (normalized), by name, with this release alone.

    With `after`, the result begins after this project. `from_record` returns the dependent of a project whose newest
    release has several spellings, reduced to its newest release.
    """
    number = edges.number(required)
    if number is not None:
        yield from _latest(edges, number, required, from_record, after)


def all_latest_dependents(
    edges: Edges, prefix: str, from_record: FromRecord, after: tuple[str, str] | None = None
) -> Iterator[Dependent]:
    """Yield the same dependents of all projects whose name begins with `prefix`, by required project and dependent.

    With `after`, a required project and its dependent, the result begins after this pair.
    """
    for number in edges.beginning_with(prefix, None if after is None else after[0]):
        required = edges.name(number)
        begin = after[1] if after is not None and required == after[0] else None
        yield from _latest(edges, number, required, from_record, begin)


def _latest(
    edges: Edges, number: int, required: str, from_record: FromRecord, after: str | None
) -> Iterator[Dependent]:
    projects, lists = edges.newest(number)
    begin = 0 if after is None else bisect_right(projects, after, key=edges.name)
    conditions, names, at_once = edges.conditions, ProjectNames(edges), _FIRST
    while begin < len(projects):
        some, of_edges = projects[begin : begin + at_once], lists[begin : begin + at_once]
        for name, release, of_edge in zip(names.of(some), edges.releases(some), of_edges, strict=True):
            row = _reduced(required, name, release, conditions[of_edge], from_record)
            if row is not None:
                yield row
        begin, at_once = begin + at_once, _AT_ONCE


def _reduced(
    required: str, name: str, release: tuple[str, bool] | None, condition: int, from_record: FromRecord
) -> Dependent | None:
    """Return the dependent `name` with its newest release."""
    if release is None or release[1]:
        return from_record(required, name)
    return {
        "required": required,
        "normalized": name,
        "always": [release[0]] if condition == 0 else [],
        "marker": [release[0]] if condition == 1 else [],
        "extra": [release[0]] if condition == 2 else [],
    }


def walk_latest_dependents(
    edges: Edges, required: str, depth: int | None, from_record: FromRecord
) -> Iterator[TransitiveDependent]:
    """Yield the projects whose newest releases lead to `required`, breadth first, each once at its least depth."""
    start = edges.number(required)
    if start is None:
        return
    seen, conditions, names = bytearray(edges.size), edges.conditions, ProjectNames(edges)
    seen[start] = 1
    level, steps = [start], 0
    while level and (depth is None or steps < depth):
        steps += 1
        following: list[int] = []
        for requireds, projects, lists in _batches(edges, edges.unseen(level, seen)):
            following += projects
            rows = zip(requireds, names.of(projects), edges.releases(projects), lists, strict=True)
            for of_one, name, release, of_edge in rows:
                if release is None or release[1]:
                    row = from_record(of_one, name)
                    if row is not None:
                        yield {"depth": steps, **row}
                    continue
                condition = conditions[of_edge]
                yield {
                    "depth": steps,
                    "required": of_one,
                    "normalized": name,
                    "always": [release[0]] if condition == 0 else [],
                    "marker": [release[0]] if condition == 1 else [],
                    "extra": [release[0]] if condition == 2 else [],
                }
        level = following


def _batches(
    edges: Edges, found: Iterable[tuple[int, Sequence[int], Sequence[int]]]
) -> Iterator[tuple[list[str], list[int], list[int]]]:
    """Join the results of several required projects: the required one's name for each result, projects, and lists."""
    requireds, projects, lists, at_once = list[str](), list[int](), list[int](), _FIRST
    for required, some, of_some in found:
        requireds += [edges.name(required)] * len(some)
        projects += some
        lists += of_some
        if len(projects) >= at_once:
            yield requireds, projects, lists
            requireds, projects, lists, at_once = [], [], [], _AT_ONCE
    if projects:
        yield requireds, projects, lists


def walk_dependents(
    edges: Edges,
    required: str,
    depth: int | None,
    from_record: FromRecord,
    of_all: Callable[[str], Iterator[Dependent]],
) -> Iterator[TransitiveDependent]:
    """Yield the projects any of whose releases lead to `required`, breadth first, each once at its least depth.

    `from_record` reads one dependent, and `of_all` reads all dependents of a project, by name. Only projects that were
    not found before are read, unless they are many.
    """
    start = edges.number(required)
    if start is None:
        return
    found, all_names = bytearray(edges.size), ProjectNames(edges)
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
            names = all_names.of(new)
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
    required = ((number, count) for number, count in edges.counts(prefix) if count)
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
        if len(best) == most and count <= best[0][0]:
            continue
        if is_known(name):  # a project can be required that was never uploaded
            (heappushpop if len(best) == most else heappush)(best, (count, -place, name))
    return [(name, count) for count, _, name in sorted(best, reverse=True)]
