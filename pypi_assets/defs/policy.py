"""How work runs in Dagster, whatever it does: retries, pools, tags, and how much one run takes.

Every asset, check and job may import this. It imports none of them, and nothing of the pipeline.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

RETRIES = dg.RetryPolicy(max_retries=2, delay=10, backoff=dg.Backoff.EXPONENTIAL)

INDEX_POOL = "index"
"""Of steps that talk to the index."""
DATABASE_POOL = "database"
"""Of steps that read much of the catalog."""

PARTS_IN_ONE_RUN = 10
"""Of the 100 parts of a full crawl, if several machines share it."""

ONE_AT_A_TIME_TAG = "pypi-assets/one-at-a-time"
"""`dagster.yaml` limits the runs of equal value to one."""
ENDS_IN_TIME = {"dagster/max_runtime": str(12 * 3600)}  # after that, a run whose machine died counts as failed
FROM_SCRATCH_TAG = "pypi-assets/anew"
"""Of a run that must not join an older full dump. A job's config does not reach runs of all shards."""
REPORTED_TAG = "pypi-assets/told"
"""Of a failed run for which a notice was sent."""

NOTICE_OF = "pypi-assets/notice-of"
"""The metadata of a check whose failures can be about several things: of each other text, another notice is sent."""
ON_FAILURE = "pypi-assets/on-failure"
"""The metadata of a job whose failure needs a person: what to do."""


@contextmanager
def beta_parameters() -> Iterator[None]:
    """Allow parameters of Dagster that are in beta or preview within the block, for definitions made by a function.

    Dagster is pinned. Definitions at the top of a module need no block: the package ignores the warnings on import.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=dg.BetaWarning)
        warnings.simplefilter("ignore", category=dg.PreviewWarning)
        yield


def leveldb_asset(dataset: str) -> str:
    """The asset whose partitions are the versions of a dataset, and the pool of its builds: one publishes at a time."""
    return f"{dataset}_leveldb"
