"""The assets, one module a group: `definitions.py` finds them, and gives them their group and their page.

An asset refers to those before it by key, so no module imports another. What all share is in `policy.py`.
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
    "solvability_days": Group("solvability", "docs/dagster.md#see-what-can-no-longer-be-installed"),
}
"""By module. Dagster sorts groups by name, so the names are in the order in which data flows."""


def group_of(module: str) -> Group:
    """Return the group of a module of this package; one that is not in GROUPS makes a group of its own."""
    return GROUPS.get(module, Group(module, "docs/dagster.md#add-an-asset"))
