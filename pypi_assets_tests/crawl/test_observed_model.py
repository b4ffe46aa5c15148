"""Whatever happens on an index without serials, whoever looks at it when, and whatever caches show: the catalog equals
what was shown once that is confirmed, and caches that take turns add a bounded number of events.

OBSERVED_HISTORIES sets how many histories are tried on SQLite, and a tenth of them on PostgreSQL;
`python -m pypi_assets_tests.crawl.observed_run` tries thousands in several processes.
"""

import os
import random

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.index.observing import comparison
from pypi_assets_tests.crawl.observed_model import observe_history

HISTORIES = int(os.environ.get("OBSERVED_HISTORIES", "100"))


def test_every_history(catalog: Catalog) -> None:
    first = 0 if "CI" in os.environ else random.SystemRandom().randrange(2**32)
    for seed in range(first, first + (HISTORIES if catalog.is_sqlite else max(HISTORIES // 10, 1))):
        try:
            observe_history(catalog, seed)
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}")


def test_the_model_notices_removals_that_are_believed_at_once(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without confirmation, an old page leads to events without a bound."""
    if not catalog.is_sqlite:
        pytest.skip("once is enough")
    monkeypatch.setattr(comparison._Comparing, "_is_confirmed", lambda *_: True)
    assert any(_fails(catalog, seed) for seed in range(30))


def _fails(catalog: Catalog, seed: int) -> bool:
    try:
        observe_history(catalog, seed).flap(60)
    except AssertionError:
        return True
    return False
