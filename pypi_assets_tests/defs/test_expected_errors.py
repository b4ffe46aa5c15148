"""Expected errors become failures that name the remedy."""

import signal
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.remote_representation.external_data import SensorExecutionErrorSnap
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._grpc.impl import get_external_sensor_execution

from pypi_assets.definitions import build_defs
from pypi_assets.defs.assets.full_crawl import project_listing
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.factories import ForIndex
from pypi_assets.defs.naming import BARE
from pypi_assets.defs.resources import CatalogResource, build_resources
from pypi_assets.defs.sensors import SENSORS
from pypi_assets.settings import Settings, SettingsError, load_settings
from pypi_assets.storage.store import StorageError
from pypi_assets_tests.defs.conftest import failure_text
from pypi_assets_tests.named import unnamed

WHY = "the storage does not answer"


def test_run_reports_a_missing_contact(tmp_path: Path) -> None:
    settings = load_settings(index_url="https://index.example.org/simple/", home=tmp_path)
    result = _list_with(settings)
    assert "PYPI_ASSETS_CONTACT" in failure_text(result)


def test_run_reports_invalid_settings_and_database(tmp_path: Path) -> None:
    assert failure_text(_list_with(SettingsError("PYPI_ASSETS_HOME: wrong"))) == "PYPI_ASSETS_HOME: wrong"
    settings = load_settings(
        index_url="http://127.0.0.1:9/simple/", database_url="postgresql://127.0.0.1:9/none", home=tmp_path
    )
    with (
        dg.build_asset_context(resources=build_resources(settings).by_name()) as context,
        pytest.raises(dg.Failure, match="PYPI_ASSETS_DATABASE_URL") as failed,
    ):
        project_listing.make(ForIndex())(context)
    assert failed.value.allow_retries


def test_failed_step_shows_its_text_without_traceback() -> None:
    [event] = [event for event in _list_with(SettingsError("wrong")).all_events if event.is_step_failure]
    error = event.step_failure_data.error
    assert error
    assert (error.message, error.stack, error.cause) == ("wrong", [], None)


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_terminated_run_ends_with_retries_left(*, is_cancelled: bool) -> None:
    made: list[int] = []

    @dg.asset(retry_policy=dg.RetryPolicy(max_retries=2, delay=0.01))
    def stored(context: dg.AssetExecutionContext) -> None:
        made.append(1)
        with expected_errors_as_failures():
            if is_cancelled:  # the UI's "Terminate" does this before it interrupts the run
                context.instance.report_run_canceling(context.run)
            signal.raise_signal(signal.SIGINT)

    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize([stored], instance=instance, raise_on_error=False)
        ended = instance.get_run_by_id(result.run_id)
    assert ended is not None
    expected = dg.DagsterRunStatus.CANCELED if is_cancelled else dg.DagsterRunStatus.FAILURE
    assert (ended.status, len(made)) == (expected, 1)
    [event] = [event for event in result.all_events if event.is_step_failure]
    error = event.step_failure_data.error
    assert error
    assert (bool(error.message), error.stack, error.cause) == (True, [], None)


@pytest.mark.parametrize(("failures", "succeeds"), [(2, True), (9, False)])
def test_transient_error_is_retried_and_shown_without_traceback(failures: int, *, succeeds: bool) -> None:
    made: list[int] = []

    @dg.asset(retry_policy=dg.RetryPolicy(max_retries=2, delay=0.01, backoff=dg.Backoff.EXPONENTIAL))
    def stored() -> None:
        made.append(1)
        with expected_errors_as_failures():
            if len(made) <= failures:
                raise StorageError(WHY)

    result = dg.materialize([stored], raise_on_error=False)
    assert (result.success, len(made)) == (succeeds, 3)
    retries = [event.step_retry_data.error for event in result.all_events if event.is_step_up_for_retry]
    pauses = ["0.01", "0.03"]
    assert [(error.stack, error.cause) for error in retries if error] == [([], None)] * 2
    texts = [error.message for error in retries if error]
    assert [unnamed(text, WHY, pause) for text, pause in zip(texts, pauses, strict=True)] == [[], []]
    for event in result.all_events:
        if event.is_step_failure and (error := event.step_failure_data.error):
            assert (error.message, error.stack, error.cause) == (WHY, [], None)
    if not succeeds:
        assert failure_text(result) == WHY


@pytest.mark.nightly
@pytest.mark.parametrize("sensor", ["new_serial_range", "first_full_dump", "new_leveldb_version", "failed_full_crawl"])
def test_failed_tick_shows_error_and_next_step_in_its_first_line(tmp_path: Path, sensor: str) -> None:
    wrong = SettingsError("PYPI_ASSETS_HOME: wrong")
    text, stack, cause = _error_of_tick(wrong, sensor)
    assert (unnamed(text.splitlines()[0], "PYPI_ASSETS_HOME: wrong"), stack, cause) == ([], [], None)
    away = load_settings(
        index_url="http://127.0.0.1:9/simple/", database_url="postgresql://127.0.0.1:9/none", home=tmp_path
    )
    text, stack, cause = _error_of_tick(away, sensor)
    assert unnamed(text.splitlines()[0], "PYPI_ASSETS_DATABASE_URL", 60) == []
    assert (stack, cause) == ([], None)


def test_tick_shows_unexpected_error_with_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(CatalogResource, "get", fail)
    text, stack, cause = _error_of_tick(SettingsError("wrong"), "first_full_dump")
    assert text
    assert stack
    assert cause is not None


def _error_of_tick(settings: Settings | SettingsError, sensor: str) -> tuple[str, list[str], object]:
    """Return the text, stack and cause that Dagster shows for a failed tick, as its code server returns them."""
    repository = build_defs(settings).get_repository_def()
    origin = InProcessCodeLocationOrigin(LoadableTargetOrigin(python_file=__file__))
    with dg.instance_for_test() as instance:
        result = get_external_sensor_execution(
            repository, origin, instance.get_ref(), sensor, None, None, None, None, None
        )
    assert isinstance(result, SensorExecutionErrorSnap)
    error = result.error
    assert error
    return error.message, list(error.stack), error.cause


def test_tick_reports_invalid_settings() -> None:
    wrong = build_resources(SettingsError("PYPI_ASSETS_HOME: wrong")).by_name()
    for sensor in (one.make(BARE, 60, on=False) for one in SENSORS):
        with (
            dg.DagsterInstance.ephemeral() as instance,
            dg.build_sensor_context(instance=instance, resources=wrong) as context,
            pytest.raises(dg.Failure, match="PYPI_ASSETS_HOME: wrong"),
        ):
            sensor(context)


def _list_with(settings: Settings | SettingsError) -> dg.ExecuteInProcessResult:
    resources = build_resources(settings)
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            [project_listing.make(ForIndex())], instance=instance, resources=resources.by_name(), raise_on_error=False
        )
    resources.close()
    assert not result.success
    return result
