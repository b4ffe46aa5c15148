"""One pass does all due work: from an empty catalog to answers, and later from an upload to new answers."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.following.catch_up import follow_once, is_begun, shards_for
from pypi_assets.following.follower import Builds
from pypi_assets.index.errors import TransientError
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets_tests.following.followers import is_answered
from pypi_assets_tests.served_index import ServedIndex


def steps_of(index: ServedIndex, catalog: Catalog, folder: Path) -> list[Mapping[str, object]]:
    steps: list[Mapping[str, object]] = []
    follow_once(index.crawler(catalog), Builds(folder / "leveldbs", 1024**2, 256 * 1024**2), steps.append)
    return steps


def test_pass_leads_from_empty_catalog_to_answers_and_new_answers(
    index: ServedIndex, catalog: Catalog, tmp_path: Path
) -> None:
    assert not is_begun(catalog)
    steps = steps_of(index, catalog, tmp_path)
    assert is_begun(catalog)
    assert [step["step"] for step in steps] == ["full crawl", "full dump", *["leveldb"] * len(DATASETS)]
    assert (steps[0]["projects"], steps[0]["read"], steps[1]["shards"], steps[1]["rows"]) == (1, 1, 1, 1)
    assert is_answered(index, "first_module")
    assert steps_of(index, catalog, tmp_path) == []

    index.wheel("second", "1.0")
    steps = steps_of(index, catalog, tmp_path)
    assert [step["step"] for step in steps] == ["crawl", "dump", *["leveldb"] * len(DATASETS)]
    assert (steps[0]["projects"], steps[0]["read"], steps[1]["rows"]) == (1, 1, 1)
    assert {step["serial"] for step in steps[2:]} == {index.serial}
    assert is_answered(index, "first_module", "second_module")


def test_error_ends_the_pass_and_the_next_pass_continues(index: ServedIndex, catalog: Catalog, tmp_path: Path) -> None:
    steps_of(index, catalog, tmp_path)
    before = index.serial
    index.wheel("second", "1.0")
    crawler = index.crawler(catalog)
    url, crawler.index.changelog_url = crawler.index.changelog_url, "http://127.0.0.1:9/pypi"
    with pytest.raises(TransientError):
        follow_once(crawler, Builds(tmp_path / "leveldbs", 1024**2, 256 * 1024**2), [].append)
    with catalog.read() as connection:
        assert complete_serial(connection) == before
    crawler.index.changelog_url = url
    steps_of(index, catalog, tmp_path)
    assert is_answered(index, "second_module")


def test_dump_has_more_files_for_more_distributions() -> None:
    for most, expected in ((256, [1, 1, 4, 16, 64, 256]), (4096, [1, 1, 4, 16, 64, 4096]), (4, [1, 1, 4, 4, 4, 4])):
        assert [shards_for(files, most) for files in (0, 20_000, 20_001, 320_000, 320_001, 10**8)] == expected
