"""Stored counts of distributions: live distributions by outcome, and failed reads by the kind of failure.

Code that changes an outcome, or whether a distribution is live, must do so within `counting_files`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, and_, func, select

from pypi_assets.catalog.coordination.claims import WORKER_DIED
from pypi_assets.catalog.counters import add_counts, read_counts
from pypi_assets.catalog.database import at_a_time, lock_rows
from pypi_assets.catalog.reads.read_outcomes import FAILED
from pypi_assets.catalog.tables import distribution_data, live_intervals

_LIVE = "live"


@contextmanager
def counting_files(connection: Connection, ids: Sequence[int]) -> Iterator[list[int]]:
    """Update the counts for changes that the block makes to the distributions `ids`, whose rows are locked first.

    The block must add the ids of new distributions to the list that it receives.
    """
    for chunk in at_a_time(sorted(ids)):
        lock_rows(connection, distribution_data, distribution_data.c.distribution_id.in_(chunk))
    before = _count(connection, ids)
    entered: list[int] = []
    yield entered
    after = _count(connection, [*ids, *entered])
    after.subtract(before)
    add_counts(connection, after)


def live_outcomes(connection: Connection) -> dict[str, int]:
    """Return the number of live distributions, by outcome."""
    return _below(read_counts(connection), _LIVE)


def failed_reads_by_kind(connection: Connection, *outcomes: str) -> dict[str, int]:
    """Return the number of distributions, live or not, with one of these failure `outcomes`, by the kind of error."""
    counts = read_counts(connection)
    found: Counter[str] = Counter()
    for outcome in outcomes:
        found.update(_below(counts, outcome))
    return dict(found)


def _below(counts: dict[str, int], start: str) -> dict[str, int]:
    return {name.removeprefix(f"{start}: "): count for name, count in counts.items() if name.startswith(f"{start}: ")}


def recount_files(connection: Connection) -> dict[str, int]:
    """Compute the counts from the rows, by name. This is slow on a large catalog."""
    data = distribution_data.c
    live = (
        select(data.outcome, func.count())
        .join(live_intervals, live_intervals.c.distribution_id == data.distribution_id)
        .where(live_intervals.c.end.is_(None))
        .group_by(data.outcome)
    )
    kind = func.coalesce(data.error_kind, WORKER_DIED)
    failed = select(data.outcome, kind, func.count()).where(data.outcome.in_(FAILED)).group_by(data.outcome, kind)
    found = {f"{_LIVE}: {outcome}": count for outcome, count in connection.execute(live)}
    return found | {f"{outcome}: {of_kind}": count for outcome, of_kind, count in connection.execute(failed)}


def _count(connection: Connection, ids: Sequence[int]) -> Counter[str]:
    data, live = distribution_data.c, live_intervals.c
    is_open = and_(live.distribution_id == data.distribution_id, live.end.is_(None))
    columns = (data.outcome, data.error_kind, live.start.is_not(None))
    joined = select(*columns).select_from(distribution_data).outerjoin(live_intervals, is_open)
    counts: Counter[str] = Counter()
    for chunk in at_a_time(ids):
        for outcome, kind, is_live in connection.execute(joined.where(data.distribution_id.in_(chunk))):
            if is_live:
                counts[f"{_LIVE}: {outcome}"] += 1
            if outcome in FAILED:
                counts[f"{outcome}: {kind or WORKER_DIED}"] += 1
    return counts
