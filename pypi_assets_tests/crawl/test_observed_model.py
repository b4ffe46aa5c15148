"""Whatever happens on an index without serials, whoever looks at it when, and whatever caches show: the catalog equals
what was shown once that is confirmed, and caches that take turns add a bounded number of events.

One in 20 histories is tried on PostgreSQL. `python -m pypi_assets_tests.crawl.observed_run` tries thousands, in several
processes.
"""

import os
import random

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.index.observing import comparison, observed_index
from pypi_assets_tests.crawl.model_following import _InPlace
from pypi_assets_tests.crawl.observed_model import Observing, observe_history
from pypi_assets_tests.examples import examples

HISTORIES = examples(40)


def test_every_history(catalog: Catalog) -> None:
    first = 0 if "CI" in os.environ else random.SystemRandom().randrange(2**32)
    for seed in range(first, first + (HISTORIES if catalog.is_sqlite else max(HISTORIES // 20, 1))):
        try:
            observe_history(catalog, seed)
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}")


@pytest.mark.nightly
@pytest.mark.parametrize("is_confirmed", [True, False])
def test_the_model_notices_removals_that_are_believed_at_once(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, is_confirmed: bool
) -> None:
    """Without confirmation, pages that take turns lead to events without a bound."""
    if not catalog.is_sqlite:
        pytest.skip("once is enough")
    if not is_confirmed:
        monkeypatch.setattr(comparison._PageComparison, "_is_confirmed", lambda *_: True)
    monkeypatch.setattr(observed_index, "ThreadPoolExecutor", _InPlace)
    observing = Observing(catalog, seed=7)
    monkeypatch.setattr(observing, "_meanwhile", lambda: None)
    wheel, sdist = "alpha-1.0-py3-none-any.whl", "alpha-1.0.tar.gz"
    observing.index.change("alpha", {wheel: ("1", False), sdist: ("1", False)})
    observing.look()
    observing.index.change("alpha", {wheel: ("1", False)})
    if is_confirmed:
        observing.flap(200)
    else:
        with pytest.raises(AssertionError):
            observing.flap(200)
