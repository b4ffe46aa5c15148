"""The state of every stage, from the index to the LevelDB versions, and the next steps for a person.

`upkeep/due.py` computes the pending work. This module displays it, and judges it by age: a busy index always leaves
some work pending, so only work that has been pending for `PYPI_ASSETS_LAG_WARN_S` gets a line.
"""

import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pypi_assets.catalog.database import Catalog, NoCatalogError, open_catalog
from pypi_assets.catalog.ledger.range_ledger import SIMPLE
from pypi_assets.catalog.publications.dump_columns import DumpKind
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reports.catalog_status import CatalogStatus, Followed, catalog_status
from pypi_assets.catalog.scopes.scope_status import ScopeStatus
from pypi_assets.components import existing_catalog_from, index_from, index_url_of, storage_from
from pypi_assets.dagster_instance.home import has_instance, open_instance
from pypi_assets.distributions.containment.layers import MissingLayer, missing_layers
from pypi_assets.dumps.cover import Cover
from pypi_assets.index.errors import PackageIndexError
from pypi_assets.index.kinds import NoMemoryError
from pypi_assets.index.models import ChangelogEvent
from pypi_assets.index.urls import redact, shown_host
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.build_need import Need
from pypi_assets.setting_sources import read_variables
from pypi_assets.settings import Settings, SettingsError
from pypi_assets.storage.root_owner import MIRROR
from pypi_assets.storage.store import Storage, StorageError
from pypi_assets.upkeep.answers import AnswersLag, answers_lag
from pypi_assets.upkeep.due import Due, what_is_due
from pypi_assets.workspace import prefix_in_dagster

if TYPE_CHECKING:
    from pypi_assets.dagster_instance.activity import Activity, RunCounts

_PATIENCE_S = 5.0
_LIST_IS_OLD_AFTER_S = 3_600.0
"""If the list of projects is followed, it is fetched every half hour."""
_BUILD = "run `pypi-assets leveldb update`"
SENSORS = (
    "failed_full_crawl",
    "new_serial_range",
    "first_full_dump",
    "late_changes",
    "requested_visits",
    "new_leveldb_version",
    "scope_work",
)
"""The Dagster sensors that request due work."""
_FULL_CRAWL = {"full_crawl", "project_listing", "crawled_projects", "crawled_distribution_data"}
_FULL_DUMP = {"full_dump", "redump"}
_SCOPES = {"follow_scopes", "scope_projects", "scope_distribution_data"}
"""The job and the assets that do each kind of work."""


@dataclass(frozen=True, slots=True)
class NewestVersion:
    """The newest version of a dataset. The fields are None if there is none, or if it cannot be read."""

    version: int | None = None
    serial: int | None = None


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of the catalog behind the index. Times are unix seconds.

    `index_serial` is None if the index did not respond; `index_error` is then the reason. While the changelog is off,
    `index_serial` is the serial of the last fetched list of projects. `lagging_since` is the time of the first event
    beyond the complete serial, or of the last list if that is old. It is None if there is none or the time is unknown.
    `measured_at` is the time of the measurement.
    """

    complete_serial: int | None
    index_serial: int | None
    index_error: str | None
    lagging_since: float | None
    measured_at: float

    @property
    def serials(self) -> int | None:
        complete = self.complete_serial
        return None if complete is None or self.index_serial is None else max(self.index_serial - complete, 0)

    @property
    def seconds(self) -> float | None:
        """Return how long the catalog has lagged, 0 if it does not lag, or None if the time is unknown."""
        if self.lagging_since is not None:
            return max(self.measured_at - self.lagging_since, 0.0)
        return 0.0 if self.serials == 0 else None


def is_stale(settings: Settings, age_s: float | None) -> bool:
    """Check whether something that has been missing for `age_s` seconds is overdue. An unknown age (None) counts."""
    return age_s is None or age_s >= settings.lag_warn_s


@dataclass(frozen=True, slots=True)
class Status:
    """The state of each stage, judged by the limits in `settings`."""

    settings: Settings
    catalog: CatalogStatus
    lag: Lag
    due: Due
    storage_error: str | None
    no_catalog: str | None = None
    dagster: "Activity | None" = None
    dagster_error: str | None = None
    is_mirror: bool = False
    """The storage is a mirror of another instance. The index is not contacted, and nothing is crawled or published."""

    @property
    def cover(self) -> Cover:
        """Return the dumps in use."""
        return self.due.cover

    @property
    def leveldbs(self) -> dict[str, NewestVersion]:
        """Return the newest version of each dataset."""
        needs = {name: one.need for name, one in self.due.datasets.items()}
        return {
            name: NewestVersion(needs[name].version, needs[name].serial) if name in needs else NewestVersion()
            for name in DATASETS
        }

    @property
    def answers(self) -> AnswersLag:
        """Return how far the answers of look-ups lag the index."""
        return answers_lag(self.due.datasets, self.lag.index_serial, self.lag.lagging_since, self.lag.measured_at)

    @property
    def outcomes(self) -> dict[str, int]:
        """Return the number of live distributions by outcome."""
        counts = self.catalog.outcomes
        return {
            "read": counts[ReadOutcome.DATA],
            "failed": counts[ReadOutcome.ERROR] + counts[ReadOutcome.EXHAUSTED],
            "gave_up": counts[ReadOutcome.EXHAUSTED],
            "unsupported": counts[ReadOutcome.UNSUPPORTED],
            "vanished": counts[ReadOutcome.VANISHED],
            "skipped": counts[ReadOutcome.SKIPPED],
            "pending": counts[ReadOutcome.PENDING],
        }

    @property
    def missing_containment(self) -> list[MissingLayer]:
        """Return the layers of containment that readers of distributions lack on this system."""
        return missing_layers()

    @property
    def dump_counts(self) -> dict[str, int]:
        """Return the number of committed dumps by kind."""
        return {kind.value: sum(dump.kind == kind for dump in self.due.committed) for kind in DumpKind}

    @property
    def file_hosts(self) -> list[str] | None:
        """Return the hosts, besides the index's own, from which files may come.

        These are the hosts in the settings, or the host that the first pages agree on. None means that there are not
        enough pages yet.
        """
        if isinstance(listed := self.settings.allowed_file_hosts, tuple):
            return list(listed)
        origin = self.catalog.followed.file_origin
        return None if origin is None else [shown_host(origin)] if origin else []

    @property
    def is_crawling_full(self) -> bool:
        """Check whether a worker or a Dagster run is active on the open full crawl.

        A crawl that several runs share has moments without a worker: between the steps of a run, and between runs.
        """
        return any(one.is_full_crawl for one in self.catalog.running) or self._has_runs(_FULL_CRAWL)

    def _has_runs(self, names: Collection[str]) -> bool:
        """Check whether an unfinished run of Dagster belongs to one of these jobs or assets."""
        return self.dagster is not None and not self.dagster.runs.keys().isdisjoint(names)

    def to_do(self) -> list[str]:
        """Return a line for each error and each overdue stage, with the command that helps; empty if all is well."""
        errors = [error for error in (self.lag.index_error, self.storage_error, self.dagster_error) if error]
        if self.is_mirror:
            return errors
        others = *self._of_dumps(), *self._of_journal(), *self._of_leveldbs(), *self._of_consumers()
        return [*errors, *self._of_readers(), *self._of_catalog(), *others]

    def _of_readers(self) -> list[str]:
        needed = [one.name for one in self.missing_containment if one.is_needed]
        if self.settings.containment != "required" or not needed:
            return []
        line = f"no distribution can be read, since this system lacks {', '.join(needed)}"
        return [f"{line}: set PYPI_ASSETS_CONTAINMENT=auto, or read on another system"]

    def _of_consumers(self) -> list[str]:
        lines = []
        for one in self.catalog.consumers:
            is_worth_a_line = bool(one.lag_seconds) and is_stale(self.settings, one.lag_seconds)
            if is_worth_a_line and one.is_living(self.lag.measured_at):
                lines.append(
                    f"the journal's consumer {one.name} lags by {one.lag_serials} serials: start its reader, or run"
                    f" `pypi-assets journal consumers --forget {one.name}`"
                )
            if one.dead:
                lines.append(f"{one.name} has {one.dead} dead letters: see `pypi-assets journal letters`")
        return lines

    def _of_catalog(self) -> list[str]:
        catalog, lines = self.catalog, list[str]()
        trouble = catalog.followed.changelog_trouble
        if trouble and trouble.is_off and catalog.followed.observed_serial is None:
            lines.append(
                f"the changelog is off: {trouble.text}; the list of projects is followed instead, which has no"
                " events (PYPI_ASSETS_LISTER selects what is followed)"
            )
        lines += [f"the ledger is broken: {fault}" for fault in catalog.ledger_faults]
        if self.due.crawl.open is not None:
            if self.due.crawl.open.limited_to is not None:
                lines.append(
                    f"only a trial of {self.due.crawl.open.limited_to} projects was crawled: run `pypi-assets crawl"
                    " full` to crawl the whole index"
                )
            elif not self.is_crawling_full:
                lines.append("a full crawl was interrupted: run `pypi-assets crawl full` to continue it")
        elif self.no_catalog:
            lines.append(self.no_catalog)
        elif not self.due.crawl.is_followable and not self.due.crawl.is_scoped:
            lines.append("nothing has been crawled: run `pypi-assets crawl full`")
        lines += self._of_scopes()
        if catalog.complete_serial is not None and self._is_catalog_stale(catalog.complete_serial):
            lines.append(self._describe_lag())
        if catalog.exhausted.percent >= self.settings.given_up_warn_percent:
            lines.append(f"{catalog.exhausted.count} reads and visits are exhausted: see `pypi-assets failures list`")
        return lines

    def _of_scopes(self) -> list[str]:
        """Return lines about corrupt kept files, idle scopes, and a catalog that follows nothing any more."""
        scopes = self.due.scopes
        if self.due.crawl.is_scoped and not scopes.exist:
            return [
                "no scope is left, so nothing is followed: run `pypi-assets scope create` or `pypi-assets crawl full`"
            ]
        lines = []
        if corrupt := self.catalog.kept.corrupt:
            lines.append(
                f"{corrupt} kept files are corrupt: run `pypi-assets scope run` to fetch them again, and `pypi-assets"
                " files forget` for those that the index no longer has"
            )
        at_work = {one.scope.name for one in self.catalog.scopes if one.workers}
        idle = [] if self._has_runs(_SCOPES) else [name for name in scopes.ready if name not in at_work]
        if idle:
            lines.append(f"scopes have work left ({', '.join(idle)}): run `pypi-assets scope run`")
        return lines

    def _is_catalog_stale(self, complete: int) -> bool:
        """Check whether the catalog lags or is not exact yet. An index that does not respond has another line."""
        if self.lag.seconds is None and self.lag.index_error:
            return False
        return is_stale(self.settings, self.lag.seconds) or complete < (self.catalog.exact_from or 0)

    def _describe_lag(self) -> str:
        is_known = self.lag.seconds is not None or self.lag.serials
        text = "the catalog lags the index" if is_known else "it is not known how far the catalog lags the index"
        if self.catalog.running_ranges:
            return f"{text}: see `pypi-assets admin ranges` for the ranges that are running"
        return f"{text}: run `pypi-assets crawl incremental`"

    def _of_dumps(self) -> list[str]:
        lines = []
        if self.due.full_dump.is_due:
            if self._has_runs(_FULL_DUMP):
                return []
            lines.append("the dumps lag the catalog: run `pypi-assets dump full`")
        elif self.due.ranges.undumped and is_stale(self.settings, self._age_s(self.due.dumps_lack_since)):
            lines.append("the dumps lag the catalog: run `pypi-assets dump incremental`")
        elif self.due.ranges.are_late_undumped:
            lines.append("the dumps lack late changes: run `pypi-assets dump incremental`")
        if self.due.is_reprocessed and not self._has_runs(_FULL_DUMP):
            lines.append("the dumps lack records that were made again: run `pypi-assets dump redo`")
        return lines

    def _of_journal(self) -> list[str]:
        journal = self.due.journal
        if journal.missing and is_stale(self.settings, self._age_s(journal.lacks_since)):
            return ["the journal lags the catalog: run `pypi-assets journal write`"]
        return []

    @property
    def journal_lag(self) -> tuple[int | None, float | None]:
        """Return the journal's lag behind the catalog in serials and in seconds, both 0 if it does not lag.

        Both are None if the journal is not started. The seconds are also None if the time is unknown.
        """
        journal, complete = self.due.journal, self.catalog.complete_serial
        if journal.serial is None or complete is None:
            return None, None
        return max(complete - journal.serial, 0), self._age_s(journal.lacks_since) if journal.missing else 0.0

    def _of_leveldbs(self) -> list[str]:
        """Return one line for all versions that lag the dumps, and one for each dataset with another reason."""
        lines = []
        for one in self.due.datasets.values():
            if one.is_due and is_stale(self.settings, one.due_for_s(self.lag.measured_at)):
                lags = one.need.need in {Need.NEW_DUMPS, Need.NO_VERSION}
                what = "the LevelDB versions lag the dumps" if lags else one.need.reason
                lines.append(f"{what}: {_BUILD}")
        lines += [need.reason for need in self.due.unbuildable]
        return list(dict.fromkeys(lines))

    def _age_s(self, since: float | None) -> float | None:
        return None if since is None else self.lag.measured_at - since


@contextmanager
def readable_catalog(settings: Settings) -> Iterator[tuple[Catalog, str | None]]:
    """Yield the catalog and None. If there is none, yield a temporary empty catalog, and a message about the missing
    one.

    Raises CatalogError.
    """
    with ExitStack() as stack:
        missing = None
        try:
            catalog = existing_catalog_from(settings)
        except NoCatalogError as error:
            missing = str(error)
            catalog = open_catalog(f"sqlite:///{stack.enter_context(tempfile.TemporaryDirectory())}/empty.sqlite")
        yield stack.enter_context(closing(catalog)), missing


def read_status(settings: Settings) -> Status:
    """Return the present state of each stage. Nothing is created. A missing index, catalog or storage is reported.

    Raises CatalogError.
    """
    with readable_catalog(settings) as (catalog, missing):
        return status_of(catalog, settings, missing)


@dataclass(frozen=True, slots=True)
class DagsterState:
    """The activity of Dagster's instance for this index, or the error if it does not respond. `counts` are optional."""

    activity: "Activity | None" = None
    counts: "RunCounts | None" = None
    error: str | None = None


def status_of(
    catalog: Catalog,
    settings: Settings,
    no_catalog: str | None = None,
    storage: Storage | None = None,
    dagster: DagsterState | None = None,
) -> Status:
    """Return the status of an open catalog. If `storage` and `dagster` are not given, they are opened and read.

    With `no_catalog`, the catalog is a placeholder for a missing one. Then a missing storage has no line.
    """
    status = catalog_status(catalog)
    storage_error, is_mirror = None, False
    try:
        storage = storage or storage_from(settings, read_only=True)
        is_mirror = storage.exists(MIRROR)
        due = what_is_due(catalog, storage)
    except StorageError as error:
        due = what_is_due(catalog, None)
        storage_error = None if no_catalog else f"the LevelDB versions are not known: {error}"
    if is_mirror:
        lag = Lag(status.followed.complete_serial, None, None, None, catalog.clock())
    else:
        lag = measure_lag(settings, status.followed, catalog.clock())
    dagster = dagster or read_dagster(settings) or DagsterState()
    return Status(settings, status, lag, due, storage_error, no_catalog, dagster.activity, dagster.error, is_mirror)


def read_dagster(settings: Settings, *, with_counts: bool = False) -> DagsterState | None:
    """Return the state of the instance in `DAGSTER_HOME`, which is opened once, or None without an instance."""
    if not has_instance():
        return None
    from pypi_assets.dagster_instance.activity import (
        count_runs,
        read_activity,  # imports Dagster, which takes a second
    )

    try:
        prefix = prefix_in_dagster(read_variables().index)
        with open_instance() as instance:
            return DagsterState(
                read_activity(instance, prefix, SENSORS, are_on_by_default=settings.sensors_on),
                count_runs(instance) if with_counts else None,
            )
    except Exception as error:  # noqa: BLE001 - dagster.yaml can name any class, which can raise any error
        reason = str(error).partition("Stack Trace:")[0].strip()
        return DagsterState(error=f"Dagster's instance in DAGSTER_HOME does not answer: {reason}")


def measure_lag(settings: Settings, followed: Followed, now: float) -> Lag:
    """Measure how far the catalog lags.

    Requests the index's last serial, and the first event beyond the complete serial, unless that event is stored.
    """
    if other := _other_index(settings, followed.index_url):
        return Lag(followed.complete_serial, None, other, None, now)
    has_events = settings.lister != SIMPLE and not followed.is_changelog_off
    if followed.observed_serial is not None:
        since = followed.next_event_at or followed.next_observed_at
        return Lag(followed.complete_serial, followed.observed_serial, None, since, now)
    if has_events:
        index_serial, index_error = query_last_serial(settings, followed.index_url)
    else:
        index_serial, index_error = followed.listed_serial, None
    complete, since = followed.complete_serial, followed.next_event_at
    if complete is None or (index_serial is not None and index_serial <= complete):
        is_list_old = not has_events and now - (followed.listed_at or now) > _LIST_IS_OLD_AFTER_S
        since = followed.listed_at if is_list_old else None
    elif since is None and index_serial is not None and has_events:
        since = _first_event_after(settings, complete, followed.index_url)
    return Lag(complete, index_serial, index_error, since, now)


def query_last_serial(settings: Settings, followed: str | None) -> tuple[int | None, str | None]:
    """Return the index's last serial, or the reason why it is unknown, with one short request.

    No request is sent if only the list of projects is followed, or for an index without serials.
    """
    if settings.lister == SIMPLE:
        return None, None
    if other := _other_index(settings, followed):
        return None, other
    try:
        with index_from(settings, patience_s=_PATIENCE_S, followed_url=followed) as index:
            return index.last_serial(), None
    except NoMemoryError:
        return None, None
    except (SettingsError, PackageIndexError) as error:
        return None, f"the index's serial is not known: {error}"


def _other_index(settings: Settings, followed: str | None) -> str | None:
    """Return an error if the settings name another index than the catalog follows."""
    url = redact(index_url_of(settings, followed))
    if followed in (None, url):
        return None
    return f"the catalog follows {followed}, not {url}: set PYPI_ASSETS_INDEX_URL back"


def _first_event_after(settings: Settings, serial: int, followed: str | None) -> float | None:
    """Return the time of the first event after `serial` (unix seconds), or None without an event or a response."""
    try:
        with index_from(settings, patience_s=_PATIENCE_S, followed_url=followed) as index:
            page = index.changelog_page(serial)
        return next((row.timestamp for row in page if isinstance(row, ChangelogEvent)), None)
    except (SettingsError, PackageIndexError):
        return None


def _scope_to_json(one: ScopeStatus) -> dict[str, object]:
    return {
        "scope": one.scope.name,
        "state": one.state.value,
        "projects": one.projects,
        "projects_by_depth": {str(depth): count for depth, count in one.depths.items()},
        "beyond_depth": one.beyond,
        "entering": one.entering,
        "visits_left": one.visits.todo,
        "reads_left": one.reads_left,
        "workers": one.workers,
        "keep_files": one.scope.keep_files,
        "most": one.scope.most,
        "kept_bytes": one.scope.kept_bytes,
        "evicted_files": one.scope.evicted_files,
        "evicted_bytes": one.scope.evicted_bytes,
    }


def status_to_json(
    status: Status,
    *,
    running_since: Sequence[str | None],
    expected_end: str | None,
    last_full_crawl: str | None,
    longest_unvisited: str | None,
) -> dict[str, object]:
    """Return the status as JSON values. Times are passed as texts; `running_since` has the order of
    `catalog.running`.
    """
    catalog = status.catalog
    crawl = catalog.open_crawl
    return {
        "complete_serial": catalog.complete_serial,
        "index_serial": status.lag.index_serial,
        "lag": status.lag.serials,
        "lag_seconds": status.lag.seconds,
        "index_error": status.lag.index_error,
        "file_hosts": status.file_hosts,
        "missing_containment": [str(one) for one in status.missing_containment],
        "changelog_off": catalog.followed.is_changelog_off,
        "inexact_spans": [span.key for span in catalog.inexact_spans],
        "exact_from": catalog.exact_from,
        "events_through": catalog.events_through,
        "open_ranges": catalog.open_ranges,
        "running_ranges": catalog.running_ranges,
        "running": [
            {
                "name": one.name,
                "processes": one.processes,
                "hosts": list(one.hosts),
                "since": since,
                "projects_done": one.projects_done,
                "projects": one.projects,
                "reads_left": one.reads_left,
            }
            for one, since in zip(catalog.running, running_since, strict=True)
        ],
        "dagster": status.dagster and asdict(status.dagster),
        "open_crawl": crawl and (asdict(crawl) | {"expected_end": expected_end}),
        "last_full_crawl": last_full_crawl,
        "followed_projects": catalog.followed_projects,
        "scopes": [_scope_to_json(one) for one in catalog.scopes],
        "kept": asdict(catalog.kept),
        "live_distributions": catalog.live_distributions,
        **status.outcomes,
        "failed_visits": catalog.failed_visits,
        "never_visited_projects": catalog.visited.never_visited,
        "failing_projects": catalog.visited.failing,
        "longest_unvisited": longest_unvisited,
        "unexplained_changes": catalog.unexplained_changes,
        "broken_entries": sum(catalog.broken_entries.values()),
        "dumps": status.dump_counts | {"serial": status.cover.serial or None, "cover": list(status.cover.directories)},
        "answers": {
            "serial": status.answers.serial,
            "lag": status.answers.serials,
            "lag_seconds": status.answers.seconds,
        },
        "leveldbs": {name: asdict(newest) for name, newest in status.leveldbs.items()},
        "journal": {
            "serial": status.due.journal.serial,
            "lag": status.journal_lag[0],
            "lag_seconds": status.journal_lag[1],
        },
        "consumers": [
            {
                "name": one.name,
                "serial": one.serial,
                "lag_serials": one.lag_serials,
                "lag_seconds": one.lag_seconds,
                "waiting": one.waiting,
                "dead": one.dead,
            }
            for one in catalog.consumers
        ],
        "storage_error": status.storage_error,
        "due": status.due.counts,
        "to_do": status.to_do(),
    }
