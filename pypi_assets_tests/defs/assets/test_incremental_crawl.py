"""The assets of serial ranges: their numbers, and ranges that are refused."""

from pypi_assets.crawl.incremental_crawl import allocate_next_ranges
from pypi_assets.defs.assets.incremental_crawl import changed_distributions, changelog
from pypi_assets_tests.defs.conftest import Pipeline, failure_text
from pypi_assets_tests.served_index import ServedIndex


def test_the_failures_of_a_range_are_counted_by_kind(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.raw("newcomer-1.0-py3-none-any.whl", b"no archive")
    (key,) = pipeline.requested("new_serial_range")
    assert pipeline.run("incremental_crawl", key).success
    numbers = pipeline.metadata("changed_distribution_data", key)
    assert (numbers["read"], numbers["failed"], numbers["failed: corrupt archive"]) == (0, 1, 1)
    assert numbers["bytes_fetched"] > 0


def test_ranges_that_are_refused_stop_none_of_the_others_in_their_run(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    keys = []
    for number in range(2):
        index.wheel(f"newcomer{number}", "1.0")
        keys += [serials.key for serials in allocate_next_ranges(pipeline.crawler)]
    unknown = f"{index.serial}-{index.serial + 5}"
    pipeline.instance.add_dynamic_partitions("serial_ranges", [keys[0], unknown, "nonsense", keys[1]])
    result = pipeline.materialize(changed_distributions, keys[0], keys[1])
    assert failure_text(result).startswith("2 of 4 partitions failed: ")
    assert f"{unknown}: {unknown} is not a range of the ledger" in failure_text(result)
    assert "nonsense: not the key of a serial range" in failure_text(result)
    assert pipeline.marked("changed_distributions") == keys


def test_unknown_ranges_are_refused(pipeline: Pipeline) -> None:
    pipeline.crawled()
    pipeline.instance.add_dynamic_partitions("serial_ranges", ["7-9", "nonsense"])
    assert "7-9 is not a range of the ledger" in failure_text(pipeline.materialize(changelog, "7-9"))
    assert "not the key of a serial range" in failure_text(pipeline.materialize(changelog, "nonsense"))
    assert pipeline.marked("changelog") == []
