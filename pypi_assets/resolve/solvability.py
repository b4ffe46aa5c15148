"""Check whether the most-required projects can be installed at the end of a day, and find what broke the others.

Each day is a file below `solvability/` in the storage, described in docs/formats.md. A put is atomic, so a file is
always complete. A day is compared with the day before: by the file of that day if it is still correct, else by
resolving again. Both give the same result, so days can be made in any order, also at the same time.
"""

import gzip
import re
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import product

import msgspec

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.epochs import epoch_of
from pypi_assets.catalog.reports.moments import InexactSerialError, serial_of, time_of
from pypi_assets.catalog.reports.project_history import HistoryItem
from pypi_assets.errors import ExpectedError
from pypi_assets.locks.environments import named_environment
from pypi_assets.resolve import blame
from pypi_assets.resolve.blame import CatalogHistory
from pypi_assets.resolve.questions import ResolutionQuestion, ResolveError, parse_wanted
from pypi_assets.resolve.releases import ReleaseIndex, past_index
from pypi_assets.resolve.resolving import ResolutionLimitError, UnsolvableError, resolve
from pypi_assets.resolve.solver_data import UnknownRequirementsError
from pypi_assets.storage.store import ObjectNotFoundError, Storage, StoredObject
from pypi_assets.storage.sweeping import is_older, sweep_objects

FORMAT = 1
SOLVABILITY = "solvability"
_NO_DAY = "no day of solvability is published yet: materialize the asset `solvability` in Dagster"
_NAME = re.compile(rf"{SOLVABILITY}/([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})\.json\.gz")


class SolvabilityError(ExpectedError):
    """The file of a day is missing or cannot be read. The message has the reason, and the remedy."""


class NoDayError(SolvabilityError):
    """The file of a day is missing."""


class Failure(StrEnum):
    """The reason why nothing was chosen. With LIMIT, it is unknown whether there is a solution."""

    UNSOLVABLE = "unsolvable"
    UNKNOWN_REQUIREMENTS = "unknown requirements"
    LIMIT = "limit"


class Place(msgspec.Struct, frozen=True):
    """An environment: its name, the CPython version, and the platform, as `pypi-assets resolve` accepts them."""

    name: str
    python: str
    platform: str


class Moment(msgspec.Struct, frozen=True):
    """The end of a day (UTC), as a serial with its epoch."""

    day: date
    serial: int
    epoch: int


class Limits(msgspec.Struct, frozen=True):
    """The limits of one resolution."""

    steps: int
    seconds: float


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The chosen `version` of the project with all `pins` by normalized name, or the `failure`.

    `proof` has the first and the last sentence of the proof of a failure.
    """

    version: str | None = None
    pins: Mapping[str, str] = {}
    failure: Failure | None = None
    proof: tuple[str, ...] = ()

    @property
    def is_solvable(self) -> bool:
        return self.failure is None

    @property
    def has_no_solution(self) -> bool:
        """Check whether it is known that nothing can be installed."""
        return self.failure in {Failure.UNSOLVABLE, Failure.UNKNOWN_REQUIREMENTS}


class Project(msgspec.Struct, frozen=True):
    """A project (normalized), its number of dependents, and its outcomes by the name of the environment."""

    name: str
    dependents: int
    outcomes: Mapping[str, Outcome]


class Event(msgspec.Struct, frozen=True):
    """An event of a project at a serial, with `kind` and `text` as in its history.

    `filenames` are the first of its files, and `files` is their number. `at` is None if there was no event.
    """

    serial: int
    at: datetime | None
    project: str
    kind: str
    text: str
    filenames: tuple[str, ...]
    files: int


class NewlyUnsolvable(msgspec.Struct, frozen=True):
    """A solution that was lost since the day before, when `version` was chosen.

    `events` are the cause, mostly a single event. It is None if there were too many losses to search for their events,
    and empty if the search took too long.
    """

    project: str
    environment: str
    version: str
    events: tuple[Event, ...] | None


class NewlySolvable(msgspec.Struct, frozen=True):
    """A solution that did not exist on the day before. `version` is chosen now."""

    project: str
    environment: str
    version: str


class Solvability(msgspec.Struct, frozen=True):
    """A day. `before` is the day that it was compared with, or None if the catalog has no exact answer there."""

    format: int
    moment: Moment
    before: Moment | None
    limits: Limits
    environments: tuple[Place, ...]
    projects: tuple[Project, ...]
    newly_unsolvable: tuple[NewlyUnsolvable, ...]
    newly_solvable: tuple[NewlySolvable, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of outcomes of each kind. There is one outcome for each project and environment."""
        outcomes = [outcome for one in self.projects for outcome in one.outcomes.values()]
        return {
            "solvable": sum(one.is_solvable for one in outcomes),
            **{str(kind): sum(one.failure is kind for one in outcomes) for kind in Failure},
        }

    @property
    def without_search(self) -> int:
        """Return the number of lost solutions whose events were not searched for."""
        return sum(one.events is None for one in self.newly_unsolvable)


def solvability_path(day: date) -> str:
    """Return the path of a day's file in the storage."""
    return f"{SOLVABILITY}/{day.isoformat()}.json.gz"


def day_of(path: str) -> date | None:
    """Return the day whose file is at `path`, or None for another file."""
    match = _NAME.fullmatch(path)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def stored_days(storage: Storage) -> list[date]:
    """Return the days that have a file, ascending."""
    return sorted(day for stored in storage.list(SOLVABILITY) if (day := day_of(stored.path)))


def write_day(storage: Storage, solvability: Solvability) -> int:
    """Publish a day, replacing its file if there is one. Return the size of the file in bytes."""
    content = gzip.compress(msgspec.json.encode(solvability), mtime=0)
    storage.put(solvability_path(solvability.moment.day), content)
    return len(content)


def read_day(storage: Storage, day: date) -> Solvability:
    """Return a published day. Raises SolvabilityError."""
    path = solvability_path(day)
    try:
        content = storage.get(path)
    except ObjectNotFoundError:
        raise NoDayError(_absence(storage, day)) from None
    try:
        text = gzip.decompress(content)
        found = msgspec.json.decode(text, type=_AnyFormat).format
        if found != FORMAT:
            raise SolvabilityError(
                f"{storage.uri(path)} has format {found}, but this version reads format {FORMAT}: use the version that"
                " wrote it, or make the day again"
            )
        solvability = msgspec.json.decode(text, type=Solvability)
    except (msgspec.DecodeError, OSError, EOFError, zlib.error) as error:
        raise SolvabilityError(f"{storage.uri(path)} is corrupt ({error}): make the day again") from error
    if solvability.moment.day != day:
        raise SolvabilityError(f"{storage.uri(path)} contains {solvability.moment.day}: make the day again")
    names = {place.name for place in solvability.environments}
    if lacking := [one.name for one in solvability.projects if one.outcomes.keys() != names]:
        raise SolvabilityError(f"{storage.uri(path)} lacks outcomes of {lacking[0]}: make the day again")
    return solvability


def read_newest(storage: Storage) -> Solvability:
    """Return the newest published day. Raises SolvabilityError."""
    days = stored_days(storage)
    if not days:
        raise NoDayError(_NO_DAY)
    return read_day(storage, days[-1])


class _AnyFormat(msgspec.Struct):
    format: int


def _absence(storage: Storage, day: date) -> str:
    days = stored_days(storage)
    if not days:
        return _NO_DAY
    known = f"there are {len(days)} days from {days[0]} to {days[-1]}" if len(days) > 1 else f"there is only {days[0]}"
    return f"solvability of {day} is not published, or has expired; {known}"


def clean_days(storage: Storage, before: float, *, dry_run: bool = False) -> list[StoredObject]:
    """Delete days that were written before `before` (unix seconds), and return their files, by day.

    With `dry_run`, nothing is deleted. Deleting is safe: making a day resolves the day before again if its file is
    missing.
    """
    found = [one for one in storage.list(SOLVABILITY) if day_of(one.path) and is_older(one, before)]
    return sweep_objects(storage, found, dry_run=dry_run)


class DaySummary(msgspec.Struct, frozen=True):
    """The summary of a day: its serial, and the number of resolutions by outcome, one for each project and environment.

    If its file cannot be read, `problem` has the reason and nothing is counted.
    """

    day: date
    serial: int | None
    projects: int
    environments: int
    outcomes: Mapping[str, int]
    newly_unsolvable: int
    newly_solvable: int
    problem: str | None = None


class StoredDays:
    """The days in the storage that `opened` returns. It is thread-safe.

    The storage is opened on first use.
    """

    def __init__(self, opened: Callable[[], Storage]) -> None:
        self._opened = opened
        self._storage: Storage | None = None
        self._known: dict[date, tuple[int, datetime, DaySummary]] = {}
        self._using = threading.Lock()

    def read(self, day: date | None) -> Solvability:
        """Return a published day, or the newest one for None. Raises SolvabilityError and StorageError."""
        with self._using:
            storage = self._open()
        return read_newest(storage) if day is None else read_day(storage, day)

    def summaries(self, most: int) -> list[DaySummary]:
        """Return the last `most` days that have a file, ascending. Raises StorageError."""
        with self._using:
            storage = self._open()
            stored = {day: one for one in storage.list(SOLVABILITY) if (day := day_of(one.path))}
            self._known = {day: known for day, known in self._known.items() if day in stored}
            return [self._summary(storage, day, stored[day]) for day in sorted(stored)[-most:]]

    def _open(self) -> Storage:
        self._storage = self._storage or self._opened()
        return self._storage

    def _summary(self, storage: Storage, day: date, stored: StoredObject) -> DaySummary:
        known = self._known.get(day)
        if known is None or known[:2] != (stored.size, stored.last_modified):
            known = self._known[day] = stored.size, stored.last_modified, _summarized(storage, day)
        return known[2]


def _summarized(storage: Storage, day: date) -> DaySummary:
    try:
        made = read_day(storage, day)
    except SolvabilityError as error:
        return DaySummary(day, None, 0, 0, {}, 0, 0, str(error))
    return DaySummary(
        day=day,
        serial=made.moment.serial,
        projects=len(made.projects),
        environments=len(made.environments),
        outcomes=made.counts,
        newly_unsolvable=len(made.newly_unsolvable),
        newly_solvable=len(made.newly_solvable),
    )


PLACES = (
    Place("linux-x86_64-3.13", "3.13", "linux"),
    Place("linux-x86_64-3.11", "3.11", "linux"),
    Place("macos-arm64-3.13", "3.13", "macos"),
    Place("windows-x86_64-3.13", "3.13", "windows"),
)
"""The environments of a day. Their names must not change."""
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
    """Make the file of a day with `solve_day`. Return its content, and its size in bytes.

    If nothing changed, an equal file is written.
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
    """Resolve each of `required` at the end of a day in each environment, and compare the outcomes with the day before.

    `required` has normalized names with numbers of dependents. Outcomes of the day before come from `stored` if they
    are still correct. `progress` is called with the number of resolutions so far. Raises InexactSerialError.
    """
    now, before = moment_of(catalog, day), _moment_before(catalog, day)
    names = [name for name, _ in required]
    keys = [(name, place.name) for place, name in product(PLACES, names)]  # one environment caches data for the next
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
    """Return the days to make, the newest last.

    These are recent days before `today` for which the catalog has an answer, but which have no valid file, or a file
    made before the catalog learned more.
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
    """Return the serial at the end of a day (UTC), with its current epoch.

    Raises InexactSerialError if the catalog has no exact answer there, or if the day is not over.
    """
    try:
        serial = serial_of(catalog, datetime.combine(day, time.max, UTC))
    except InexactSerialError as error:
        raise InexactSerialError(f"there is no answer about {day}: {error}") from error
    with catalog.read() as connection:
        if time_of(connection, serial) is None:
            raise InexactSerialError(f"there is no answer about {day}: no event of the index up to then is known")
        return Moment(day, serial, epoch_of(connection, serial))


def _moment_before(catalog: Catalog, day: date) -> Moment | None:
    try:
        return moment_of(catalog, day - timedelta(days=1))
    except InexactSerialError:
        return None


def _known(stored: Solvability | None, before: Moment, limits: Limits) -> _Outcomes:
    """Return the outcomes in the file of the day before, or {} if the catalog has learned more since."""
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
    """Return the outcome of a project in the environment of that name, resolved alone, as pip does."""
    try:
        found = resolve(index, _question(key), most_steps=limits.steps, most_seconds=limits.seconds)
    except UnsolvableError as error:
        steps = error.proof.steps
        return Outcome(failure=Failure.UNSOLVABLE, proof=tuple(dict.fromkeys((steps[0], steps[-1]))))
    except UnknownRequirementsError as error:
        return Outcome(failure=Failure.UNKNOWN_REQUIREMENTS, proof=(str(error),))
    except ResolutionLimitError as error:
        return Outcome(failure=Failure.LIMIT, proof=(str(error),))
    except ResolveError as error:  # a project name that is not valid in requirements
        return Outcome(failure=Failure.UNSOLVABLE, proof=(str(error),))
    [root] = found.roots
    return Outcome(version=found.pins[root], pins=found.pins)


def _question(key: _Key) -> ResolutionQuestion:
    project, place = key
    return ResolutionQuestion((parse_wanted(project),), _ENVIRONMENTS[place])


def _events(catalog: Catalog, key: _Key, before: Moment, now: Moment, limits: Limits) -> tuple[Event, ...]:
    """Return the events that caused a lost solution, or () if the search takes too long."""
    history = CatalogHistory(catalog)
    outcomes = blame.OutcomeHistory(history, _question(key), most_steps=limits.steps, most_seconds=limits.seconds)
    try:
        change = blame.blame(outcomes, before.serial, now.serial, blame.ResolutionOutcome.ends_like).change
    except ResolutionLimitError:
        return ()
    return () if change is None else tuple(_event(project, entry) for project, entry in history.entries(change))


def _event(project: str, entry: HistoryItem) -> Event:
    files = entry.filenames or (*entry.live, *entry.away, *entry.yanked, *entry.unyanked)
    at = None if entry.at is None else datetime.fromtimestamp(entry.at, UTC)
    return Event(entry.serial, at, project, entry.kind, entry.text, tuple(files[:_SHOWN_FILES]), len(files))
