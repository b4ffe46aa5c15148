"""Past visits of a project: the result of each, and the differences between the files that two of them saw."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import Connection, Select, func, select

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.derived.visits import VisitStatus
from pypi_assets.catalog.observed.projects import CatalogProject
from pypi_assets.catalog.observed.snapshots import read_snapshots, summarize_snapshots
from pypi_assets.catalog.tables import visit_statuses, visits

_UNENDED = frozenset({VisitStatus.CREATED, VisitStatus.ONGOING})


@dataclass(frozen=True, slots=True)
class PastVisit:
    """One visit. Times are unix seconds. `outcome` is its latest status; `ended_at` is None while it is ongoing.

    `attempt` counts the visits of the project for one `scope`, a range or a full crawl, as far back as the log reaches.
    `page_serial` is the page's own. Events were stored up to `seen_through` when the page was judged. `snapshot` is the
    sha256 of the page's snapshot, and `files` the number of its files. They are None if no page was seen; `page_serial`
    is also None for an unexplained 404. `text` describes the error.
    """

    visit: int
    kind: str
    scope: str
    attempt: int
    started_at: float
    ended_at: float | None
    outcome: str
    page_serial: int | None
    seen_through: int | None
    snapshot: str | None
    files: int | None
    text: str | None


@dataclass(frozen=True, slots=True)
class FileDifference:
    """A file that differs between two snapshots. `change` is one of came, went, other hash, yanked, unyanked."""

    filename: str
    change: str
    sha256_before: str | None
    sha256_after: str | None


def deleted_visits(numbers: Sequence[int]) -> int:
    """Return how many visits of a project are no longer in the log. `numbers` has the numbers of the visits in it."""
    return max(numbers, default=0) - len(numbers)


def count_deleted_visits(connection: Connection, project: CatalogProject) -> int:
    """Return how many visits of a project are no longer in the log. The first visits of a catalog are never deleted."""
    query = select(func.coalesce(func.max(visits.c.visit), 0), func.count()).where(visits.c.project_id == project.id)
    last, count = connection.execute(query).one()
    return int(last - count)


def deleted_visits_sentence(deleted: int) -> str | None:
    """Return a sentence about the deleted visits of a project; None if there are none."""
    return (
        f"{deleted} earlier visits are no longer in the log, which PYPI_ASSETS_VISITS_KEPT_DAYS limits"
        if deleted
        else None
    )


def past_visits(connection: Connection, project: CatalogProject) -> list[PastVisit]:
    """Return the visits of `project` that are in the log, in the order in which they began. The newest always is."""
    rows = connection.execute(
        select(visits, visit_statuses)
        .join(visit_statuses, visit_statuses.c.visit_id == visits.c.id)
        .where(visits.c.project_id == project.id)
        .order_by(visits.c.visit, visit_statuses.c.id)
    ).all()
    shown = summarize_snapshots(connection, {row.snapshot_id for row in rows} - {None})
    attempts: Counter[str] = Counter()
    found = []
    for _, group in groupby(rows, lambda row: row.visit):
        statuses = list(group)
        latest = statuses[-1]
        seen = next((row for row in reversed(statuses) if row.snapshot_id is not None), None)
        snapshot = None if seen is None else shown[seen.snapshot_id]
        attempts[latest.workload] += 1
        found.append(
            PastVisit(
                visit=latest.visit,
                kind=latest.kind,
                scope=latest.workload,
                attempt=attempts[latest.workload],
                started_at=latest.started_at,
                ended_at=None if latest.status in _UNENDED else latest.at,
                outcome=latest.status,
                page_serial=None if seen is None else seen.page_serial,
                seen_through=None if seen is None else seen.seen_through,
                snapshot=None if snapshot is None else snapshot.sha256,
                files=None if snapshot is None else snapshot.files,
                text=latest.text,
            )
        )
    return found


def compare_visits(connection: Connection, project: CatalogProject, before: int, after: int) -> list[FileDifference]:
    """Return the differences between the files that the visits `before` and `after` saw, by filename.

    Raises CatalogError if a visit does not exist or saw no page.
    """
    return _differences(_shown_files(connection, project, before), _shown_files(connection, project, after))


def differences_since(connection: Connection, project: CatalogProject, before: int, after: int) -> list[FileDifference]:
    """Return the differences between the last page that was seen up to the visit `before`, and the visit `after`.

    Without an earlier page, all files came. There are none if the visit `after` saw no page.
    """
    was, now = (_last_snapshot(connection, project, *limits) for limits in ((0, before), (after - 1, after)))
    if now is None:
        return []
    found = dict(read_snapshots(connection, {now, *([] if was is None else [was])}))
    return _differences({} if was is None else found[was].entries, found[now].entries)


def _last_snapshot(connection: Connection, project: CatalogProject, after: int, last: int) -> int | None:
    """Return the snapshot of the newest visit with a page, among those with numbers above `after` up to `last`."""
    query = (
        select(visit_statuses.c.snapshot_id)
        .join(visits, visits.c.id == visit_statuses.c.visit_id)
        .where(visits.c.project_id == project.id, visits.c.visit > after, visits.c.visit <= last)
        .where(visit_statuses.c.snapshot_id.is_not(None))
        .order_by(visits.c.visit.desc(), visit_statuses.c.id.desc())
    )
    return connection.scalar(query.limit(1))


def _differences(
    was: Mapping[str, tuple[str | None, bool]], now: Mapping[str, tuple[str | None, bool]]
) -> list[FileDifference]:
    found = []
    for filename in sorted(was.keys() | now.keys()):
        sha256_before, yanked_before = was.get(filename, (None, False))
        sha256_after, yanked_after = now.get(filename, (None, False))
        changed = []
        if filename not in was:
            changed.append("came")
        elif filename not in now:
            changed.append("went")
        else:
            if sha256_before != sha256_after:
                changed.append("other hash")
            if yanked_before != yanked_after:
                changed.append("yanked" if yanked_after else "unyanked")
        found += [FileDifference(filename, change, sha256_before, sha256_after) for change in changed]
    return found


def _newest_visit(project: CatalogProject) -> Select[tuple[int | None]]:
    return select(func.max(visits.c.visit)).where(visits.c.project_id == project.id)


def _shown_files(connection: Connection, project: CatalogProject, visit: int) -> Mapping[str, tuple[str | None, bool]]:
    statuses = connection.execute(
        select(visit_statuses.c.status, visit_statuses.c.snapshot_id)
        .join(visits, visits.c.id == visit_statuses.c.visit_id)
        .where(visits.c.project_id == project.id, visits.c.visit == visit)
        .order_by(visit_statuses.c.id)
    ).all()
    listed = f"see `pypi-assets visits {project.name}`"
    if not statuses and visit < (connection.scalar(_newest_visit(project)) or 0):
        raise CatalogError(f"visit {visit} of {project.name} is older than the log of visits and was deleted; {listed}")
    if not statuses:
        raise CatalogError(f"{project.name} has no visit {visit}; {listed}")
    seen = [row.snapshot_id for row in statuses if row.snapshot_id is not None]
    if not seen:
        raise CatalogError(f"visit {visit} of {project.name} saw no page ({statuses[-1].status}); {listed}")
    [(_, snapshot)] = read_snapshots(connection, seen[-1:])
    return snapshot.entries
