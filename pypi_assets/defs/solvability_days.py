"""The solvability of each day in Dagster: the asset, its checks, its job and its schedule.

A code location has them if `PYPI_ASSETS_SOLVABILITY_SINCE` names the first day. `resolve/solvability.py` computes a
day.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date
from statistics import median
from typing import Any

import dagster as dg

from pypi_assets.catalog.reports.moments import InexactSerialError
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.factories import AssetJob, ForIndex, asset, check_result
from pypi_assets.defs.jobs import Schedule
from pypi_assets.defs.policy import BUILDING, DATABASE_POOL, ENDS_IN_TIME, beta_parameters
from pypi_assets.defs.reporting import count_log, markdown_table, marking
from pypi_assets.defs.resources import CatalogResource, SettingsResource, StorageResource
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.latest import open_latest
from pypi_assets.resolve.solvability import (
    FORMAT,
    Event,
    NewlyUnsolvable,
    Outcome,
    Solvability,
    SolvabilityError,
    due_days,
    moment_of,
    publish_day,
    read_day,
    read_newest,
    solvability_path,
)
from pypi_assets.settings import Settings, SettingsError
from pypi_assets.storage.store import Storage

_SHOWN_REFUSALS = 10


@dataclass(frozen=True, slots=True)
class SolvabilityDefs:
    """The definitions of all days from the first one on."""

    asset: dg.AssetsDefinition
    checks: tuple[dg.AssetChecksDefinition, ...]
    job: AssetJob
    schedule: Schedule


def first_day(settings: Settings | SettingsError) -> date | None:
    """Return the first day to compute; None if the settings name none."""
    return settings.solvability_since if isinstance(settings, Settings) else None


def build_solvability(since: date, index: ForIndex) -> SolvabilityDefs:
    """Return the definitions, whose partitions are the days in UTC from `since` to yesterday."""
    days = dg.DailyPartitionsDefinition(start_date=since.isoformat())
    key = index.naming.key("solvability")
    solve = asset(
        deps=[dg.AssetDep("depgraph_leveldb", partition_mapping=dg.AllPartitionMapping())],
        partitions=days,
        kinds={"json", "gzip"},
        pool=DATABASE_POOL,
        code_version=str(FORMAT),
    )(solvability)
    with beta_parameters():
        check = dg.asset_check(asset=key, partitions_def=days)
        checks = check(newly_unsolvable), check(solvability_is_whole)

    job = AssetJob(
        "solve_days",
        assets=["solvability"],
        tags=ENDS_IN_TIME | BUILDING,
        description="Resolves the most-required projects as of the end of a day, and finds projects that can no longer"
        " be installed. A partition is a past day in UTC, such as `2026-03-01`. The schedule daily_solvability requests"
        " the missing days of the last week.",
    )

    def runs_of_days(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        today = context.scheduled_execution_time.astimezone(UTC).date()
        due = due_days(context.resources.catalog.get(), context.resources.storage.get(), today)
        made = [day for day in due if day >= since]
        if not made:
            yield dg.SkipReason("each of the last days is computed, or the catalog has no exact answer about it")
        at = context.scheduled_execution_time.isoformat()  # without it, a failed day would never run again
        yield from (dg.RunRequest(run_key=f"{day} at {at}", partition_key=day.isoformat()) for day in made)

    schedule = Schedule(
        "daily_solvability",
        job,
        "29 5 * * *",
        "Finds, once a day, the most-required projects that can no longer be installed.",
        runs_of_days,
        needs=frozenset({"catalog", "storage"}),
    )
    return SolvabilityDefs(solve.make(index), checks, job, schedule)


def solvability(
    context: dg.AssetExecutionContext, settings: SettingsResource, catalog: CatalogResource, storage: StorageResource
) -> dg.MaterializeResult[None]:
    """The solvability of the most-required projects: whether each could be installed at the end of a day, in four
    environments.

    A partition is a day in UTC. It is compared with the day before, and each project that lost its last solution is
    shown with the event that caused it. It reads the catalog, and sends no request to an index. Days can be computed in
    any order, and again. Days before the first exact serial, and days that have not ended, are rejected.
    """
    refused: list[str] = []
    with marking(context) as mark:
        most = settings.get().solvability_projects
        with open_latest(DepgraphReader, storage.get(), settings.get().leveldbs_dir, check_hashes=False) as depgraph:
            required = depgraph.most_required(most)
        for key in sorted(context.partition_keys):
            started = time.monotonic()
            try:
                made, size = publish_day(
                    catalog.get(), storage.get(), required, date.fromisoformat(key), count_log(context, "resolutions")
                )
            except InexactSerialError as error:
                refused.append(str(error))
            else:
                numbers = {"bytes": size, "seconds": round(time.monotonic() - started, 3)}
                mark.data_version = f"{made.moment.serial}.{made.moment.epoch}"
                mark(key, _metadata(storage.get(), made) | numbers)
        if refused:
            more = [f"and {len(refused) - _SHOWN_REFUSALS} more"] if len(refused) > _SHOWN_REFUSALS else []
            raise InexactSerialError("; ".join(refused[:_SHOWN_REFUSALS] + more))
    return mark.result()


def _metadata(storage: Storage, made: Solvability) -> dict[str, Any]:
    sizes = [len(one.pins) for project in made.projects for one in project.outcomes.values() if one.is_solvable]
    return {
        "projects": len(made.projects),
        "environments": len(made.environments),
        **made.counts,
        "newly_unsolvable": len(made.newly_unsolvable),
        "newly_solvable": len(made.newly_solvable),
        "without_search": made.without_search,
        "median_closure": median(sizes) if sizes else 0,
        "largest_closure": max(sizes, default=0),
        "serial": made.moment.serial,
        "epoch": made.moment.epoch,
        "file": dg.MetadataValue.path(storage.uri(solvability_path(made.moment.day))),
        "newly unsolvable": dg.MetadataValue.md(losses_table(made)),
    }


def _checked_day(context: dg.AssetCheckExecutionContext, storage: Storage) -> Solvability:
    """Return the day of the run's partition, or the newest day if the run has none or several."""
    if context.has_partition_key:
        return read_day(storage, date.fromisoformat(context.partition_key))
    return read_newest(storage)


def newly_unsolvable(context: dg.AssetCheckExecutionContext, storage: StorageResource) -> dg.AssetCheckResult:
    """None of the most-required projects lost its last solution on that day, in any of four environments.

    Warns otherwise, with a table of the lost solutions and the events that caused them.
    """
    with expected_errors_as_failures():
        try:
            made = _checked_day(context, storage.get())
        except SolvabilityError as error:
            return check_result(passed=False, severity=dg.AssetCheckSeverity.WARN, description=str(error))
    lost = made.newly_unsolvable
    names = list(dict.fromkeys(one.project for one in lost))
    text = f"on {made.moment.day}, {len(names)} projects lost their solution: {', '.join(names[:10])}"
    result = check_result(
        passed=not lost,
        severity=dg.AssetCheckSeverity.WARN,
        description=text if lost else f"on {made.moment.day}, no project lost its solution",
        metadata={"newly_unsolvable": len(lost), "newly_solvable": len(made.newly_solvable)},
    )
    return result._replace(metadata={**result.metadata, "newly unsolvable": dg.MetadataValue.md(losses_table(made))})


def solvability_is_whole(
    context: dg.AssetCheckExecutionContext, catalog: CatalogResource, storage: StorageResource
) -> dg.AssetCheckResult:
    """The file of the day can be read, and has each project in each environment.

    Warns if more has become known of that day since.
    """
    with expected_errors_as_failures():
        try:
            made = _checked_day(context, storage.get())
        except SolvabilityError as error:
            return check_result(passed=False, description=str(error))
        serial = moment_of(catalog.get(), made.moment.day).serial
    is_current = serial == made.moment.serial
    remark = "" if is_current else f", but the day now ends at serial {serial}: materialize it again"
    return check_result(
        passed=is_current,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{made.moment.day} is complete, as of serial {made.moment.serial}{remark}",
        metadata={"serial": made.moment.serial, "projects": len(made.projects)},
    )


_SHOWN_LOSSES = 50
_LOSS_COLUMNS = ("project", "environment", "version before", "event", "proof")


def losses_table(made: Solvability) -> str:
    """Return a table of a day's first losses, each with the events that caused it, and the first sentence of the
    proof."""
    outcomes = {(one.name, place): outcome for one in made.projects for place, outcome in one.outcomes.items()}
    shown = made.newly_unsolvable[:_SHOWN_LOSSES]
    rows = [
        (one.project, one.environment, one.version, _why(one), _proof(outcomes[one.project, one.environment]))
        for one in shown
    ]
    table = markdown_table(_LOSS_COLUMNS, rows)
    left = len(made.newly_unsolvable) - len(shown)
    return (
        f"{table}\n\nand {left} more: `pypi-assets admin report solvability --day {made.moment.day}`" if left else table
    )


def _why(one: NewlyUnsolvable) -> str:
    if one.events is None:
        return "not searched, since there are many losses"
    return "; ".join(map(_described, one.events)) or "not found in time"


def _described(event: Event) -> str:
    files = ", ".join(event.filenames)
    more = f" and {event.files - len(event.filenames)} more" if event.files > len(event.filenames) else ""
    return f"serial {event.serial}: {event.project}: {event.kind} {files}{more}".rstrip()


def _proof(outcome: Outcome) -> str:
    return outcome.proof[0] if outcome.proof else ""
