"""The overviews of projects that a catalog has at a serial, equal to those in a published version of `modules`."""

from collections import defaultdict
from collections.abc import Collection
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pypi_assets.distributions.refusals import accepted_or_all
from pypi_assets.leveldbs.datasets.modules.overview import Overview, marks_of, overview_of
from pypi_assets.leveldbs.format.version_order import canonical_version, newest_release

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog


def overviews_at(catalog: "Catalog", serial: int, projects: Collection[str]) -> dict[str, Overview]:
    """Return the overviews of these projects (normalized). A project costs by the count of its files."""
    from pypi_assets.catalog.reports.past_releases import (  # the database takes long to load
        live_files_of,
        rows_of_files,
    )

    files: defaultdict[str, dict[str, list[Any]]] = defaultdict(dict)
    of_newest: list[int] = []
    live = defaultdict(list)
    for one in live_files_of(catalog, serial, projects):
        live[one.normalized].append(one)
        marks = {"yanked": True} if one.yanked else {}
        if one.is_rejected:
            marks["rejected"] = True
        files[one.normalized][one.filename] = [one.version, None, "", one.live_since, marks]
    for found in live.values():
        counted = accepted_or_all(found, attrgetter("is_rejected"))
        newest = newest_release({(one.version, one.yanked) for one in counted})
        of_newest += [one.distribution_id for one in counted if canonical_version(one.version) == newest]
    for row in rows_of_files(catalog, serial, of_newest):
        files[row["normalized"]][row["filename"]][4] = marks_of(row)
    return {project: overview_of(entries) for project, entries in files.items()}
