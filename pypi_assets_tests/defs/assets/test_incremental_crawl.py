"""The assets of serial ranges: their metadata, and rejected ranges."""

from collections.abc import Sequence
from typing import Any

import pytest

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges
from pypi_assets.defs.assets import incremental_crawl
from pypi_assets.defs.assets.incremental_crawl import changelog
from pypi_assets_tests.defs.conftest import Pipeline, failure_text
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex

RANGE_ASSETS = ("changelog", "changed_distributions", "changed_distribution_data", "incremental_dump")


def new_ranges(index: ServedIndex, pipeline: Pipeline, count: int) -> list[str]:
    """Crawl the index, and allocate `count` ranges with a new project in each."""
    pipeline.crawled()
    keys = []
    for number in range(count):
        index.wheel(f"newcomer{number}", "1.0")
        keys += [serials.key for serials in allocate_next_ranges(pipeline.crawler)]
    return keys


def states(pipeline: Pipeline, keys: Sequence[str]) -> dict[str, list[str]]:
    return {asset: pipeline.states(asset, keys) for asset in RANGE_ASSETS}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("step", "failed"),
    [("store_changelog", RANGE_ASSETS), ("visit_range", RANGE_ASSETS[1:]), ("read_range", RANGE_ASSETS[2:])],
)
def test_range_failing_in_one_asset_keeps_other_ranges_complete(
    index: ServedIndex, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, step: str, failed: tuple[str, ...]
) -> None:
    keys = new_ranges(index, pipeline, 3)
    pipeline.instance.add_dynamic_partitions("serial_ranges", keys)
    work = getattr(incremental_crawl, step)

    def fail_in_the_second(crawler: object, serials: SerialRange, **options: Any) -> Any:
        if serials.key == keys[1]:
            raise ValueError("odd")
        return work(crawler, serials, **options)

    with monkeypatch.context() as patch:
        patch.setattr(incremental_crawl, step, fail_in_the_second)
        result = pipeline.run_ranges("incremental_crawl", keys)
    assert unnamed(failure_text(result), "1", "3", keys[1], failed[0]) == []
    for asset in RANGE_ASSETS:
        second = "failed" if asset in failed else "materialized"
        assert pipeline.states(asset, keys) == ["materialized", second, "materialized"]
    assert pipeline.run("incremental_crawl", keys[1]).success
    assert states(pipeline, keys) == dict.fromkeys(RANGE_ASSETS, ["materialized"] * 3)


def test_range_failures_are_counted_by_kind(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.raw("newcomer-1.0-py3-none-any.whl", b"no archive")
    (key,) = pipeline.requested("new_serial_range")
    assert pipeline.run("incremental_crawl", key).success
    numbers = pipeline.metadata("changed_distribution_data", key)
    assert (numbers["read"], numbers["failed"], numbers["failed: corrupt archive"]) == (0, 1, 1)
    assert numbers["bytes_fetched"] > 0
    shown = [name for name in numbers if not name.startswith("total: ")]
    assert shown[:2] == ["failures", "read"]
    assert next(iter(numbers)) == "total: live"  # totals and failures are visible without scrolling
    [row] = [line for line in numbers["failures"].splitlines() if "newcomer" in line]
    assert row.startswith("| newcomer-1.0-py3-none-any.whl | corrupt archive | ")
    assert row.endswith(" | 1 |")
    assert '`pypi-assets failures list --kind "corrupt archive"`' in numbers["failures"]
    assert (numbers["total: live"], numbers["total: read"], numbers["total: failed"]) == (5, 4, 1)


def test_range_shows_its_failures_and_overall_totals(index: ServedIndex, pipeline: Pipeline) -> None:
    index.raw("older-1.0-py3-none-any.whl", b"no archive")
    pipeline.crawled()
    index.wheel("newcomer", "1.0")
    (key,) = pipeline.requested("new_serial_range")
    assert pipeline.run("incremental_crawl", key).success
    numbers = pipeline.metadata("changed_distribution_data", key)
    assert "failures" not in numbers
    assert (numbers["failed"], numbers["total: live"], numbers["total: failed"]) == (0, 6, 1)


def test_rejected_range_stops_no_other_range_of_its_run(index: ServedIndex, pipeline: Pipeline) -> None:
    keys = new_ranges(index, pipeline, 2)
    unknown = f"{index.serial}-{index.serial + 5}"
    keys.insert(1, unknown)
    pipeline.instance.add_dynamic_partitions("serial_ranges", keys)
    for _ in range(2):  # the second run covers ranges that are complete already
        assert unnamed(failure_text(pipeline.run_ranges("incremental_crawl", keys)), "1", "3", unknown) == []
        expected = ["materialized", "failed", "materialized"]
        assert states(pipeline, keys) == dict.fromkeys(RANGE_ASSETS, expected)
    assert pipeline.metadata("incremental_dump", keys[2])["dagster/partition_row_count"] == 1


def test_unknown_ranges_are_rejected(pipeline: Pipeline) -> None:
    pipeline.crawled()
    pipeline.instance.add_dynamic_partitions("serial_ranges", ["7-9", "nonsense"])
    assert unnamed(failure_text(pipeline.materialize(changelog, "7-9")), "7-9") == []
    assert failure_text(pipeline.materialize(changelog, "nonsense"))
    assert pipeline.marked("changelog") == []
