"""Which of the most-required projects can be installed at the end of each day, and what broke those that cannot."""

import time
from datetime import date
from statistics import median
from typing import Any

import dagster as dg

from pypi_assets.catalog.reports.answerable_serials import NotExactError
from pypi_assets.defs.losses import losses_table
from pypi_assets.defs.marking import count_log, marking
from pypi_assets.defs.partitions import days
from pypi_assets.defs.policy import DATABASE_POOL, RETRIES
from pypi_assets.defs.resources import CatalogResource, SettingsResource, StorageResource
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.latest import open_latest
from pypi_assets.resolve.solvability import publish_day
from pypi_assets.resolve.solvability_files import FORMAT, Solvability, solvability_path
from pypi_assets.settings import SettingsError
from pypi_assets.storage.store import Storage

_SHOWN_REFUSALS = 10


@dg.asset(
    deps=[dg.AssetDep("depgraph_leveldb", partition_mapping=dg.AllPartitionMapping())],
    partitions_def=days,
    backfill_policy=dg.BackfillPolicy.multi_run(1),
    kinds={"json", "gzip"},
    pool=DATABASE_POOL,
    retry_policy=RETRIES,
    code_version=str(FORMAT),
)
def solvability(
    context: dg.AssetExecutionContext, settings: SettingsResource, catalog: CatalogResource, storage: StorageResource
) -> dg.MaterializeResult[None]:
    """Whether each of the most-required projects could be installed at the end of a day, in four environments.

    A partition is a day in UTC. It is compared with the day before it, and each project that lost its last solution is
    shown with the event that did it. The catalog is read, and no index. Days can be made in any order, and again. Those
    before the first exact serial, and those that are not over, are refused.
    """
    refused: list[str] = []
    with marking(context) as mark:
        most = settings.get().solvability_projects
        if not most:
            raise SettingsError("PYPI_ASSETS_SOLVABILITY_PROJECTS is 0: set how many projects are resolved")
        with open_latest(DepgraphReader, storage.get(), settings.get().leveldbs_dir, check_hashes=False) as depgraph:
            required = depgraph.most_required(most)
        for key in sorted(context.partition_keys):
            started = time.monotonic()
            try:
                made, size = publish_day(
                    catalog.get(), storage.get(), required, date.fromisoformat(key), count_log(context, "resolutions")
                )
            except NotExactError as error:
                refused.append(str(error))
            else:
                numbers = {"bytes": size, "seconds": round(time.monotonic() - started, 3)}
                mark(key, _metadata(storage.get(), made) | numbers)
        if refused:
            more = [f"and {len(refused) - _SHOWN_REFUSALS} more"] if len(refused) > _SHOWN_REFUSALS else []
            raise NotExactError("; ".join(refused[:_SHOWN_REFUSALS] + more))
    return dg.MaterializeResult()


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
