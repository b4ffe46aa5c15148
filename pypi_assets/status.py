"""How things stand from the index to the LevelDB versions, and what is to be done next."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pypi_assets.assembly import catalog_from, index_from, storage_from
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import SIMPLE
from pypi_assets.catalog.observed.events import first_event_time
from pypi_assets.catalog.publications.dump_files import DumpKind
from pypi_assets.catalog.publications.dump_registry import Dump, committed_dumps
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.reports.catalog_status import CatalogStatus, catalog_status
from pypi_assets.catalog.reports.followed_index import Followed
from pypi_assets.dumps.cover import Cover, cover_of
from pypi_assets.index.errors import PackageIndexError
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.errors import LeveldbError
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.settings import Settings, SettingsError
from pypi_assets.storage.store import StorageError

_PATIENCE_S = 5.0
_LIST_IS_OLD_AFTER_S = 3_600.0
"""The list of projects is looked at every half hour where it is followed."""


@dataclass(frozen=True, slots=True)
class NewestVersion:
    """The newest version of a dataset; None where there is none, or where it cannot be told."""

    version: int | None = None
    serial: int | None = None


@dataclass(frozen=True, slots=True)
class Lag:
    """How far the catalog is behind the index. `index_serial` is None, and `index_error` says why, where the index did
    not answer. While the changelog is off it is that of the list of projects that was looked at last.

    `behind_since` is when the first event beyond the complete serial was (unix seconds), or when the list was looked at
    last that is followed, if that is long ago; None where there is none or nobody tells. `asked_at` is when all this
    was so.
    """

    complete_serial: int | None
    index_serial: int | None
    index_error: str | None
    behind_since: float | None
    asked_at: float

    @property
    def serials(self) -> int | None:
        complete = self.complete_serial
        return None if complete is None or self.index_serial is None else max(self.index_serial - complete, 0)

    @property
    def seconds(self) -> float | None:
        """For how long it has been behind, 0 where it is not; None where nobody tells."""
        if self.behind_since is not None:
            return max(self.asked_at - self.behind_since, 0.0)
        return 0.0 if self.serials == 0 else None


def is_late(settings: Settings, age_s: float | None) -> bool:
    """Whether what is behind by so many seconds should have come by now; it may have where nobody tells (None)."""
    return age_s is None or age_s >= settings.lag_warn_s


@dataclass(frozen=True, slots=True)
class Status:
    """How each stage stands, to be judged by the thresholds of `settings`.

    `lacks_since` tells of the serials that the dumps and the LevelDB versions have come to when the first event beyond
    each was (unix seconds); None where none is stored.
    """

    settings: Settings
    catalog: CatalogStatus
    lag: Lag
    dumps: tuple[Dump, ...]
    cover: Cover
    leveldbs: dict[str, NewestVersion]
    storage_error: str | None
    lacks_since: Mapping[int, float | None]

    @property
    def outcomes(self) -> dict[str, int]:
        """How many live distributions have which outcome."""
        counts = self.catalog.outcomes
        return {
            "read": counts[Outcome.DATA],
            "failed": counts[Outcome.ERROR] + counts[Outcome.EXHAUSTED],
            "gave_up": counts[Outcome.EXHAUSTED],
            "unsupported": counts[Outcome.UNSUPPORTED],
            "vanished": counts[Outcome.VANISHED],
            "pending": counts[Outcome.PENDING],
        }

    @property
    def dump_counts(self) -> dict[str, int]:
        """How many committed dumps there are of each kind."""
        return {kind.value: sum(dump.kind == kind for dump in self.dumps) for kind in DumpKind}

    def to_do(self) -> list[str]:
        """What stands in the way of all being well, each with what to do; empty where nothing does."""
        catalog, complete = self.catalog, self.catalog.complete_serial
        lines = [error for error in (self.lag.index_error, self.storage_error) if error]
        trouble = catalog.followed.changelog_trouble
        if trouble and trouble.is_off:
            lines.append(
                f"the changelog is off: {trouble.text}; the list of projects is followed in its"
                " place, and tells no events (PYPI_ASSETS_LISTER says which is followed)"
            )
        lines += [f"the ledger is broken: {fault}" for fault in catalog.ledger_faults]
        if catalog.open_crawl is not None:
            lines.append("a full crawl is open: `pypi-assets crawl full` goes on with it")
        elif complete is None:
            lines.append("nothing has been crawled: run `pypi-assets crawl full`")
        if complete is not None and self._is_catalog_late(complete):
            lines.append(self._told_lag())
        if catalog.exhausted.percent >= self.settings.given_up_warn_percent:
            lines.append(f"{catalog.exhausted.count} reads and visits were given up: see `pypi-assets failures list`")
        if self._lacks_late(self.cover.serial, complete or 0):
            kind = "incremental" if self.cover.dumps else "full"
            lines.append(f"the dumps are behind the catalog: run `pypi-assets dump {kind}`")
        newest = [one.serial or 0 for one in self.leveldbs.values()]
        if not self.storage_error and any(self._lacks_late(serial, self.cover.serial) for serial in newest):
            lines.append("the LevelDB versions are behind the dumps: run `pypi-assets leveldb update`")
        return lines

    def _is_catalog_late(self, complete: int) -> bool:
        """Also where it is not exact yet. Where nobody tells, since the index does not answer, that is told already."""
        if self.lag.seconds is None and self.lag.index_error:
            return False
        return is_late(self.settings, self.lag.seconds) or complete < (self.catalog.exact_from or 0)

    def _told_lag(self) -> str:
        is_known = self.lag.seconds is not None or self.lag.serials
        told = "the catalog is behind the index" if is_known else "nobody tells how far the catalog is behind the index"
        if self.catalog.running_ranges:
            return f"{told}: see `pypi-assets ranges` for those that are running"
        return f"{told}: run `pypi-assets crawl incremental`"

    def _lacks_late(self, serial: int, until: int) -> bool:
        """Whether what has come to `serial` lacks an event up to `until` that is too old."""
        since = self.lacks_since.get(serial)
        return serial < until and is_late(self.settings, None if since is None else self.lag.asked_at - since)


def read_status(settings: Settings) -> Status:
    """Asks each stage. An index or a storage that does not answer is told of; raises CatalogError."""
    catalog = catalog_from(settings)
    try:
        return status_of(catalog, settings)
    finally:
        catalog.close()


def status_of(catalog: Catalog, settings: Settings) -> Status:
    """The same of an open catalog."""
    status, dumps = catalog_status(catalog), committed_dumps(catalog)
    lag = measure_lag(settings, status.followed, catalog.clock())
    leveldbs, storage_error = _newest_versions(settings)
    cover = cover_of(dumps)
    reached = {cover.serial, *(one.serial for one in leveldbs.values())}
    with catalog.read() as connection:
        lacks_since = {serial: first_event_time(connection, serial) for serial in reached if serial}
    return Status(settings, status, lag, tuple(dumps), cover, leveldbs, storage_error, lacks_since)


def measure_lag(settings: Settings, followed: Followed, now: float) -> Lag:
    """How far the catalog is behind. The index is asked for its serial, and where the first event beyond the complete
    serial is not stored, for that."""
    tells_events = settings.lister != SIMPLE and not followed.is_changelog_off
    if tells_events:
        index_serial, index_error = query_last_serial(settings, followed.index_url)
    else:
        index_serial, index_error = followed.listed_serial, None
    complete, since = followed.complete_serial, followed.next_event_at
    if complete is None or (index_serial is not None and index_serial <= complete):
        is_list_old = not tells_events and now - (followed.listed_at or now) > _LIST_IS_OLD_AFTER_S
        since = followed.listed_at if is_list_old else None
    elif since is None and index_serial is not None and tells_events:
        since = _first_event_after(settings, complete)
    return Lag(complete, index_serial, index_error, since, now)


def query_last_serial(settings: Settings, followed: str | None) -> tuple[int | None, str | None]:
    """The index's last serial, or why it is not known. It is asked once, and not for long; not at all where only the
    list of projects is followed."""
    if settings.lister == SIMPLE:
        return None, None
    try:
        with index_from(settings, patience_s=_PATIENCE_S) as index:
            if followed not in {None, index.index_url}:
                return None, f"the catalog follows {followed}, not {index.index_url}: set PYPI_ASSETS_INDEX_URL back"
            return index.last_serial(), None
    except (SettingsError, PackageIndexError) as error:
        return None, f"the index's serial is not known: {error}"


def _first_event_after(settings: Settings, serial: int) -> float | None:
    """When it was, as the changelog tells, if it does."""
    try:
        with index_from(settings, patience_s=_PATIENCE_S) as index:
            return next((event.timestamp for event in index.changelog_page(serial)), None)
    except (SettingsError, PackageIndexError):
        return None


def _newest_versions(settings: Settings) -> tuple[dict[str, NewestVersion], str | None]:
    """The newest version of each dataset, or why they are not known."""
    found = {name: NewestVersion() for name in DATASETS}
    try:
        storage = storage_from(settings)
        for name in DATASETS:
            for version in published_versions(storage, name)[-1:]:
                found[name] = NewestVersion(version)
                found[name] = NewestVersion(version, read_published(storage, name, version).manifest.serial)
    except (StorageError, LeveldbError) as error:
        return found, f"the LevelDB versions are not known: {error}"
    return found, None


def status_to_json(
    status: Status, *, expected_end: str | None, last_full_crawl: str | None, longest_unvisited: str | None
) -> dict[str, object]:
    """The status as JSON values; the times of it are given as texts."""
    catalog = status.catalog
    crawl = catalog.open_crawl
    return {
        "complete_serial": catalog.complete_serial,
        "index_serial": status.lag.index_serial,
        "lag": status.lag.serials,
        "lag_seconds": status.lag.seconds,
        "index_error": status.lag.index_error,
        "changelog_off": catalog.followed.is_changelog_off,
        "inexact_spans": [span.key for span in catalog.inexact_spans],
        "exact_from": catalog.exact_from,
        "events_through": catalog.events_through,
        "open_ranges": catalog.open_ranges,
        "running_ranges": catalog.running_ranges,
        "open_crawl": crawl and (asdict(crawl) | {"expected_end": expected_end}),
        "last_full_crawl": last_full_crawl,
        "live_distributions": catalog.live_distributions,
        **status.outcomes,
        "failed_visits": catalog.failed_visits,
        "never_visited_projects": catalog.visited.never_visited,
        "failing_projects": catalog.visited.failing,
        "longest_unvisited": longest_unvisited,
        "unexplained_changes": catalog.unexplained_changes,
        "dumps": status.dump_counts | {"serial": status.cover.serial or None, "cover": list(status.cover.directories)},
        "leveldbs": {name: asdict(newest) for name, newest in status.leveldbs.items()},
        "storage_error": status.storage_error,
        "to_do": status.to_do(),
    }
