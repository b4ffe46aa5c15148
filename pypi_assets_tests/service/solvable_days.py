"""Days of solvability in a storage, for tests of their display."""

from datetime import date, timedelta

import msgspec

from pypi_assets.resolve.solvability import Failure, Moment, Outcome, Project, Solvability, write_day
from pypi_assets.storage.store import Storage
from pypi_assets_tests.resolve.test_solvability_files import DAY, MADE


def write_days(storage: Storage, count: int, gap: int | None = None) -> None:
    """Write MADE and the `count` days before it, except the day `gap` days before. Each day has one more loss than the
    previous one.
    """
    for ago in range(count, 0, -1):
        if ago != gap:
            write_day(storage, _day(DAY - timedelta(days=ago), count - ago))
    write_day(storage, MADE)


def _day(day: date, failures: int) -> Solvability:
    names = [place.name for place in MADE.environments]
    outcomes = [
        Outcome(failure=Failure.UNSOLVABLE, proof=("Because.",)) if n < failures else Outcome("1") for n in range(40)
    ]
    projects = tuple(Project(f"p{n}", 40 - n, dict.fromkeys(names, one)) for n, one in enumerate(outcomes))
    return msgspec.structs.replace(
        MADE,
        moment=Moment(day, 1_000, 1_000),
        before=None,
        projects=MADE.projects + projects,
        newly_unsolvable=MADE.newly_unsolvable[:failures],
        newly_solvable=(),
    )
