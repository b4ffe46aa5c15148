"""A crawl by the list of projects alone differs from the truth only in the ways that the docs name."""

from pathlib import Path

import pytest

from pypi_assets.devindex.history import History
from pypi_assets_tests.crawl.listed_truth import KINDS, SEVERAL, STATES, compare, compare_recorded
from pypi_assets_tests.devindex.test_contract import do_step, recording
from pypi_assets_tests.examples import examples, first_seed


def test_catalog_without_changelog_differs_only_in_documented_ways() -> None:
    assert compare(range(4)).keys() <= set(KINDS)


@pytest.mark.nightly
def test_random_histories_without_changelog_show_the_usual_differences() -> None:
    first = first_seed()
    total = compare(range(first, first + max(examples(100), 60)))
    rare = {SEVERAL}
    assert [kind for kind in KINDS if not total[kind] and kind not in rare] == [], f"first seed {first}"


def test_recorded_history_without_changelog_differs_only_in_documented_ways(tmp_path: Path) -> None:
    history = History(tmp_path / "index", owner="crawler")
    for number in range(len(recording()["steps"])):
        do_step(number, history, tmp_path)
    found = compare_recorded(tmp_path / "index")
    assert found.keys() <= set(KINDS)
    assert found[STATES] > 2
