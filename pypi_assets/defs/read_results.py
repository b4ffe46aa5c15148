"""What an asset's page shows of reads: which files failed, and totals over all files that are live.

What failed is listed in `catalog/reports/failures.py`, and totals are in `upkeep/live_totals.py`.
"""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.failures import Failure
from pypi_assets.defs.markdown import markdown_table
from pypi_assets.upkeep.live_totals import live_totals

SHOWN_FAILURES = 50
_LIVE, _READ, _FAILED, _COUNTED_AT = "total: live", "total: read", "total: failed", "total: counted at"


def failure_table(failures: Sequence[Failure], count: int) -> dict[str, dg.MetadataValue[Any]]:
    """The metadata that names files that failed: a table of `failures`, `count` in all, and the command that lists the
    rest; nothing where none failed.
    """
    if not failures:
        return {}
    shown = failures[:SHOWN_FAILURES]
    rows = [(one.filename, one.kind, one.text, one.attempts) for one in shown]
    table = markdown_table(("file", "kind", "text", "attempts"), rows)
    more = f"and {count - len(shown)} more. " if count > len(shown) else ""
    commands = [f'`pypi-assets failures list --kind "{kind}"`' for kind in dict.fromkeys(one.kind for one in failures)]
    return {"failures": dg.MetadataValue.md(f"{table}\n\n{more}All of a kind, of all projects: {', '.join(commands)}")}


def total_metadata(catalog: Catalog) -> dict[str, dg.MetadataValue[Any]]:
    """The totals over all files that are live, as metadata of each partition of a run."""
    totals = live_totals(catalog)
    return {
        _LIVE: dg.MetadataValue.int(totals.live),
        _READ: dg.MetadataValue.int(totals.read),
        _FAILED: dg.MetadataValue.int(totals.failed),
        _COUNTED_AT: dg.MetadataValue.timestamp(catalog.clock()),
    }
