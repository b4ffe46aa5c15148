"""The assets, one module per group. `definitions.py` finds them, and gives them their group and their page of the docs.

An asset names the assets that it depends on by key, so these modules do not import each other. `policy.py` has their
common settings.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Group:
    """The group of a module's assets, and the page and heading of the docs that describe them."""

    name: str
    page: str


GROUPS = {
    "full_crawl": Group("crawl_full", "docs/dagster.md#run-a-full-crawl"),
    "followed_scopes": Group("crawl_scopes", "docs/dagster.md#follow-scopes"),
    "incremental_crawl": Group("crawl_incremental", "docs/dagster.md#follow-an-index"),
    "data_dumps": Group("data_dumps", "docs/formats.md#dumps"),
    "journal": Group("journal", "docs/journal.md"),
    "leveldbs": Group("leveldbs", "docs/ask.md"),
    "parquet": Group("parquet", "docs/formats.md#export-to-parquet"),
    "iceberg": Group("parquet", "docs/formats.md#query-iceberg-tables"),
    "solvability_days": Group("solvability", "docs/dagster.md#see-what-can-no-longer-be-installed"),
}
"""The groups by module. Dagster sorts groups by name, so that these names are in the order of the data flow."""


def group_of(module: str) -> Group:
    """Return the group of a module of this package. A module that is missing in GROUPS has its own group."""
    return GROUPS.get(module, Group(module, "docs/dagster.md#add-an-asset"))
