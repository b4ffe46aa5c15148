"""Whether the most-required projects can be installed at the end of a day, and what left one without a solution.

A day is compared with the day before: by its file where that is still right, else by resolving again. The result is the
same, so days can be made in any order, also at once. What the file of a day looks like is in `solvability_files.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import product

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.epochs import epoch_of
from pypi_assets.catalog.reports.moments import NotExactError, serial_of, time_of
from pypi_assets.catalog.reports.project_history import Entry
from pypi_assets.locks.environments import named_environment
from pypi_assets.resolve import blame
from pypi_assets.resolve.blame import CatalogHistory
from pypi_assets.resolve.provider import UnknownRequirementsError
from pypi_assets.resolve.questions import Question, ResolveError, parse_wanted
from pypi_assets.resolve.releases import ReleaseIndex, past_index
from pypi_assets.resolve.resolving import ResolutionLimitError, UnsolvableError, resolve
from pypi_assets.resolve.solvability_files import (
    FORMAT,
    Event,
    Failure,
    Limits,
    Moment,
    NewlySolvable,
    NewlyUnsolvable,
    Outcome,
    Place,
    Project,
    Solvability,
    SolvabilityError,
    read_day,
    write_day,
)
from pypi_assets.storage.store import Storage

PLACES = (
    Place("linux-x86_64-3.13", "3.13", "linux"),
    Place("linux-x86_64-3.11", "3.11", "linux"),
    Place("macos-arm64-3.13", "3.13", "macos"),
    Place("windows-x86_64-3.13", "3.13", "windows"),
)
"""The environments of a day. Their names stay as they are."""
LIMITS = Limits(steps=50_000, seconds=10.0)
MOST_SEARCHES = 50
_DUE_DAYS = 7
_SHOWN_FILES = 5
_ENVIRONMENTS = {one.name: named_environment(one.python, one.platform) for one in PLACES}
_Key = tuple[str, str]
"""A project, and the name of an environment."""
_Outcomes = dict[_Key, Outcome]


def publish_day(
    catalog: Catalog,
    storage: Storage,
    required: Sequence[tuple[str, int]],
    day: date,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[Solvability, int]:
    """Makes the file of a day; returns what is in it, and its size in bytes. What it is made of is as for `solve_day`.

    Where nothing changed, the file of before is written again.
    """
    try:
        stored = read_day(storage, day - timedelta(days=1))
    except SolvabilityError:
        stored = None
    made = solve_day(catalog, required, day, stored, progress=progress)
    return made, write_day(storage, made)


def solve_day(
    catalog: Catalog,
    required: Sequence[tuple[str, int]],
    day: date,
    stored: Solvability | None = None,
    *,
    limits: Limits = LIMITS,
    most_searches: int = MOST_SEARCHES,
    progress: Callable[[int], None] = lambda _: None,
) -> Solvability:
    """Resolves each of `required` (normalized names, with how many projects require them) at the end of a day, in each
    environment, and compares with the day before: with `stored` as far as that is still right.

    `progress` gets how many resolutions were made. Raises NotExactError.
    """
    now, before = moment_of(catalog, day), _moment_before(catalog, day)
    names = [name for name, _ in required]
    keys = [(name, place.name) for place, name in product(PLACES, names)]  # what one reads serves the next
    found = _solved(catalog, now, keys, limits, progress)
    was: _Outcomes = {}
    if before is not None:
        was = _known(stored, before, limits)
        was |= _solved(
            catalog, before, [key for key in keys if key not in was], limits, lambda count: progress(len(found) + count)
        )
    both = [key for key in product(names, _ENVIRONMENTS) if key in was]
    lost = [key for key in both if was[key].is_solvable and found[key].has_no_solution]
    gained = [key for key in both if was[key].has_no_solution and found[key].is_solvable]
    searched: dict[_Key, tuple[Event, ...]] = {}
    if before is not None:
        searched = {key: _events(catalog, key, before, now, limits) for key in lost[:most_searches]}
    return Solvability(
        format=FORMAT,
        moment=now,
        before=before,
        limits=limits,
        environments=PLACES,
        projects=tuple(
            Project(name, count, {place: found[name, place] for place in _ENVIRONMENTS}) for name, count in required
        ),
        newly_unsolvable=tuple(NewlyUnsolvable(*key, was[key].version or "", searched.get(key)) for key in lost),
        newly_solvable=tuple(NewlySolvable(*key, found[key].version or "") for key in gained),
    )


def due_days(catalog: Catalog, storage: Storage, today: date) -> list[date]:
    """Those of the last days before `today` that can be made and have no file that is whole, or of which the catalog
    has come to know more; the newest last.
    """
    return [day for ago in range(_DUE_DAYS, 0, -1) if _is_due(catalog, storage, day := today - timedelta(days=ago))]


def _is_due(catalog: Catalog, storage: Storage, day: date) -> bool:
    try:
        moment = moment_of(catalog, day)
    except CatalogError:
        return False
    try:
        return read_day(storage, day).moment.serial != moment.serial
    except SolvabilityError:
        return True


def moment_of(catalog: Catalog, day: date) -> Moment:
    """The serial at the end of a day (UTC), and what its epoch is now.

    Raises NotExactError where the catalog has no exact answer there, and for a day that is not over.
    """
    try:
        serial = serial_of(catalog, datetime.combine(day, time.max, UTC))
    except NotExactError as error:
        raise NotExactError(f"there is no answer about {day}: {error}") from error
    with catalog.read() as connection:
        if time_of(connection, serial) is None:
            raise NotExactError(f"there is no answer about {day}: no event of the index up to then is known")
        return Moment(day, serial, epoch_of(connection, serial))


def _moment_before(catalog: Catalog, day: date) -> Moment | None:
    try:
        return moment_of(catalog, day - timedelta(days=1))
    except NotExactError:
        return None


def _known(stored: Solvability | None, before: Moment, limits: Limits) -> _Outcomes:
    """The outcomes of the day before that are in its file, unless something was learnt since."""
    if stored is None or (stored.moment, stored.limits, stored.environments) != (before, limits, PLACES):
        return {}
    return {(one.name, place): outcome for one in stored.projects for place, outcome in one.outcomes.items()}


def _solved(
    catalog: Catalog, moment: Moment, keys: Iterable[_Key], limits: Limits, progress: Callable[[int], None]
) -> _Outcomes:
    index, found = past_index(catalog, moment.serial), _Outcomes()
    for key in keys:
        found[key] = outcome_of(index, key, limits)
        progress(len(found))
    return found


def outcome_of(index: ReleaseIndex, key: tuple[str, str], limits: Limits) -> Outcome:
    """What a project resolves to in the environment of that name, alone and as pip does it."""
    try:
        found = resolve(index, _question(key), most_steps=limits.steps, most_seconds=limits.seconds)
    except UnsolvableError as error:
        steps = error.proof.steps
        return Outcome(failure=Failure.UNSOLVABLE, proof=tuple(dict.fromkeys((steps[0], steps[-1]))))
    except UnknownRequirementsError as error:
        return Outcome(failure=Failure.UNKNOWN_REQUIREMENTS, proof=(str(error),))
    except ResolutionLimitError as error:
        return Outcome(failure=Failure.LIMIT, proof=(str(error),))
    except ResolveError as error:  # a name that no requirement can have
        return Outcome(failure=Failure.UNSOLVABLE, proof=(str(error),))
    [root] = found.roots
    return Outcome(version=found.pins[root], pins=found.pins)


def _question(key: _Key) -> Question:
    project, place = key
    return Question((parse_wanted(project),), _ENVIRONMENTS[place])


def _events(catalog: Catalog, key: _Key, before: Moment, now: Moment, limits: Limits) -> tuple[Event, ...]:
    """What happened where the solution was lost; nothing where the search takes too long."""
    history = CatalogHistory(catalog)
    outcomes = blame.Outcomes(history, _question(key), most_steps=limits.steps, most_seconds=limits.seconds)
    try:
        change = blame.blame(outcomes, before.serial, now.serial, blame.Outcome.ends_like).change
    except ResolutionLimitError:
        return ()
    return () if change is None else tuple(_event(project, entry) for project, entry in history.entries(change))


def _event(project: str, entry: Entry) -> Event:
    files = entry.filenames or (*entry.live, *entry.away, *entry.yanked, *entry.unyanked)
    at = None if entry.at is None else datetime.fromtimestamp(entry.at, UTC)
    return Event(entry.serial, at, project, entry.kind, entry.text, tuple(files[:_SHOWN_FILES]), len(files))
