"""The state of every stage as metrics, in the text format of Prometheus.

The numbers come from `status.py` and `upkeep/due.py`; nothing is judged here.
"""

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

from prometheus_client import CollectorRegistry, generate_latest, start_http_server, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.reports.catalog_totals import work_done
from pypi_assets.catalog.reports.failures import count_failures
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets.settings import Settings
from pypi_assets.status import Status, readable_catalog, status_of


class StatusMetrics(Collector):
    """The metrics as they were taken last, however often they are scraped: a large catalog takes seconds to count."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._taken: list[Metric] = []
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def take(self) -> None:
        """Reads each stage once. A stage that does not answer has `pypi_assets_reachable` 0, and raises nothing."""
        self._taken = list(_metrics(self._settings))

    def collect(self) -> list[Metric]:
        return self._taken

    def text(self) -> str:
        return generate_latest(self.registry).decode()

    def write(self, path: Path) -> None:
        """Writes them whole to a file, for the textfile collector of Prometheus' node exporter."""
        write_to_textfile(str(path), self.registry)

    def listen(self, host: str, port: int) -> str:
        """Answers at this address, in a thread that ends with the process; returns the URL, where `port` can be 0.

        Raises OSError where the address is taken, or is not one of this machine.
        """
        server, _ = start_http_server(port, host, self.registry)
        return f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}/metrics"


def _metrics(settings: Settings) -> Iterator[Metric]:
    versions = {"version": version("pypi-assets"), "extractor_version": str(EXTRACTOR_VERSION)}
    yield InfoMetricFamily("pypi_assets", "Versions of the code.", value=versions)
    try:
        with readable_catalog(settings) as (catalog, missing):
            status = status_of(catalog, settings, missing)
            with catalog.read() as connection:
                failures = count_failures(connection)
                visits, reads = work_done(connection)
    except (CatalogError, SQLAlchemyError):
        yield _gauge("reachable", "Whether the part answered.", "part", {"catalog": 0})
        return
    reachable = {
        "catalog": not status.no_catalog,
        "index": not status.lag.index_error,
        "storage": not status.storage_error,
    }
    yield _gauge("reachable", "Whether the part answered.", "part", reachable)
    yield from _of_status(status)
    yield _gauge("failures", "Reads and visits that failed or were abandoned, by kind.", "kind", failures)
    yield CounterMetricFamily("pypi_assets_visits", "Visits of project pages.", value=visits)
    yield CounterMetricFamily("pypi_assets_read_attempts", "Attempts to read a distribution.", value=reads)


def _of_status(status: Status) -> Iterator[Metric]:
    catalog, lag, newest = status.catalog, status.lag, status.leveldbs
    serials = {"index": lag.index_serial, "catalog": lag.complete_serial, "dumps": status.cover.serial or None}
    serials |= {"journal": status.due.journal.serial} | {dataset: one.serial for dataset, one in newest.items()}
    versions = {dataset: one.version for dataset, one in newest.items()}
    ranges = {"open": catalog.open_ranges, "running": catalog.running_ranges}
    yield _gauge("serial", "How far each stage has come.", "stage", serials)
    yield _gauge("lag_serials", "Serials by which the catalog lags the index.", value=lag.serials)
    yield _gauge("lag_seconds", "Age of the first event that the catalog lacks, 0 without one.", value=lag.seconds)
    answers = status.answers
    yield _gauge("answers_lag_serials", "Serials by which answers of look-ups lag the index.", value=answers.serials)
    yield _gauge(
        "answers_lag_seconds", "Age of the first event that an answer lacks, 0 without one.", value=answers.seconds
    )
    yield _gauge("ranges", "Serial ranges that are not complete.", "state", ranges)
    yield _gauge("distributions", "Live distributions by outcome.", "outcome", catalog.outcomes)
    yield _gauge("unexplained_changes", "Changes of files that no event explains.", value=catalog.unexplained_changes)
    yield _gauge(
        "broken_entries",
        "Entries of the index's answers that break its protocol, kept aside.",
        "source",
        catalog.broken_entries,
    )
    yield _gauge("never_visited_projects", "Projects without a visit.", value=catalog.visited.never_visited)
    yield from _of_scopes(status)
    yield from _of_consumers(status)
    yield _gauge("dumps", "Committed dumps by kind.", "kind", status.dump_counts)
    yield _gauge("leveldb_version", "The newest published version.", "dataset", versions)
    yield _gauge("due", "Units of work that a run would do now, by kind.", "work", status.due.counts)
    yield _gauge(
        "to_do", "Lines of `pypi-assets status` with something to do; 0: all is well.", value=len(status.to_do())
    )


def _of_consumers(status: Status) -> Iterator[Metric]:
    """None where the journal has no named reader."""
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
    yield _gauge("journal_letters", "What webhooks have not received yet.", ("consumer", "state"), letters)


def _of_scopes(status: Status) -> Iterator[Metric]:
    """None where there is no scope."""
    scopes = {one.scope.name: one for one in status.catalog.scopes}
    if not scopes:
        return
    followed = status.catalog.followed_projects
    yield _gauge("followed_projects", "Projects with answers, where scopes decide what is followed.", value=followed)
    depths = {(name, str(depth)): count for name, one in scopes.items() for depth, count in one.depths.items()}
    yield _gauge("scope_projects", "Projects by scope and depth.", ("scope", "depth"), depths)
    states = {(name, one.state.value): 1 for name, one in scopes.items()}
    yield _gauge("scope_state", "1 for the state of each scope.", ("scope", "state"), states)
    entering = {name: one.entering for name, one in scopes.items()}
    yield _gauge("scope_entering", "Projects of a scope without answers yet.", "scope", entering)
    visits_left = {name: one.visits.todo for name, one in scopes.items()}
    yield _gauge("scope_visits_left", "Projects of a scope to be visited.", "scope", visits_left)
    reads_left = {name: one.reads_left for name, one in scopes.items()}
    yield _gauge("scope_reads_left", "Files of a scope to be read.", "scope", reads_left)
    beyond = {name: one.beyond for name, one in scopes.items()}
    yield _gauge("scope_beyond_depth", "Projects that are too deep for a scope.", "scope", beyond)


def _gauge(
    name: str,
    text: str,
    label: str | tuple[str, ...] | None = None,
    values: Mapping[str, float | None] | Mapping[tuple[str, str], float | None] = MappingProxyType({}),
    *,
    value: float | None = None,
) -> GaugeMetricFamily:
    """A gauge of `value`, or one for each of `values` by the label or labels; what is not known is left out."""
    names = [] if label is None else [label] if isinstance(label, str) else list(label)
    family = GaugeMetricFamily(f"pypi_assets_{name}", text, labels=names)
    if label is None and value is not None:
        family.add_metric([], value)
    for key, known in values.items():
        if known is not None:
            family.add_metric([key] if isinstance(key, str) else list(key), known)
    return family
