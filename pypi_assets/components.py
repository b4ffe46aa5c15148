"""Create the parts of the program from the settings, for the command line and for Dagster.

The work of these parts does not belong here.
"""

import math
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

from sqlalchemy.engine import make_url

from pypi_assets.catalog.coordination.rates import SharedRate
from pypi_assets.catalog.database import Catalog, NoCatalogError, open_catalog, open_existing_catalog, open_to_read
from pypi_assets.catalog.observed.observations import Observations, observed_instance
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.publications.dump_columns import DumpFormat
from pypi_assets.catalog.work.full_crawls import catalog_identity, followed_index
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.reader_pool import ReaderPool
from pypi_assets.errors import FIRST_COMMANDS
from pypi_assets.iceberg.table_catalog import TableOptions
from pypi_assets.index.client import IndexClient
from pypi_assets.index.connections import Network
from pypi_assets.index.detection import Detection, detect
from pypi_assets.index.errors import TransientError
from pypi_assets.index.kind_names import AUTO, PAGES
from pypi_assets.index.kinds import IndexParts, kind_named
from pypi_assets.index.observing.round_state import PollingPolicy
from pypi_assets.index.protocol import PackageIndex
from pypi_assets.index.rate import RateLimit, Rates
from pypi_assets.index.transport import Retries, Timeouts
from pypi_assets.index.urls import addresses_of, redact, with_credentials_of
from pypi_assets.progress import Progress
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.setting_sources import read_all_indexes, read_variables
from pypi_assets.settings import AUTO_HOSTS, Settings, is_loopback
from pypi_assets.storage.root_owner import NEW, RootOwner, claimed_on_write, require_claimable
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets.visit_policies import VISIT_POLICIES, VisitPolicy

_CHANGELOG_CALLS_PER_SECOND = 1.0  # PyPI asks for this limit
_DETECTION_ATTEMPTS = 2
_DETECTION_PATIENCE_S = 20.0
"""Seconds to wait for a connection, and for the next bytes of a response, while the kind of an index is detected."""


def index_from(
    settings: Settings,
    catalog: Catalog | None = None,
    *,
    patience_s: float = math.inf,
    detects: bool = False,
    followed_url: str | None = None,
) -> PackageIndex:
    """Return the index, of the kind that the settings name. With `catalog`, all processes that use it share the rate
    limits.

    PYPI_ASSETS_LISTER=auto stands for the kind of the index that the catalog follows. If the catalog follows none yet,
    the kind is detected by requests if `detects` is true. Without `catalog`, `followed_url` is the index that a catalog
    follows, or None if it is unknown.

    With `patience_s`, each request is sent once. It waits at most this long for its rate limit, for a connection, and
    for the next bytes. Raises SettingsError if the index is on another machine and no contact is set, and the errors of
    `detect_index`.
    """
    settings.require_contact()
    kind = settings.lister
    if kind == AUTO and catalog is not None:
        with catalog.read() as connection:
            counted = observed_instance(connection)
            followed_url = counted or followed_index(connection)
        kind = PAGES if counted else AUTO
        if followed_url is None and detects:
            detection = detect_index(settings)
            followed_url, kind = detection.index_url, detection.lister
    client = _client(settings, index_url_of(settings, followed_url), _rates(settings, catalog, patience_s), patience_s)
    parts = IndexParts(
        client,
        frozenset(settings.projects),
        memory=None if catalog is None else Observations(catalog, client.index_url),
        policy=polling_policy(settings),
        at_once=settings.max_connections,
        round_s=None if patience_s == math.inf else patience_s,
    )
    return kind_named(kind).open(parts)


def index_url_of(settings: Settings, followed_url: str | None) -> str:
    """Return the URL of the index. PYPI_ASSETS_LISTER=auto adds the folder at which a catalog follows its list."""
    url = settings.index_url
    if settings.lister == AUTO and followed_url in addresses_of(redact(url)):
        return with_credentials_of(url, followed_url)
    return url


def detect_index(settings: Settings) -> Detection:
    """Detect the kind and the address of the index by a few requests. Each is repeated at most once.

    Raises SettingsError if a contact is missing, and PackageIndexError like `detect`.
    """
    settings.require_contact()
    rates = _rates(settings, None, math.inf)
    attempts = min(settings.request_attempts, _DETECTION_ATTEMPTS)
    with _client(settings, settings.index_url, rates, _DETECTION_PATIENCE_S, attempts) as client:
        return detect(client, settings.index_url, settings.projects)


def _client(settings: Settings, url: str, rates: Rates, patience_s: float, attempts: int | None = None) -> IndexClient:
    """Return a client that sends each request `attempts` times; the default follows the settings and `patience_s`."""
    if attempts is None:
        attempts = settings.request_attempts if patience_s == math.inf else 1
    return IndexClient(
        url,
        changelog_url=settings.resolved_changelog_url,
        contact=settings.contact,
        max_connections=settings.max_connections,
        rates=rates,
        allowed_file_hosts=() if settings.allowed_file_hosts == AUTO_HOSTS else settings.allowed_file_hosts,
        network=Network(
            proxy=settings.proxy,
            ca_file=str(settings.ca_file) if settings.ca_file else None,
            client_cert=str(settings.client_cert) if settings.client_cert else None,
        ),
        timeouts=Timeouts(min(settings.connect_timeout_s, patience_s), min(settings.read_timeout_s, patience_s)),
        retries=Retries(attempts, settings.retry_pause_s),
    )


def _rates(settings: Settings, catalog: Catalog | None, patience_s: float) -> Rates:
    changelog_url = settings.resolved_changelog_url
    is_own_index = is_loopback(urlsplit(changelog_url).hostname)
    calls_per_second = math.inf if is_own_index else _CHANGELOG_CALLS_PER_SECOND
    sleep = partial(_wait_for_turn, patience_s, redact(changelog_url))
    if catalog is None:
        return Rates(
            RateLimit(settings.requests_per_second, sleep=sleep),
            RateLimit(calls_per_second, burst_s=0, sleep=sleep),
        )
    return Rates(
        SharedRate(catalog, "requests", settings.requests_per_second, sleep=sleep),
        SharedRate(catalog, "changelog", calls_per_second, burst_s=0, sleep=sleep),
    )


def polling_policy(settings: Settings) -> PollingPolicy:
    """Return when the projects of an index without serials are polled."""
    return PollingPolicy(
        requests=settings.poll_requests,
        shortest_s=settings.poll_shortest_s,
        longest_s=max(settings.poll_longest_s, settings.poll_shortest_s),
        confirm_after_s=settings.poll_confirm_s,
        visits=_visit_policy(settings),
    )


def _visit_policy(settings: Settings) -> VisitPolicy:
    return VISIT_POLICIES[settings.visit_policy]


def _wait_for_turn(longest_s: float, url: str, seconds: float) -> None:
    if seconds > longest_s:
        raise TransientError(f"no request is allowed for another {seconds:.0f} s", url)
    time.sleep(seconds)


def catalog_from(settings: Settings) -> Catalog:
    """Return the catalog, and create its tables if there are none. Raises CatalogError."""
    return _with_settings(open_catalog(settings.resolved_database_url), settings)


def _with_settings(catalog: Catalog, settings: Settings) -> Catalog:
    ending = DumpFormat(settings.dump_format).ending
    return replace(catalog, dump_ending=ending, visit_policy=_visit_policy(settings))


def existing_catalog_from(settings: Settings) -> Catalog:
    """Return the catalog for readers, which create nothing. Raises CatalogError; NoCatalogError names the place."""
    try:
        return _with_settings(open_existing_catalog(settings.resolved_database_url), settings)
    except NoCatalogError as error:
        place = f"in {settings.resolved_home}"
        if settings.database_url:
            place = f"at {make_url(settings.resolved_database_url).render_as_string(hide_password=True)}"
        variable = read_variables().label("database_url" if settings.database_url else "home")
        raise NoCatalogError(f"there is no catalog {place} ({error}): {FIRST_COMMANDS}; or check {variable}") from error


def catalog_to_read(settings: Settings) -> Catalog:
    """Return a read-only catalog for the service, whose statements have the time limit of an answer.

    Raises CatalogError, and NoCatalogError if there is none.
    """
    existing_catalog_from(settings).close()  # for its error messages, and the check of the version of the tables
    return _with_settings(open_to_read(settings.resolved_database_url, settings.service_timeout_s), settings)


def storage_from(settings: Settings, catalog: Catalog | None = None, *, read_only: bool = False) -> Storage:
    """Return the object store. If it is writable, the first write claims its root for `catalog`.

    Without `catalog`, the root is claimed for the settings' index. Raises StorageError if the root belongs to another
    index, to another catalog or to a mirror. A later write also raises it if this happened in the meantime.
    """
    storage = open_storage(settings.resolved_storage_url, read_only=read_only)
    if read_only:
        return storage
    claimant = partial(_claimant, settings, catalog)
    require_claimable(storage, claimant())
    return claimed_on_write(storage, claimant)


def _claimant(settings: Settings, catalog: Catalog | None) -> RootOwner:
    if catalog is None:
        return RootOwner(redact(settings.index_url))
    with catalog.read() as connection:
        index_url, identity = followed_index(connection), catalog_identity(connection)
    return RootOwner(index_url or redact(settings.index_url), identity or NEW)


def table_options_from(settings: Settings) -> TableOptions:
    """Return where the Iceberg tables are, and which catalog names them."""
    return TableOptions(settings.tables_catalog_url, settings.tables_namespace)


def limits_from(settings: Settings) -> ReadLimits:
    """Return the limits for reading one distribution."""
    return ReadLimits(
        max_file_bytes=settings.max_file_bytes,
        max_metadata_bytes=settings.max_metadata_bytes,
        max_members=settings.max_members,
        max_name_length=settings.max_name_length,
        max_inflated_bytes=settings.max_inflated_bytes,
        max_expansion_ratio=settings.max_expansion_ratio,
        seconds=settings.max_read_seconds,
    )


def readers_from(settings: Settings) -> ReaderPool:
    """Return the pool of processes that read distributions. They start when needed, and end when the pool is closed.

    It has a process for each connection, since a server closes the connection of a download that waits for a reader.
    For re-reading stored files, it has at least one process for each processor.
    """
    return ReaderPool(
        limits_from(settings),
        size=max(settings.max_connections, os.cpu_count() or 1),
        must_contain=settings.containment == "required",
    )


def crawler_from(
    settings: Settings,
    index: PackageIndex,
    catalog: Catalog,
    storage: Storage,
    readers: ReaderPool,
    report: Callable[[Progress], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> Crawler:
    """Return the parts of a crawl. `report` receives its progress, and `notify` receives messages for people."""
    crawler = Crawler(
        index=index,
        catalog=catalog,
        storage=storage,
        readers=readers,
        selection=Selection(frozenset(settings.projects)),
        connections=settings.max_connections,
        lister=PAGES if index.is_observed and settings.lister == AUTO else settings.lister,
        range_events=settings.range_events,
        revisit_share=settings.revisit_share,
        retry_pause_s=settings.retry_pause_s,
        retry_deadline_s=settings.retry_deadline_s,
        max_attempts=settings.max_attempts,
        in_flight=settings.in_flight,
        claim_lease_s=settings.claim_lease_s,
        trusts_first_file_host=settings.allowed_file_hosts == AUTO_HOSTS,
    )
    crawler = crawler if report is None else replace(crawler, report=report)
    return crawler if notify is None else replace(crawler, notify=notify)


def declared_scopes(settings: Settings) -> list[ScopePlan]:
    """Return the plans of the scopes that the file of indexes declares for the index of `settings`.

    Raises SettingsError, also for errors in the files that a scope names.
    """
    indexes = None if settings.index is None else read_all_indexes()
    index = None if indexes is None or settings.index is None else indexes.named(settings.index)
    return [] if index is None else index.scope_plans()
