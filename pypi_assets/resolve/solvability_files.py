"""The file of a day: which of the most-required projects could be installed at its end, and what changed that.

It lies below `solvability/` of the storage, and is described in docs/formats.md. A put is seen whole or not at all, so
a file that is there is whole.
"""

import gzip
import re
import zlib
from collections.abc import Mapping
from datetime import date, datetime
from enum import StrEnum

import msgspec

from pypi_assets.errors import ExpectedError
from pypi_assets.storage.store import NotFoundError, Storage, StoredObject
from pypi_assets.storage.sweeping import is_older, sweep_objects

FORMAT = 1
SOLVABILITY = "solvability"
_NO_DAY = "solvability of no day was published yet: materialize the asset `solvability` in Dagster"
_NAME = re.compile(rf"{SOLVABILITY}/([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})\.json\.gz")


class SolvabilityError(ExpectedError):
    """There is no file of a day, or it cannot be read; the text has the reason, and what to do."""


class NoDayError(SolvabilityError):
    """There is no file of a day."""


class Failure(StrEnum):
    """Why nothing was chosen. LIMIT: the resolution took too long, and it is not known whether there is a solution."""

    UNSOLVABLE = "unsolvable"
    UNKNOWN_REQUIREMENTS = "unknown requirements"
    LIMIT = "limit"


class Place(msgspec.Struct, frozen=True):
    """An environment: its name, the version of CPython, and the platform, as `pypi-assets resolve` takes them."""

    name: str
    python: str
    platform: str


class Moment(msgspec.Struct, frozen=True):
    """The end of a day (UTC): the serial that it means, and the epoch of that."""

    day: date
    serial: int
    epoch: int


class Limits(msgspec.Struct, frozen=True):
    """How many steps and seconds one resolution may take."""

    steps: int
    seconds: float


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The chosen `version` of the project, and `pins` of all by normalized name; or the `failure`, with the first and
    the last sentence of its proof.
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
        """Whether it is known that nothing can be installed."""
        return self.failure in {Failure.UNSOLVABLE, Failure.UNKNOWN_REQUIREMENTS}


class Project(msgspec.Struct, frozen=True):
    """A project (normalized), how many others require it, and its outcome by the name of the environment."""

    name: str
    dependents: int
    outcomes: Mapping[str, Outcome]


class Event(msgspec.Struct, frozen=True):
    """What happened to a project at a serial: `kind` and `text` as in its history; `filenames` are the first of
    `files`. `at` is None where there was no event.
    """

    serial: int
    at: datetime | None
    project: str
    kind: str
    text: str
    filenames: tuple[str, ...]
    files: int


class NewlyUnsolvable(msgspec.Struct, frozen=True):
    """A solution that was lost since the day before; `version` was chosen then.

    `events` did it: mostly one. None where there were too many losses to search for all; empty where the search took
    too long.
    """

    project: str
    environment: str
    version: str
    events: tuple[Event, ...] | None


class NewlySolvable(msgspec.Struct, frozen=True):
    """A solution that the day before did not have; `version` is chosen now."""

    project: str
    environment: str
    version: str


class Solvability(msgspec.Struct, frozen=True):
    """A day. `before` is the one that it was compared with; None where the catalog has no exact answer there."""

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
        """How many outcomes there are of each kind, one a project and environment."""
        outcomes = [outcome for one in self.projects for outcome in one.outcomes.values()]
        return {
            "solvable": sum(one.is_solvable for one in outcomes),
            **{str(kind): sum(one.failure is kind for one in outcomes) for kind in Failure},
        }

    @property
    def without_search(self) -> int:
        """How many lost solutions there are whose events were not searched for."""
        return sum(one.events is None for one in self.newly_unsolvable)


def solvability_path(day: date) -> str:
    """Where the file of a day lies in the storage."""
    return f"{SOLVABILITY}/{day.isoformat()}.json.gz"


def day_of(path: str) -> date | None:
    """The day whose file lies at `path`; None for another file."""
    match = _NAME.fullmatch(path)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def stored_days(storage: Storage) -> list[date]:
    """The days that have a file, ascending."""
    return sorted(day for stored in storage.list(SOLVABILITY) if (day := day_of(stored.path)))


def write_day(storage: Storage, solvability: Solvability) -> int:
    """Publishes a day, in place of what was there of it; returns the size of its file in bytes."""
    content = gzip.compress(msgspec.json.encode(solvability), mtime=0)
    storage.put(solvability_path(solvability.moment.day), content)
    return len(content)


def read_day(storage: Storage, day: date) -> Solvability:
    """What was published of a day. Raises SolvabilityError."""
    path = solvability_path(day)
    try:
        content = storage.get(path)
    except NotFoundError:
        raise NoDayError(_absence(storage, day)) from None
    try:
        text = gzip.decompress(content)
        found = msgspec.json.decode(text, type=_AnyFormat).format
        if found != FORMAT:
            raise SolvabilityError(
                f"{storage.uri(path)} has format {found}, and this version reads format {FORMAT}: use the version that"
                " wrote it, or make the day again"
            )
        solvability = msgspec.json.decode(text, type=Solvability)
    except (msgspec.DecodeError, OSError, EOFError, zlib.error) as error:
        raise SolvabilityError(f"{storage.uri(path)} is damaged ({error}): make the day again") from error
    if solvability.moment.day != day:
        raise SolvabilityError(f"{storage.uri(path)} is of {solvability.moment.day}: make the day again")
    names = {place.name for place in solvability.environments}
    if lacking := [one.name for one in solvability.projects if one.outcomes.keys() != names]:
        raise SolvabilityError(f"{storage.uri(path)} lacks outcomes of {lacking[0]}: make the day again")
    return solvability


def read_newest(storage: Storage) -> Solvability:
    """What was published of the newest day. Raises SolvabilityError."""
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
    known = f"there are {len(days)} of {days[0]} to {days[-1]}" if len(days) > 1 else f"there is {days[0]} alone"
    return f"solvability of {day} was not published, or is too old; {known}"


def clean_days(storage: Storage, before: float, *, dry_run: bool = False) -> list[StoredObject]:
    """Deletes the days that were written before `before` (unix seconds), and returns their files, by day. In a
    `dry_run` nothing is deleted.

    Whoever makes a day reads the one before it, and resolves again where that has gone.
    """
    found = [one for one in storage.list(SOLVABILITY) if day_of(one.path) and is_older(one, before)]
    return sweep_objects(storage, found, dry_run=dry_run)
