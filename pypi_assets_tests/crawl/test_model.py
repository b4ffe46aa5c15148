"""Whatever happens on the index, and in whatever order, with whatever kills and troubles it is followed: the catalog
equals the index at each complete serial.

MODEL_HISTORIES sets how many histories are tried on SQLite; on PostgreSQL a tenth of them. `make histories` tries
20,000 in several processes.
"""

import os
import random

from pypi_assets.catalog.database import Catalog
from pypi_assets_tests.crawl.model_run import shortened, try_history
from pypi_assets_tests.crawl.model_steps import draw_history

HISTORIES = int(os.environ.get("MODEL_HISTORIES", "200"))
SHRINK_S = 120.0


def test_every_history(catalog: Catalog) -> None:
    """Each history follows from its seed: `python -m pypi_assets_tests.crawl.model_run --first SEED --histories 1`."""
    first = 0 if "CI" in os.environ else random.SystemRandom().randrange(2**32)
    for seed in range(first, first + (HISTORIES if catalog.is_sqlite else max(HISTORIES // 10, 1))):
        failure = try_history(catalog, draw_history(seed), seed)
        assert failure is None, f"seed {seed}: {failure.kind}\n{shortened(catalog, failure, SHRINK_S)}"
