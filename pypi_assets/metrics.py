"""The state of every stage as metrics, in the text format of Prometheus.

The numbers come from `status.py` and `upkeep/due.py`, and those about runs from Dagster's instance. This module only
reports them.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

from prometheus_client import CollectorRegistry, generate_latest, start_http_server, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.reports.catalog_status import work_done
from pypi_assets.catalog.reports.failures import count_failures
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.components import storage_from
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets.journal.segment_files import JournalDamagedError, read_head
from pypi_assets.journal.signing import signed_serial
from pypi_assets.settings import Settings
from pypi_assets.status import DagsterState, Status, read_dagster, readable_catalog, status_of
from pypi_assets.storage.store import Storage, StorageError

_DAGSTER = "dagster"
_REACHABLE = "1 if the part responds, else 0."


class StatusMetrics(Collector):
    """The metrics of the last measurement. Scrapes return these, because counting a large catalog takes seconds."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._taken: list[Metric] = []
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def take(self) -> None:
        """Measure each stage once. For a stage that does not respond, `pypi_assets_reachable` is 0; no error is
        raised.
        """
        self._taken = list(_metrics(self._settings))

    def collect(self) -> list[Metric]:
        return self._taken

    def text(self) -> str:
        return generate_latest(self.registry).decode()

    def write(self, path: Path) -> None:
        """Write the metrics atomically to a file, for the textfile collector of Prometheus' node exporter."""
        write_to_textfile(str(path), self.registry)

    def listen(self, host: str, port: int) -> str:
        """Serve the metrics at this address, in a thread that ends with the process, and return the URL. `port` can be
        0.

        Raises OSError if the address is in use, or does not belong to this machine.
        """
        server, _ = start_http_server(port, host, self.registry)
        return f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}/metrics"


def _metrics(settings: Settings) -> Iterator[Metric]:
    versions = {"version": version("pypi-assets"), "extractor_version": str(EXTRACTOR_VERSION)}
    yield InfoMetricFamily("pypi_assets", "Versions of the code.", value=versions)
    storage = _opened_storage(settings)
    yield from _of_disks(settings, storage)
    dagster = read_dagster(settings, with_counts=True)
    reachable = {}
    if dagster is not None:
        reachable[_DAGSTER] = dagster.error is None
        yield from _of_runs(dagster)
    try:
        with readable_catalog(settings) as (catalog, missing):
            status = status_of(catalog, settings, missing, storage, dagster)
            with catalog.read() as connection:
                failures = count_failures(connection)
                visits, reads = work_done(connection)
    except (CatalogError, SQLAlchemyError):
        yield _gauge("reachable", _REACHABLE, "part", reachable | {"catalog": False})
        return
    if not status.is_mirror:  # a mirror contacts no index, and has a catalog only after it has replayed the journal
        reachable |= {"catalog": not status.no_catalog, "index": not status.lag.index_error}
    elif not status.no_catalog:
        reachable["catalog"] = True
    reachable["storage"] = not status.storage_error
    yield _gauge("reachable", _REACHABLE, "part", reachable)
    yield from _of_status(status)
    if storage is not None:
        yield from _of_journal(storage)
    yield _gauge("failures", "Reads and visits that failed or were abandoned, by kind.", "kind", failures)
    yield CounterMetricFamily("pypi_assets_visits", "Visits of project pages.", value=visits)
    yield CounterMetricFamily("pypi_assets_read_attempts", "Attempts to read a distribution.", value=reads)


def _opened_storage(settings: Settings) -> Storage | None:
    try:
        return storage_from(settings, read_only=True)
    except StorageError:  # counts as not reachable
        return None


def _of_disks(settings: Settings, storage: Storage | None) -> Iterator[Metric]:
    """Yield metrics of local folders, whose disks can be full before anything else notices."""
    folders = {"home": settings.resolved_home}
    if storage is not None and (local := storage.local_path("")):
        folders["storage"] = local
    usages = {}
    for place, folder in folders.items():
        with suppress(OSError):  # this user cannot access the folder
            usages[place] = shutil.disk_usage(_existing(folder))
    free = {place: usage.free for place, usage in usages.items()}
    yield _gauge("disk_free_bytes", "Free bytes of the disk with this folder.", "folder", free)
    total = {place: usage.total for place, usage in usages.items()}
    yield _gauge("disk_size_bytes", "Size of the disk with this folder.", "folder", total)


def _existing(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def _of_runs(dagster: DagsterState) -> Iterator[Metric]:
    """Yield metrics of runs; none if the instance does not respond."""
    if (counts := dagster.counts) is None:
        return
    states = {"queued": counts.queued, "running": counts.running}
    yield _gauge("runs", "Runs of Dagster that have not ended.", "state", states)
    yield _gauge("failed_runs", "Runs of Dagster whose last attempt failed within the last hour.", value=counts.failed)
    places = {
        (name, state): count
        for name, pool in counts.pools.items()
        for state, count in (("limit", pool.limit), ("claimed", pool.claimed), ("waiting", pool.waiting))
    }
    yield _gauge("pool_steps", "Steps that may run, do run, and wait, by pool.", ("pool", "state"), places)


def _of_journal(storage: Storage) -> Iterator[Metric]:
    """Yield the last serial of each stream, and of its signed part if it was ever signed."""
    serials: dict[tuple[str, str], float | None] = {}
    try:
        for stream in JournalStream:
            if head := read_head(storage, stream.value):
                serials[stream.value, "written"] = head.end
                serials[stream.value, "signed"] = signed_serial(storage, head)
    except (JournalDamagedError, StorageError):  # `journal verify` names the fault
        return
    yield _gauge(
        "journal_serial", "Last serial of complete segments, and of their signature.", ("stream", "state"), serials
    )


def _of_status(status: Status) -> Iterator[Metric]:
    catalog, lag, newest = status.catalog, status.lag, status.leveldbs
    serials = {"index": lag.index_serial, "catalog": lag.complete_serial, "dumps": status.cover.serial or None}
    serials |= {"journal": status.due.journal.serial} | {dataset: one.serial for dataset, one in newest.items()}
    versions = {dataset: one.version for dataset, one in newest.items()}
    ranges = {"open": catalog.open_ranges, "running": catalog.running_ranges}
    yield _gauge("serial", "Last serial of each stage.", "stage", serials)
    yield _gauge("lag_serials", "Serials by which the catalog lags the index.", value=lag.serials)
    yield _gauge("lag_seconds", "Age of the first event that the catalog lacks, or 0.", value=lag.seconds)
    answers = status.answers
    yield _gauge("answers_lag_serials", "Serials by which answers of look-ups lag the index.", value=answers.serials)
    yield _gauge("answers_lag_seconds", "Age of the first event that an answer lacks, or 0.", value=answers.seconds)
    yield _gauge("ranges", "Serial ranges that are not complete.", "state", ranges)
    yield _gauge("distributions", "Live distributions by outcome.", "outcome", catalog.outcomes)
    yield _gauge("unexplained_changes", "Changes of files that no event explains.", value=catalog.unexplained_changes)
    yield _gauge(
        "broken_entries",
        "Entries of the index's responses that violate its protocol; stored, but not used.",
        "source",
        catalog.broken_entries,
    )
    yield _gauge("never_visited_projects", "Projects without a visit.", value=catalog.visited.never_visited)
    yield from _of_scopes(status)
    yield from _of_consumers(status)
    yield _gauge("dumps", "Committed dumps by kind.", "kind", status.dump_counts)
    yield _gauge("leveldb_version", "The newest published version.", "dataset", versions)
    yield _gauge("due", "Units of work that a run would do now, by kind.", "work", status.due.counts)
    to_do = None if status.is_mirror else len(status.to_do())  # a mirror has another status
    yield _gauge("to_do", "Lines of `pypi-assets status` that name a problem; 0 if all is well.", value=to_do)


def _of_consumers(status: Status) -> Iterator[Metric]:
    """Yield metrics of the journal's named readers, if there are any."""
    consumers = {one.name: one for one in status.catalog.consumers}
    if not consumers:
        return
    serials = {name: one.lag_serials for name, one in consumers.items()}
    yield _gauge("journal_consumer_lag_serials", "Serials by which a reader lags the catalog.", "consumer", serials)
    seconds = {name: one.lag_seconds for name, one in consumers.items()}
    yield _gauge("journal_consumer_lag_seconds", "Age of the first event that a reader lacks.", "consumer", seconds)
    letters = {
        (name, state): count
        for name, one in consumers.items()
        for state, count in (("waiting", one.waiting), ("dead", one.dead))
    }
    yield _gauge("journal_letters", "Deliveries that webhooks have not received yet.", ("consumer", "state"), letters)


def _of_scopes(status: Status) -> Iterator[Metric]:
    """Yield metrics of scopes, if there are any."""
    scopes = {one.scope.name: one for one in status.catalog.scopes}
    if not scopes:
        return
    followed = status.catalog.followed_projects
    yield _gauge("followed_projects", "Followed projects with answers, if there are scopes.", value=followed)
    depths = {(name, str(depth)): count for name, one in scopes.items() for depth, count in one.depths.items()}
    yield _gauge("scope_projects", "Projects by scope and depth.", ("scope", "depth"), depths)
    states = {(name, one.state.value): 1 for name, one in scopes.items()}
    yield _gauge("scope_state", "1 for the state of each scope.", ("scope", "state"), states)
    entering = {name: one.entering for name, one in scopes.items()}
    yield _gauge("scope_entering", "Projects of a scope without answers yet.", "scope", entering)
    visits_left = {name: one.visits.todo for name, one in scopes.items()}
    yield _gauge("scope_visits_left", "Projects of a scope to visit.", "scope", visits_left)
    reads_left = {name: one.reads_left for name, one in scopes.items()}
    yield _gauge("scope_reads_left", "Files of a scope to read.", "scope", reads_left)
    beyond = {name: one.beyond for name, one in scopes.items()}
    yield _gauge("scope_beyond_depth", "Projects beyond the depth of a scope.", "scope", beyond)
    yield from _of_kept_files(status)


def _of_kept_files(status: Status) -> Iterator[Metric]:
    """Yield metrics of kept files, if a scope keeps files."""
    scopes = {one.scope.name: one.scope for one in status.catalog.scopes if one.scope.keep_files}
    kept = status.catalog.kept
    if not scopes and not kept.files:
        return
    yield _gauge("kept_files", "Files whose bytes are kept.", value=kept.files)
    yield _gauge("kept_bytes", "Bytes of kept files, each file once.", value=kept.bytes)
    yield _gauge("kept_files_corrupt", "Kept files that were found corrupt.", value=kept.corrupt)
    in_scopes = {name: one.kept_bytes for name, one in scopes.items()}
    yield _gauge("scope_kept_bytes", "Bytes of the kept files of a scope.", "scope", in_scopes)
    budgets = {name: one.most for name, one in scopes.items()}
    yield _gauge("scope_kept_bytes_limit", "Most bytes of the kept files of a scope.", "scope", budgets)
    evicted = {name: one.evicted_files for name, one in scopes.items()}
    yield _gauge("scope_evicted_files", "Evictions of kept files from a scope.", "scope", evicted)


def _gauge(
    name: str,
    text: str,
    label: str | tuple[str, ...] | None = None,
    values: Mapping[str, float | None] | Mapping[tuple[str, str], float | None] = MappingProxyType({}),
    *,
    value: float | None = None,
) -> GaugeMetricFamily:
    """Return a gauge of `value`, or one for each of `values` by the label or labels. Unknown values are omitted."""
    names = [] if label is None else [label] if isinstance(label, str) else list(label)
    family = GaugeMetricFamily(f"pypi_assets_{name}", text, labels=names)
    if label is None and value is not None:
        family.add_metric([], value)
    for key, known in values.items():
        if known is not None:
            family.add_metric([key] if isinstance(key, str) else list(key), known)
    return family
