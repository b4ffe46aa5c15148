"""Rule 11: a project enters a scope at the serial at which a breadth-first search finds it, and from its own serial on
answers equal the index, in whatever way ranges are split, ordered or repeated.

`python -m pypi_assets_tests.crawl.model_scopes` tries 5,000.
"""

import pytest

from pypi_assets_tests.crawl.model_scopes import scratch_catalog, try_graph
from pypi_assets_tests.examples import examples, first_seed

GRAPHS = examples(40)


@pytest.mark.nightly
def test_scopes_are_exact_for_random_graphs() -> None:
    """Each graph has a seed: `python -m pypi_assets_tests.crawl.model_scopes --first SEED --graphs 1`."""
    first = first_seed()
    with scratch_catalog() as catalog:
        for seed in range(first, first + GRAPHS):
            failure = try_graph(catalog, seed, is_small=True)
            assert failure is None, failure
