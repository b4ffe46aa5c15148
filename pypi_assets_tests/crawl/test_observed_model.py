"""Any history of an index without serials: the catalog equals the confirmed state of the pages, and caches that
alternate add a bounded number of events.

One in 20 histories is tried on PostgreSQL. `python -m pypi_assets_tests.crawl.observed_run` tries thousands, in several
processes.
"""

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.index.observing import comparison, observed_index
from pypi_assets_tests.crawl.model_following import _InPlace
from pypi_assets_tests.crawl.observed_model import Observing, observe_history
from pypi_assets_tests.examples import examples, first_seed

HISTORIES = examples(40)


def test_observed_catalog_is_exact_for_random_histories(catalog: Catalog) -> None:
    first = first_seed()
    for seed in range(first, first + (HISTORIES if catalog.is_sqlite else max(HISTORIES // 20, 1))):
        try:
            observe_history(catalog, seed)
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}")


@pytest.mark.nightly
@pytest.mark.parametrize("is_confirmed", [True, False])
def test_model_detects_removals_believed_without_confirmation(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, is_confirmed: bool
) -> None:
    """Without confirmation, alternating pages lead to unbounded events."""
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
