"""The sensor of scopes: it requests a run of each scope with work that no worker has claimed, with the scope's tags.

Which scopes have work is computed in `upkeep/due.py`. Here it becomes run requests, with pauses after failures.
"""

import dagster as dg

from pypi_assets.catalog.work.scopes import all_scopes
from pypi_assets.crawl.scope_crawl import discover_all
from pypi_assets.declared_scopes import declared_scopes, keep_in_line
from pypi_assets.defs.attempts import attempts, failures_in_a_row
from pypi_assets.defs.expected_errors import expected_errors_of_ticks
from pypi_assets.defs.jobs import follow_scopes_job
from pypi_assets.defs.naming import Naming
from pypi_assets.defs.partitions import scope_names
from pypi_assets.defs.resources import CatalogResource, CrawlerResource, SettingsResource
from pypi_assets.defs.scope_tags import tags_of
from pypi_assets.upkeep.due import due_ranges, due_scopes


def scope_work_sensor(naming: Naming, interval_s: int, status: dg.DefaultSensorStatus) -> dg.SensorDefinition:
    job, partitions = naming.job(follow_scopes_job), naming.partitions(scope_names)

    @dg.sensor(
        name=naming.name("scope_work"),
        job=job,
        minimum_interval_seconds=interval_s,
        default_status=status,
        description="Requests a run of `follow_scopes` for each scope with work left: one that was created or resumed,"
        " or whose new projects a range has left to it. Runs that failed are requested again, after growing pauses.",
    )
    def scope_work(
        context: dg.SensorEvaluationContext,
        settings: SettingsResource,
        catalog: CatalogResource,
        crawler: CrawlerResource,
    ) -> dg.SensorResult | dg.SkipReason:
        with expected_errors_of_ticks(interval_s):
            opened = catalog.get()
            if declared := declared_scopes(settings.get()):
                keep_in_line(crawler.for_tick(context.log.warning), declared)
            with opened.read() as connection:
                scopes = {scope.name: scope for scope in all_scopes(connection)}
            if not scopes:
                return dg.SkipReason("there is no scope: `pypi-assets scope create` makes one")
            if not due_ranges(opened).uncrawled:  # a range looks at what it has changed itself
                discover_all(crawler.for_tick(context.log.warning))
            known = context.instance.get_existing_dynamic_partitions(str(partitions.name), list(scopes))
            missing = [name for name in scopes if name not in known]
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
            skip_reason=None if requests else "; ".join(waiting) or "no scope has work left",
            dynamic_partitions_requests=[partitions.build_add_request(missing)] if missing else [],
        )

    return scope_work
