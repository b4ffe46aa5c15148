"""Sensors, which request runs: for ranges, a full dump, LevelDB versions, scopes, requested visits, failed full crawls.

`upkeep/due.py` computes pending work from the ledger and the storage, so a later tick makes up for a lost tick or a
failed run. Sensors turn pending work into run requests, with pauses after failures. A tick queries the index for its
last serial, and for a few pages of the changelog if that serial is new. It fails if there is no answer before Dagster's
limit of 60 seconds.

While a follower is running, the sensors request no ranges and no versions: see `follower_drives`. Work that no run of
Dagster did is still shown: see `external_work.py`, which also defines the cursor of these sensors.
"""

from collections.abc import Sequence

import dagster as dg

from pypi_assets.catalog.coordination.claims import FOLLOWER, workloads_at_work
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import last_allocated_serial
from pypi_assets.catalog.observed.events import events_through
from pypi_assets.catalog.publications.allocated_names import allocate_version, last_allocated_version
from pypi_assets.catalog.scopes.stored_scopes import all_scopes
from pypi_assets.catalog.work.requested_visits import are_requests_due
from pypi_assets.components import declared_scopes
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges
from pypi_assets.crawl.scope_crawl import discover_all, keep_in_line
from pypi_assets.crawl.simple_lister import LIST_PAUSE_S
from pypi_assets.defs.attempts import attempts, failures_in_a_row
from pypi_assets.defs.external_work import Partitions, SensorCursor, report_ranges, report_version
from pypi_assets.defs.factories import sensor
from pypi_assets.defs.jobs import (
    dump_late_changes_job,
    follow_scopes_job,
    full_crawl_job,
    full_dump_job,
    incremental_crawl_job,
    redump_job,
    tags_of,
    update_leveldbs_job,
)
from pypi_assets.defs.maintenance_jobs import visit_requested
from pypi_assets.defs.policy import all_of, dump_shards, leveldb_versions, project_parts, scope_names, serial_ranges
from pypi_assets.defs.resources import CatalogResource, CrawlerResource, SettingsResource, StorageResource
from pypi_assets.dumps.cover import Cover, cover
from pypi_assets.leveldbs.versions.build_need import BuildNeed
from pypi_assets.leveldbs.versions.input_lists import version_name
from pypi_assets.upkeep.due import due_crawl, due_datasets, due_full_dump, due_ranges, due_redump, due_scopes

RUNS_A_TICK = 20
CHANGELOG_PAGES_A_TICK = 5
"""Events are stored before their ranges are allocated. Later ticks continue with a longer backlog."""
KEYS_A_TICK = 20_000  # Dagster accepts 25,000
_LEFT = (
    "a follower (`pypi-assets follow`) is running, so ranges and versions are left to it; its work is shown as one"
    " partition every ten minutes"
)


@sensor(
    follow_scopes_job,
    description="Requests a run of `follow_scopes` for each scope with pending work: one that was created or resumed,"
    " or whose new projects a range has left to it. Failed runs are requested again, after growing pauses.",
)
def scope_work(
    context: dg.SensorEvaluationContext, settings: SettingsResource, catalog: CatalogResource, crawler: CrawlerResource
) -> dg.SensorResult | dg.SkipReason:
    naming = settings.naming
    job, names = naming.job(follow_scopes_job), naming.partitions(scope_names)
    opened = catalog.get()
    if declared := declared_scopes(settings.get()):
        keep_in_line(crawler.for_tick(context.log.warning), declared)
    with opened.read() as connection:
        scopes = {scope.name: scope for scope in all_scopes(connection)}
    if not scopes:
        return dg.SkipReason("there is no scope: `pypi-assets scope create` makes one")
    if not due_ranges(opened).uncrawled:  # otherwise the run of a range discovers its own changes
        discover_all(crawler.for_tick(context.log.warning))
    partitions = Partitions(context.instance, naming, names, job.name)
    requests, waiting = [], []
    for name in due_scopes(opened).ready:
        made = attempts(context.instance, job.name, name)
        failed = failures_in_a_row(context.instance, job.name, name)
        if made.running or not failed.due(opened.clock()):
            waiting.append(f"{name}: {(made if made.running else failed).describe(opened.clock())}")
            continue
        run_key = f"{name}:{made.ended_at}"
        requests.append(dg.RunRequest(run_key=run_key, partition_key=name, tags=tags_of(scopes[name])))
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None if requests else "; ".join(waiting) or "no scope has pending work",
        dynamic_partitions_requests=partitions.missing(list(scopes), len(scopes)),
    )


@sensor(
    incremental_crawl_job,
    description="Polls the package index for changes, and requests runs of `incremental_crawl` for them. Failed runs"
    " are requested again, after growing pauses.",
)
def new_serial_range(
    context: dg.SensorEvaluationContext, settings: SettingsResource, catalog: CatalogResource, crawler: CrawlerResource
) -> dg.SensorResult | dg.SkipReason:
    naming = settings.naming
    job, ranges = naming.job(incremental_crawl_job), naming.partitions(serial_ranges)
    opened, limits = catalog.get(), settings.get()
    if reason := not_followable(opened):
        return dg.SkipReason(reason)
    cursor, kept_days = SensorCursor.parse(context.cursor), limits.partitions_kept_days
    partitions = Partitions(context.instance, naming, ranges, job.name)
    report = report_ranges(partitions, opened, cursor, kept_days)
    if follower_drives(opened):
        return report.result(_LEFT)
    least = limits.range_min_age_s, limits.range_min_events
    allocate_next_ranges(crawler.for_tick(context.log.warning), CHANGELOG_PAGES_A_TICK, LIST_PAUSE_S, *least)
    keys = [serials.key for serials in due_ranges(opened).all]
    requests, waiting = _requests(context.instance, job.name, keys, opened.clock())
    return report.result("; ".join(waiting) or _nothing_due(opened), requests, partitions.missing(keys, KEYS_A_TICK))


@sensor(
    full_crawl_job,
    description="Requests the job `full_crawl` again if its last run failed, after growing pauses. A cancelled run is"
    " not requested again.",
)
def failed_full_crawl(
    context: dg.SensorEvaluationContext, settings: SettingsResource, catalog: CatalogResource
) -> dg.RunRequest | dg.SkipReason:
    naming = settings.naming
    job = naming.job(full_crawl_job)
    opened = catalog.get()
    made = failures_in_a_row(context.instance, job.name)
    if not made.ended:
        return dg.SkipReason(f"the last run of the job {job.name} has not failed, if there was one")
    crawl = due_crawl(opened)
    completed = crawl.completed
    if crawl.open is None and completed is not None and (completed.completed_at or 0) > made.ended_at:
        return dg.SkipReason(f"the full crawl at serial {completed.serial} has been completed since")
    if not made.due(opened.clock()):
        return dg.SkipReason(made.describe(opened.clock()))
    return dg.RunRequest(run_key=str(made.ended_at), tags=all_of(project_parts))


@sensor(
    full_dump_job,
    description="Requests the job `full_dump` once, after the first full crawl, if there is no full dump yet.",
)
def first_full_dump(
    context: dg.SensorEvaluationContext, settings: SettingsResource, catalog: CatalogResource
) -> dg.RunRequest | dg.SkipReason:
    naming = settings.naming
    job = naming.job(full_dump_job)
    opened = catalog.get()
    if reason := not_followable(opened):
        return dg.SkipReason(reason)
    full_dump = due_full_dump(opened)
    if not full_dump.is_due:
        return dg.SkipReason(full_dump.reason)
    made = attempts(context.instance, job.name)
    if not made.due(opened.clock()):
        return dg.SkipReason(f"full dump at serial {full_dump.serial}: {made.describe(opened.clock())}")
    return dg.RunRequest(run_key=f"{full_dump.serial}:{made.ended + 1}", tags=all_of(dump_shards))


@sensor(
    dump_late_changes_job,
    redump_job,
    description="Requests the job `dump_late_changes` if facts became known late about ranges that are already dumped,"
    " and the job `redump` if the job `reprocess_distributions` has made records again.",
)
def late_changes(
    context: dg.SensorEvaluationContext, settings: SettingsResource, catalog: CatalogResource
) -> dg.RunRequest | dg.SkipReason:
    naming = settings.naming
    late, redump = naming.job(dump_late_changes_job), naming.job(redump_job)
    opened = catalog.get()
    if due_redump(opened):
        job, tags = redump, all_of(dump_shards)
    elif follower_drives(opened):
        return dg.SkipReason(_LEFT)
    elif due_ranges(opened).are_late_undumped:
        job, tags = late, {}
    else:
        return dg.SkipReason("the dumps have all late facts, or dumps of ranges will have them")
    made = failures_in_a_row(context.instance, job.name)
    if not made.due(opened.clock()):
        return dg.SkipReason(f"{job.name}: {made.describe(opened.clock())}")
    return dg.RunRequest(job_name=job.name, tags=tags)


@sensor(
    update_leveldbs_job,
    description="Requests the job `update_leveldbs` if there are dumps that the newest databases (LevelDB) do not"
    " contain.",
)
def new_leveldb_version(
    context: dg.SensorEvaluationContext, settings: SettingsResource, catalog: CatalogResource, storage: StorageResource
) -> dg.SensorResult:
    naming = settings.naming
    job, versions = naming.job(update_leveldbs_job), naming.partitions(leveldb_versions)
    opened = catalog.get()
    newest, reached = last_allocated_version(opened), cover(opened)
    needs = {name: one.need for name, one in due_datasets(opened, storage.get(), reached).items()}
    published = {name: need.version for name, need in needs.items()}
    cursor = SensorCursor.parse(context.cursor)
    partitions = Partitions(context.instance, naming, versions, job.name)
    report = report_version(partitions, published, cursor, opened.clock())
    if follower_drives(opened):
        return report.result(_LEFT)
    if reason := _no_version_due([*needs.values()], reached):
        return report.result(reason)
    if newest and attempts(context.instance, job.name, version_name(newest.version)).running:
        return report.result(f"version {version_name(newest.version)} is being built")
    version = newest.version if newest else 0
    if not newest or newest.serial < reached.serial or _is_published(version, [*needs.values()]):
        version = allocate_version(opened, reached.serial)
    keys = [version_name(version)]
    requests, waiting = _requests(context.instance, job.name, keys, opened.clock())
    return report.result("; ".join(waiting), requests, partitions.missing(keys, KEYS_A_TICK))


@sensor(
    visit_requested,
    description="Requests the job `visit_requested` if people have requested visits of projects.",
)
def requested_visits(
    context: dg.SensorEvaluationContext, settings: SettingsResource, catalog: CatalogResource
) -> dg.RunRequest | dg.SkipReason:
    job, opened = settings.naming.job(visit_requested), catalog.get()
    if reason := not_followable(opened):
        return dg.SkipReason(reason)
    if follower_drives(opened):
        return dg.SkipReason("a follower (`pypi-assets follow`) is running, so requested visits are left to it")
    with opened.read() as connection:
        if not are_requests_due(connection, opened.clock()):
            return dg.SkipReason("no requested visit is due")
    if attempts(context.instance, job.name).running:
        return dg.SkipReason(f"the job {job.name} is running")
    made = failures_in_a_row(context.instance, job.name)
    if not made.due(opened.clock()):
        return dg.SkipReason(f"{job.name}: {made.describe(opened.clock())}")
    return dg.RunRequest()


def not_followable(catalog: Catalog) -> str | None:
    """Return why the index cannot be followed yet; None if a full crawl or a scope is complete."""
    crawl = due_crawl(catalog)
    if crawl.unfollowable is None:
        return None
    return f"{crawl.unfollowable}: run the job {crawl.first_job} {'first' if crawl.open is None else 'to continue it'}"


def follower_drives(catalog: Catalog) -> bool:
    """Return whether a follower is running. If so, it makes ranges, dumps and versions; otherwise these sensors do.

    Only this function decides that. `external_work.py` shows the work of other processes in both cases.
    """
    with catalog.read() as connection:
        return FOLLOWER in workloads_at_work(connection, catalog.clock())


def _nothing_due(catalog: Catalog) -> str:
    """Return why no range is requested, although all allocated ranges are done."""
    with catalog.read() as connection:
        reached, through = last_allocated_serial(connection), events_through(connection)
    if through > reached:
        return (
            f"events after serial {reached} wait for more events, or until PYPI_ASSETS_RANGE_MIN_AGE_S seconds are over"
        )
    if through < reached:
        return f"the list of projects has shown nothing new since serial {reached}; it is compared every half hour"
    return f"there are no events after serial {reached}"


def _no_version_due(needs: Sequence[BuildNeed], reached: Cover) -> str | None:
    """Return why no LevelDB version is due; None if there is one."""
    if not reached.dumps:
        return "there is no full dump to build from yet: run the job full_dump"
    if any(need.is_due for need in needs):
        return None
    unbuildable = [need.reason for need in needs if not need.is_buildable]
    return "; ".join([f"the newest versions have all dumps, up to serial {reached.serial}", *unbuildable])


def _is_published(version: int, needs: Sequence[BuildNeed]) -> bool:
    """Return whether a dataset that is due already has this version or a newer one, so that a new number is needed."""
    return any(need.is_due and (need.version or 0) >= version for need in needs)


def _requests(
    instance: dg.DagsterInstance, job: str, keys: list[str], now: float
) -> tuple[list[dg.RunRequest], list[str]]:
    """Return run requests for the partitions that are due, and why the other partitions are not due."""
    requests, waiting = [], []
    for key in keys[:RUNS_A_TICK]:
        made = attempts(instance, job, key)
        if made.due(now):
            requests.append(dg.RunRequest(run_key=f"{key}:{made.ended + 1}", partition_key=key))
        else:
            waiting.append(f"{key}: {made.describe(now)}")
    return requests, waiting


SENSORS = [
    failed_full_crawl,
    new_serial_range,
    first_full_dump,
    late_changes,
    new_leveldb_version,
    scope_work,
    requested_visits,
]
