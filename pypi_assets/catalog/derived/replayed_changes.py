"""Find the past serials whose answers change when journal records are replayed.

The shown state of all files is read before and after the records are stored, and compared. So no kind of record can be
forgotten here.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from pypi_assets.catalog.database import at_a_time, sent_rows
from pypi_assets.catalog.derived.project_state import Interval
from pypi_assets.catalog.derived.stored_files import SHOWN_FACTS, intervals_of_files
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    followed_intervals,
    live_intervals,
    projects,
    yanked_intervals,
)

_FACTS = ("release_id", "generation", *SHOWN_FACTS)
_READ = (
    *("outcome", "error_kind", "extractor_version", "metadata_version", "requires_python", "requires_dist_id"),
    *("modules_id", "details", "shared_details_id"),
)


@dataclass(frozen=True, slots=True)
class FollowedSpan(Interval):
    """The serials at which a project is followed, and the first of them that has an answer."""

    exact_from: int | None


@dataclass(frozen=True, slots=True)
class ShownFiles:
    """The files and projects as answers show them, by their ids.

    Facts and names are shown at each serial at which a file is live. The status of a project is not included, since it
    is derived from events.
    """

    facts: Mapping[int, tuple[Any, ...]]
    live: Mapping[int, tuple[Interval, ...]]
    yanked: Mapping[int, tuple[Interval, ...]]
    names: Mapping[int, str]
    followed: Mapping[int, tuple[FollowedSpan, ...]]


def shown_files(
    connection: Connection, places: Collection[tuple[int, str]], of_projects: Collection[int]
) -> ShownFiles:
    """Return the shown state of projects, and of files given as (project id, filename)."""
    files, read = distributions.c, distribution_data.c
    sent, is_sent = sent_rows(connection, (files.project_id, files.filename), sorted(places))
    query = select(files.id, *(files[name] for name in _FACTS), *(read[name] for name in _READ))
    joined = sent.join(distributions, is_sent).outerjoin(distribution_data, read.distribution_id == files.id)
    facts = {row[0]: tuple(row[1:]) for row in connection.execute(query.select_from(joined))}
    ids = sorted(facts)
    names: dict[int, str] = {}
    followed: dict[int, tuple[FollowedSpan, ...]] = {}
    c, span = projects.c, followed_intervals.c
    for chunk in at_a_time(sorted(of_projects)):
        named = select(c.id, c.name).where(c.id.in_(chunk))
        names |= {row.id: row.name for row in connection.execute(named)}
        spans = select(span.project_id, span.start, span.end, span.exact_from).where(span.project_id.in_(chunk))
        for id_, start, end, exact_from in connection.execute(spans.order_by(span.project_id, span.start)):
            followed[id_] = (*followed.get(id_, ()), FollowedSpan(start, end, exact_from))
    live, yanked = (intervals_of_files(connection, table, ids) for table in (live_intervals, yanked_intervals))
    return ShownFiles(facts, live, yanked, names, followed)


def changed_serials(before: ShownFiles, after: ShownFiles) -> Iterator[int]:
    """Yield, in any order, the serials from which files are shown differently than before."""
    for id_, facts in after.facts.items():
        live = before.live.get(id_, ()), after.live.get(id_, ())
        yield from _differing(*live)
        yield from _differing(before.yanked.get(id_, ()), after.yanked.get(id_, ()))
        if before.facts.get(id_, facts) != facts:
            yield from (interval.start for intervals in live for interval in intervals)
    for id_, spans in after.followed.items():
        yield from _differing(before.followed.get(id_, ()), spans)
        exact = ({span.exact_from for span in some} for some in (before.followed.get(id_, ()), spans))
        yield from (serial for serial in set.symmetric_difference(*exact) if serial is not None)


def renamed_projects(before: ShownFiles, after: ShownFiles) -> list[int]:
    """Return the ids of the projects whose name has changed."""
    return sorted(id_ for id_, name in before.names.items() if after.names.get(id_) != name)


def _differing(before: Collection[Interval], after: Collection[Interval]) -> Iterator[int]:
    """Yield the serials at which an interval begins or ends in only one of the two."""
    edges = [
        {(edge, getattr(interval, edge)) for interval in intervals for edge in ("start", "end")}
        for intervals in (before, after)
    ]
    yield from (serial for _, serial in edges[0] ^ edges[1] if serial is not None)
