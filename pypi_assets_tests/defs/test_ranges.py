"""The ranges that a step marks in each of its assets, and its reports about failing ranges."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import pytest

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.defs import factories
from pypi_assets.defs.expected_errors import ExpectedStepError
from pypi_assets.defs.factories import ForIndex
from pypi_assets.defs.policy import RANGE_END_TAG, RANGE_START_TAG, RANGES_IN_ONE_RUN
from pypi_assets.defs.ranges import RangeAsset, RangeRun, RangeWork, crawled_range_asset, range_step
from pypi_assets.defs.resources import build_resources
from pypi_assets.settings import SettingsError, load_settings
from pypi_assets.storage.store import StorageError
from pypi_assets_tests.defs.conftest import failure_text
from pypi_assets_tests.named import unnamed

KEYS = ["0-10", "10-20", "20-30", "30-40"]
FIRST, SECOND = "first", "second"


@dataclass
class Step:
    """A step of two assets, `first` and `second`. The second depends on the first."""

    instance: dg.DagsterInstance
    home: Path
    failures: Mapping[tuple[str, str], Exception] = field(default_factory=dict)
    in_begin: Exception | None = None
    worked: list[tuple[str, str]] = field(default_factory=list)

    def run(self, *selected: str, keys: list[str] = KEYS) -> dg.ExecuteInProcessResult:
        resources = build_resources(load_settings(home=self.home)).by_name()
        definitions = range_step([self._asset(SECOND, deps=[FIRST]), self._asset(FIRST)])
        return dg.materialize(
            [definitions.make(ForIndex())],
            instance=self.instance,
            tags={RANGE_START_TAG: keys[0], RANGE_END_TAG: keys[-1]},
            resources=resources,
            selection=list(selected) or None,
            raise_on_error=False,
        )

    def marked(self, asset: str, *, has_totals: bool = True) -> list[str]:
        records = self.instance.fetch_materializations(dg.AssetKey(asset), limit=20).records
        for record in records:
            assert record.asset_materialization is not None
            metadata = record.asset_materialization.metadata
            assert metadata["end"].value == int(str(record.partition_key).split("-")[1])
            assert metadata["total"].value == len(asset) if has_totals else "total" not in metadata
        return sorted(str(record.partition_key) for record in records)

    def _asset(self, name: str, deps: list[str] | None = None) -> RangeAsset:
        def begin(run: RangeRun) -> RangeWork:
            if self.in_begin:
                raise self.in_begin
            return self._work(name)

        begin.__name__ = name
        return crawled_range_asset(deps=deps or [], totals=lambda _: {"total": len(name)})(begin)

    def _work(self, name: str) -> Callable[[SerialRange], dict[str, int]]:
        def work(serials: SerialRange) -> dict[str, int]:
            self.worked.append((name, serials.key))
            if error := self.failures.get((name, serials.key)):
                raise error
            return {"end": serials.end}

        return work


@pytest.fixture
def step(tmp_path: Path) -> Iterator[Step]:
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("serial_ranges", KEYS)
        yield Step(instance, tmp_path)


def test_each_range_is_marked_with_its_numbers_and_totals(step: Step) -> None:
    assert step.run().success
    assert step.worked == [(asset, key) for key in KEYS for asset in (FIRST, SECOND)]
    assert step.marked(FIRST) == step.marked(SECOND) == KEYS


def test_run_of_one_asset_does_only_its_work(step: Step) -> None:
    assert step.run(SECOND).success
    assert step.worked == [(SECOND, key) for key in KEYS]
    assert (step.marked(FIRST), step.marked(SECOND)) == ([], KEYS)


def test_failing_range_stops_no_other_range(step: Step) -> None:
    step.failures = {(FIRST, "10-20"): ValueError("odd"), (SECOND, "30-40"): dg.Failure("of the range")}
    result = step.run()
    assert [key for asset, key in step.worked if asset == SECOND] == ["0-10", "20-30", "30-40"]
    assert step.marked(FIRST) == ["0-10", "20-30", "30-40"]
    assert step.marked(SECOND) == ["0-10", "20-30"]
    text = failure_text(result)
    assert unnamed(text, "2", "4", "10-20", "ValueError: odd", FIRST, "30-40", "of the range", SECOND) == []
    [event] = [event for event in result.all_events if event.is_step_failure]
    assert event.step_failure_data.error
    assert "raise error" in str(event.step_failure_data.error.cause)  # the traceback of the first unexpected error


def test_invalid_key_fails_alone_without_traceback(step: Step) -> None:
    keys = [*KEYS, "no range"]
    step.instance.add_dynamic_partitions("serial_ranges", keys)
    result = step.run(keys=keys)
    assert unnamed(failure_text(result), "no range") == []
    assert step.marked(FIRST) == step.marked(SECOND) == KEYS
    [event] = [event for event in result.all_events if event.is_step_failure]
    assert event.step_failure_data.error
    assert not event.step_failure_data.error.stack


def test_single_range_fails_with_its_own_error(step: Step) -> None:
    step.failures = {(SECOND, KEYS[0]): ExpectedStepError("of the range")}
    result = step.run(keys=KEYS[:1])
    assert failure_text(result) == "of the range"
    assert (step.marked(FIRST, has_totals=False), step.marked(SECOND)) == (KEYS[:1], [])


def test_error_of_all_ranges_is_reported_once(step: Step) -> None:
    step.in_begin = SettingsError("wrong")
    text = failure_text(step.run())
    assert unnamed(text, *KEYS, FIRST) == []
    assert text.count("wrong") == 1
    assert step.worked == []


def test_transient_error_ends_the_step_and_the_next_attempt_continues(
    step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factories, "RETRIES", dg.RetryPolicy(max_retries=1))
    step.failures = {(SECOND, "10-20"): StorageError("the storage does not answer")}
    result = step.run()
    assert failure_text(result) == "the storage does not answer"
    done = [(FIRST, "0-10"), (SECOND, "0-10"), (FIRST, "10-20")]
    assert step.worked == [*done, (SECOND, "10-20"), (SECOND, "10-20")]
    assert set(step.marked(FIRST, has_totals=False)) == set(KEYS[:2])
    assert set(step.marked(SECOND, has_totals=False)) == set(KEYS[:1])


def test_backfill_run_takes_twenty_ranges(step: Step) -> None:
    made = range_step([step._asset(FIRST)]).make(ForIndex())
    assert made.backfill_policy == dg.BackfillPolicy.multi_run(RANGES_IN_ONE_RUN)
    assert RANGES_IN_ONE_RUN == 20
