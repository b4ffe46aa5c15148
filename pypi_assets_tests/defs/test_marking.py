"""Which partitions of a run are marked, and what the run says of the others."""

import re
from collections.abc import Iterator, Mapping

import dagster as dg
import pytest

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.defs.marking import PROGRESS_EVERY_S, mark_each_range, progress_log
from pypi_assets.defs.partitions import RANGE_END_TAG, RANGE_START_TAG, serial_ranges
from pypi_assets.progress import Progress
from pypi_assets.storage.store import StorageError
from pypi_assets_tests.defs.conftest import failure_text

KEYS = ["0-10", "10-20", "20-30", "30-40"]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        made.add_dynamic_partitions("serial_ranges", KEYS)
        yield made


def run(
    instance: dg.DagsterInstance, failures: Mapping[str, Exception]
) -> tuple[dg.ExecuteInProcessResult, list[str], list[str]]:
    """A run of all ranges, of which some fail: the result, the ranges that were worked on, and those marked."""
    worked: list[str] = []

    def work(serials: SerialRange) -> dict[str, int]:
        worked.append(serials.key)
        if serials.key in failures:
            raise failures[serials.key]
        return {"end": serials.end}

    @dg.asset(partitions_def=serial_ranges)
    def counted(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        mark_each_range(context, work)
        return dg.MaterializeResult()

    tags = {RANGE_START_TAG: KEYS[0], RANGE_END_TAG: KEYS[-1]}
    result = dg.materialize([counted], instance=instance, tags=tags, raise_on_error=False)
    records = instance.fetch_materializations(dg.AssetKey("counted"), limit=10).records
    for record in records:
        assert record.asset_materialization is not None
        assert record.asset_materialization.metadata["end"].value == int(str(record.partition_key).split("-")[1])
    return result, worked, sorted(str(record.partition_key) for record in records)


def test_each_range_is_marked_with_its_numbers(instance: dg.DagsterInstance) -> None:
    result, worked, marked = run(instance, {})
    assert result.success
    assert worked == marked == KEYS


def test_a_range_that_fails_ends_the_step_and_those_before_it_stay_marked(instance: dg.DagsterInstance) -> None:
    result, worked, marked = run(instance, {"10-20": StorageError("the storage does not answer")})
    assert worked == KEYS[:2]
    assert marked == KEYS[:1]
    assert failure_text(result) == "the storage does not answer"


def test_progress_is_logged_every_30_seconds_at_most() -> None:
    now = 0.0
    reported: list[str] = []

    with dg.build_op_context() as context:
        context.log.info = reported.append  # type: ignore[assignment]
        report = progress_log(context, lambda: now)
        for now in (0.0, 1.0, PROGRESS_EVERY_S, PROGRESS_EVERY_S + 1, 2 * PROGRESS_EVERY_S):
            report(Progress("visits", int(now), 100, failed=1, wait_s=now - PROGRESS_EVERY_S))
    assert [re.findall(r"\d+", line) for line in reported] == [["30", "100", "1"], ["60", "100", "1", "30"]]
    assert all(line.startswith("visits") for line in reported)
