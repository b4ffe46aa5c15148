"""A crawl by the list of projects alone differs from the truth only in the ways that the docs name."""

import os
import random

import pytest

from pypi_assets_tests.crawl.listed_truth import KINDS, compare
from pypi_assets_tests.examples import examples


def test_catalog_without_changelog_differs_only_in_documented_ways() -> None:
    assert compare(range(4)).keys() <= set(KINDS)


@pytest.mark.nightly
def test_random_histories_without_changelog_show_each_kind_of_difference() -> None:
    first = 0 if "CI" in os.environ else random.SystemRandom().randrange(2**32)
    total = compare(range(first, first + max(examples(100), 60)))
    assert [kind for kind in KINDS if not total[kind]] == [], f"first seed {first}"
