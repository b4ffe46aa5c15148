"""Which files have a sha256, and from when to when they were live: also those that were removed."""

from dataclasses import dataclass

from sqlalchemy import or_, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.followed import answered_at
from pypi_assets.catalog.reads.past_generations import content_spans
from pypi_assets.catalog.tables import distributions, live_intervals, projects, releases


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that was live at some serial. `live` are the intervals, ascending: the serial since which it is live, and
    the one from which it no longer is, or None.
    """

    project: str
    normalized: str
    version: str
    filename: str
    live: tuple[tuple[int, int | None], ...]


def files_with_sha256(catalog: Catalog, serial: int, sha256: str) -> list[FoundFile]:
    """The files with this hash (64 hex digits, lower case) that were live at `serial` or before, by normalized name and
    filename.

    Intervals are as of `serial`: one that ends later has no end, and one that begins later is left out. Of a file that
    was replaced by another of its name, they are those of the content with this hash.
    """
    query = (
        select(
            projects.c.name,
            projects.c.normalized,
            releases.c.version,
            distributions.c.filename,
            live_intervals.c.start,
            live_intervals.c.end,
            distributions.c.id,
        )
        .select_from(distributions)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .join(live_intervals, live_intervals.c.distribution_id == distributions.c.id)
        .where(live_intervals.c.start <= serial)
        .order_by(projects.c.normalized, distributions.c.filename, live_intervals.c.start)
    )
    intervals: dict[tuple[str, str, str, str], list[tuple[int, int | None]]] = {}
    with catalog.read() as connection:
        query = query.where(answered_at(connection, projects.c.id, serial))
        spans = content_spans(connection, sha256)
        is_wanted = distributions.c.sha256 == sha256
        if spans:
            is_wanted = or_(is_wanted, distributions.c.id.in_(sorted(spans)))
        for project, normalized, version, filename, start, end, id_ in connection.execute(query.where(is_wanted)):
            for since, until in spans.get(id_, [(0, None)]):
                first, last = max(start, since), _earlier(end, until)
                if first <= serial and (last is None or first < last):
                    known = intervals.setdefault((project, normalized, version, filename), [])
                    known.append((first, None if last is None or last > serial else last))
    return [FoundFile(*file, tuple(live)) for file, live in intervals.items()]


def _earlier(one: int | None, other: int | None) -> int | None:
    """The lesser of two ends; None is none."""
    return min((end for end in (one, other) if end is not None), default=None)
