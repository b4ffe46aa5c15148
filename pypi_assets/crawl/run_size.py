"""How many shards of a full crawl one run takes, by the settings alone: neither the index nor the catalog is opened."""

SHARDS_IN_ONE_RUN = 100
"""Enough runs for several machines, and few enough that their starts do not count."""
SMALL_SELECTION = 10_000
"""As many projects as one process visits and reads within an hour."""


def shards_in_one_run(database_url: str, selected_projects: int) -> int | None:
    """The most shards that a run of a backfill takes, or None for all of them.

    All of them where no second machine could help: the catalog is an SQLite file, so this machine does all the work,
    and one run has all of its cores and its whole rate of requests. Also where few projects are selected (0: all of
    the index). Else several machines may share the shards, and each takes some.

    >>> shards_in_one_run("sqlite:////data/catalog.sqlite", 0) is None
    True
    >>> shards_in_one_run("postgresql+psycopg://host/catalog", 0)
    100
    """
    if database_url.startswith("sqlite") or 0 < selected_projects <= SMALL_SELECTION:
        return None
    return SHARDS_IN_ONE_RUN
