"""Sensors: they follow the index in serial ranges, dump what a first full crawl found, ask for LevelDB versions, and go
on with a full crawl whose run failed.

The catalog's ledger and the storage tell what is to be done, so a tick that was lost, or a run that failed, is made
good by a later tick. A tick asks the index for its last serial, and for a few pages of the
changelog where that is new. It fails where no answer comes soon, before Dagster's 60 seconds are over.

A sensor's cursor tells up to where what comes without end has its partitions, so that a tick looks at what came since.
It is a hint: without it, all that is to be shown is looked at once.
"""

from collections.abc import Mapping, Sequence

import dagster as dg
from dagster import ResourceParam

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import last_allocated_serial
from pypi_assets.catalog.observed.events import events_through
from pypi_assets.catalog.publications.leveldb_versions import allocate_version, last_allocated_version
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges
from pypi_assets.defs.attempts import attempts, failures_in_a_row
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.jobs import full_crawl_job, full_dump_job, incremental_crawl_job, update_leveldbs_job
from pypi_assets.defs.partitions import all_of, dump_shards, leveldb_versions, project_shards, serial_ranges
from pypi_assets.defs.parts import Parts
from pypi_assets.defs.pruning import shown_ranges, shown_versions
from pypi_assets.dumps.cover import Cover, cover
from pypi_assets.leveldbs.versions.build_need import BuildNeed
from pypi_assets.leveldbs.versions.leveldb_paths import version_name
from pypi_assets.upkeep.due import due_crawl, due_datasets, due_full_dump, due_ranges

RUNS_A_TICK = 20
CHANGELOG_PAGES_A_TICK = 5
"""Events are stored before their ranges are asked for; a longer backlog is taken up by the ticks that follow."""
LIST_PAUSE_S = 1_800.0
"""How long a tick waits after the list of projects was asked for, in seconds: it is large, and cached about as long."""
KEYS_A_TICK = 20_000  # Dagster takes 25,000


def new_serial_range_sensor(interval_s: int, status: dg.DefaultSensorStatus) -> dg.SensorDefinition:
    @dg.sensor(
        name="new_serial_range",
        job=incremental_crawl_job,
        minimum_interval_seconds=interval_s,
        default_status=status,
        description="Asks for the serial ranges up to the index's last serial, and again for those that failed.",
    )
    def new_serial_range(
        context: dg.SensorEvaluationContext, parts: ResourceParam[Parts]
    ) -> dg.SensorResult | dg.SkipReason:
        with expected_errors_as_failures():
            if reason := _not_followable(parts.catalog):
                return dg.SkipReason(reason)
            crawler = parts.crawler_of_tick(context.log.warning)
            least = parts.settings.range_min_age_s, parts.settings.range_min_events
            allocate_next_ranges(crawler, CHANGELOG_PAGES_A_TICK, LIST_PAUSE_S, *least)
            unfinished = due_ranges(parts.catalog).all
            entered = _entered(context.cursor)
            shown = shown_ranges(parts.catalog, parts.settings.partitions_kept_days, entered)
            added, cursor = _entering(
                context.instance, serial_ranges, {serials.key: serials.end for serials in shown}, entered
            )
            requests, waiting = _requests(
                context.instance,
                incremental_crawl_job.name,
                [serials.key for serials in unfinished],
                parts.catalog.clock(),
            )
            nothing = _nothing_due(parts.catalog)
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else "; ".join(waiting) or nothing,
            cursor=cursor,
            dynamic_partitions_requests=added,
        )

    return new_serial_range


def failed_full_crawl_sensor(interval_s: int, status: dg.DefaultSensorStatus) -> dg.SensorDefinition:
    @dg.sensor(
        name="failed_full_crawl",
        job=full_crawl_job,
        minimum_interval_seconds=interval_s,
        default_status=status,
        description="Asks again for a full crawl whose last run failed. One that was cancelled is left alone.",
    )
    def failed_full_crawl(
        context: dg.SensorEvaluationContext, parts: ResourceParam[Parts]
    ) -> dg.RunRequest | dg.SkipReason:
        with expected_errors_as_failures():
            catalog = parts.catalog
            made = failures_in_a_row(context.instance, full_crawl_job.name)
            if not made.ended:
                return dg.SkipReason("the last run of the job full_crawl has not failed, if there was one")
            crawl = due_crawl(catalog)
            completed = crawl.completed
            if crawl.open is None and completed is not None and (completed.completed_at or 0) > made.ended_at:
                return dg.SkipReason(f"the full crawl at serial {completed.serial} has been completed since")
            if not made.due(catalog.clock()):
                return dg.SkipReason(made.describe(catalog.clock()))
        return dg.RunRequest(run_key=str(made.ended_at), tags=all_of(project_shards))

    return failed_full_crawl


def first_full_dump_sensor(interval_s: int, status: dg.DefaultSensorStatus) -> dg.SensorDefinition:
    @dg.sensor(
        name="first_full_dump",
        job=full_dump_job,
        minimum_interval_seconds=interval_s,
        default_status=status,
        description="Asks for a full dump once a full crawl is complete and there is none.",
    )
    def first_full_dump(
        context: dg.SensorEvaluationContext, parts: ResourceParam[Parts]
    ) -> dg.RunRequest | dg.SkipReason:
        with expected_errors_as_failures():
            catalog = parts.catalog
            if reason := _not_followable(catalog):
                return dg.SkipReason(reason)
            full_dump = due_full_dump(catalog)
            if full_dump.serial is None:
                return dg.SkipReason(full_dump.reason)
            serial = full_dump.serial
            made = attempts(context.instance, full_dump_job.name)
            if not made.due(catalog.clock()):
                return dg.SkipReason(f"full dump at serial {serial}: {made.describe(catalog.clock())}")
        return dg.RunRequest(run_key=f"{serial}:{made.ended + 1}", tags=all_of(dump_shards))

    return first_full_dump


def new_leveldb_version_sensor(interval_s: int, status: dg.DefaultSensorStatus) -> dg.SensorDefinition:
    @dg.sensor(
        name="new_leveldb_version",
        job=update_leveldbs_job,
        minimum_interval_seconds=interval_s,
        default_status=status,
        description="Asks for a LevelDB version once there are dumps that the newest one does not hold.",
    )
    def new_leveldb_version(
        context: dg.SensorEvaluationContext, parts: ResourceParam[Parts]
    ) -> dg.SensorResult | dg.SkipReason:
        with expected_errors_as_failures():
            catalog = parts.catalog
            reached = cover(catalog)
            needs = [one.need for one in due_datasets(catalog, parts.storage, reached).values()]
            if reason := _no_version_due(needs, reached):
                return dg.SkipReason(reason)
            newest = last_allocated_version(catalog)
            if newest and attempts(context.instance, update_leveldbs_job.name, version_name(newest.version)).running:
                return dg.SkipReason(f"version {version_name(newest.version)} is being built")
            if not newest or newest.serial < reached.serial or _is_published(newest.version, needs):
                allocate_version(catalog, reached.serial)
            entered = _entered(context.cursor)
            known = {
                version_name(version): version
                for version in shown_versions(catalog, parts.settings.partitions_kept_days, entered)
            }
            added, cursor = _entering(context.instance, leveldb_versions, known, entered)
            newest_name = list(known)[-1:]
            requests, waiting = _requests(context.instance, update_leveldbs_job.name, newest_name, catalog.clock())
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else "; ".join(waiting),
            cursor=cursor,
            dynamic_partitions_requests=added,
        )

    return new_leveldb_version


def _not_followable(catalog: Catalog) -> str | None:
    """Why the index cannot be followed yet; None where a full crawl is complete."""
    crawl = due_crawl(catalog)
    if crawl.is_followable:
        return None
    if crawl.open is not None:
        return (
            f"the full crawl at serial {crawl.open.serial} is not complete yet: run the job full_crawl to continue it"
        )
    return "no full crawl is complete yet: run the job full_crawl first"


def _nothing_due(catalog: Catalog) -> str:
    """Why no range is asked for, where all that were are done."""
    with catalog.read() as connection:
        reached, through = last_allocated_serial(connection), events_through(connection)
    if through > reached:
        return (
            f"what is new beyond serial {reached} waits for more of it, or until PYPI_ASSETS_RANGE_MIN_AGE_S are over"
        )
    return f"nothing is new beyond serial {reached}"


def _no_version_due(needs: Sequence[BuildNeed], reached: Cover) -> str | None:
    """Why no LevelDB version is due; None where one is."""
    if not reached.dumps:
        return "there is no full dump to build from yet: run the job full_dump"
    if any(need.is_due for need in needs):
        return None
    unbuildable = [need.reason for need in needs if not need.is_buildable]
    return "; ".join([f"the newest versions hold all dumps, up to serial {reached.serial}", *unbuildable])


def _is_published(version: int, needs: Sequence[BuildNeed]) -> bool:
    """Whether a dataset that is due has that version, or a newer one, already: another number is needed then."""
    return any(need.is_due and (need.version or 0) >= version for need in needs)


def _entered(cursor: str | None) -> int:
    """The serial, or the version, up to which a sensor has brought partitions into Dagster."""
    return int(cursor) if cursor and cursor.isdecimal() else 0


def _entering(
    instance: dg.DagsterInstance, partitions: dg.DynamicPartitionsDefinition, keys: Mapping[str, int], entered: int
) -> tuple[list[dg.AddDynamicPartitionsRequest], str]:
    """What brings those of `keys` that the instance lacks into it, and the cursor after that.

    Each key, in order, comes with the serial or the version that the cursor names once it is there.
    """
    known = instance.get_existing_dynamic_partitions(str(partitions.name), list(keys))
    missing = [key for key in keys if key not in known][:KEYS_A_TICK]
    last = missing[-1:] if len(missing) == KEYS_A_TICK else list(keys)[-1:]
    return [partitions.build_add_request(missing)] if missing else [], str(max([entered, *(keys[key] for key in last)]))


def _requests(
    instance: dg.DagsterInstance, job: str, keys: list[str], now: float
) -> tuple[list[dg.RunRequest], list[str]]:
    """A run of each partition that is due, and why the others are not."""
    requests, waiting = [], []
    for key in keys[:RUNS_A_TICK]:
        made = attempts(instance, job, key)
        if made.due(now):
            requests.append(dg.RunRequest(run_key=f"{key}:{made.ended + 1}", partition_key=key))
        else:
            waiting.append(f"{key}: {made.describe(now)}")
    return requests, waiting


def build_sensors(interval_s: int, *, on: bool) -> list[dg.SensorDefinition]:
    """All sensors, each looking every `interval_s` seconds; `on` from the start, or once a person turns it on."""
    status = dg.DefaultSensorStatus.RUNNING if on else dg.DefaultSensorStatus.STOPPED
    return [
        failed_full_crawl_sensor(interval_s, status),
        new_serial_range_sensor(interval_s, status),
        first_full_dump_sensor(interval_s, status),
        new_leveldb_version_sensor(interval_s, status),
    ]
