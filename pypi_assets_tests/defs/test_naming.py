"""Two indexes in one Dagster instance share no name: neither sees or delays the work of the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pypi_assets.components import catalog_from, storage_from
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges
from pypi_assets.definitions import build_defs, defs
from pypi_assets.defs.assets import incremental_crawl
from pypi_assets.defs.naming import BARE, Naming
from pypi_assets.defs.policy import ONE_AT_A_TIME_TAG, serial_ranges
from pypi_assets.defs.resources import build_resources
from pypi_assets.settings import load_settings
from pypi_assets_tests.defs.conftest import settings_for
from pypi_assets_tests.served_index import ServedIndex, shared_readers

COMPANY = Naming("company")


@pytest.fixture(scope="module")
def of_company() -> dg.Definitions:
    made = build_defs(load_settings(index_url="http://127.0.0.1:9/simple/"), COMPANY)
    dg.Definitions.validate_loadable(made)
    return made


def test_default_index_has_unprefixed_names() -> None:
    assert BARE.name("full_crawl") == "full_crawl"
    assert BARE.partitions(serial_ranges) is serial_ranges
    assert {job.name for job in defs.get_repository_def().get_all_jobs()} >= {"full_crawl", "incremental_crawl"}


def test_assets_differ_only_by_their_key(of_company: dg.Definitions) -> None:
    graph, bare = of_company.resolve_asset_graph(), defs.resolve_asset_graph()
    assert {COMPANY.key(key) for key in bare.get_all_asset_keys()} == graph.get_all_asset_keys()
    for node in bare.asset_nodes:
        found = graph.get(COMPANY.key(node.key))
        assert found.parent_keys == {COMPANY.key(key) for key in node.parent_keys}
        assert (found.pools or set()) == {f"company__{pool}" for pool in node.pools or set()}
        assert found.partitions_def == COMPANY.partitions(node.partitions_def)
        for same in ("group_name", "description", "metadata", "kinds", "owners", "code_version", "backfill_policy"):
            if (same, node.is_external) != ("metadata", True):  # each index has its own URL
                assert getattr(found, same) == getattr(node, same), (node.key, same)
        for parent in node.parent_keys:
            assert type(found.partition_mappings.get(COMPANY.key(parent))) is type(node.partition_mappings.get(parent))
    dynamic, of_bare = (
        {str(node.partitions_def.name) for node in one.asset_nodes if _is_dynamic(node.partitions_def)}  # type: ignore[union-attr]
        for one in (graph, bare)
    )
    assert dynamic == {f"company__{name}" for name in of_bare}
    assert of_bare >= {"serial_ranges", "leveldb_versions"}


def _is_dynamic(partitions: object) -> bool:
    return isinstance(partitions, dg.DynamicPartitionsDefinition)


def test_checks_differ_only_by_their_asset(of_company: dg.Definitions) -> None:
    graph, bare = of_company.resolve_asset_graph(), defs.resolve_asset_graph()
    assert {COMPANY.check_key(key) for key in bare.asset_check_keys} == graph.asset_check_keys
    for key in bare.asset_check_keys:
        of_bare, found = bare.get(key), graph.get(COMPANY.check_key(key))
        assert found.parent_entity_keys == {COMPANY.key(one) for one in of_bare.parent_entity_keys}  # type: ignore[arg-type]
        assert (found.description, found.blocking) == (of_bare.description, of_bare.blocking)


def test_jobs_differ_only_by_their_name(of_company: dg.Definitions) -> None:
    found = {job.name: job for job in of_company.get_repository_def().get_all_jobs()}
    for job in defs.get_repository_def().get_all_jobs():
        if job.name.startswith("__"):
            continue
        same = found.pop(COMPANY.name(job.name))
        assert same.description == job.description
        assert same.metadata == job.metadata
        values = {key: COMPANY.name(value) if key == ONE_AT_A_TIME_TAG else value for key, value in job.tags.items()}
        assert same.tags == values
        keys = {COMPANY.key(key) for key in job.asset_layer.executable_asset_keys}
        assert set(same.asset_layer.executable_asset_keys) == keys
        assert len(same.nodes) == len(job.nodes)
    assert [name for name in found if not name.startswith("__")] == []


def test_sensors_and_schedules_request_the_jobs_of_their_index(of_company: dg.Definitions) -> None:
    repository, bare = of_company.get_repository_def(), defs.get_repository_def()
    for kind in ("sensor_defs", "schedule_defs"):
        found = {one.name: one for one in getattr(repository, kind)}
        assert set(found) == {COMPANY.name(one.name) for one in getattr(bare, kind)}
    for schedule in bare.schedule_defs:
        assert repository.get_schedule_def(COMPANY.name(schedule.name)).job_name == COMPANY.name(schedule.job_name)
    for sensor in bare.sensor_defs:
        targets = [COMPANY.name(target.job_name) for target in sensor.targets]
        assert [target.job_name for target in repository.get_sensor_def(COMPANY.name(sensor.name)).targets] == targets


@contextmanager
def location(index: ServedIndex, home: Path, naming: Naming) -> Iterator[dict[str, Any]]:
    """Yield the definitions, resources and catalog of one code location."""
    settings = settings_for(index.url, home)
    given: dict[str, Any] = {"catalog": catalog_from(settings), "storage": storage_from(settings)}
    given["readers"] = shared_readers()
    resources = build_resources(settings, naming=naming, **given)
    yield {"defs": build_defs(settings, naming, **given), "resources": resources, "catalog": given["catalog"]}
    resources.close()
    given["catalog"].close()


@pytest.mark.nightly
def test_two_indexes_run_in_one_instance_and_see_only_their_own_runs(
    index: ServedIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        dg.DagsterInstance.ephemeral() as instance,
        location(index, tmp_path / "public", BARE) as public,
        location(index, tmp_path / "company", COMPANY) as company,
    ):
        for one in (public, company):
            crawl_full(one["resources"].crawler.get())
        for name in ("delta", "epsilon"):
            index.wheel(name, "1.0")
            allocate_next_ranges(company["resources"].crawler.get())
        allocate_next_ranges(public["resources"].crawler.get())

        def tick(one: dict[str, Any], sensor: str) -> list[str]:
            with dg.build_sensor_context(instance=instance, resources=one["resources"].by_name()) as context:
                result = one["defs"].resolve_sensor_def(sensor)(context)
            for request in result.dynamic_partitions_requests or []:
                instance.add_dynamic_partitions(request.partitions_def_name, request.partition_keys)
            return [str(request.partition_key) for request in result.run_requests or []]

        of_public, of_company = tick(public, "new_serial_range"), tick(company, "company__new_serial_range")
        own = instance.get_dynamic_partitions("company__serial_ranges")
        assert of_company == own[-2:]
        assert of_public == instance.get_dynamic_partitions("serial_ranges")[-1:]
        assert not {*own} & {*of_public}

        def fail(*_: object, **__: object) -> object:
            raise ValueError("odd")

        first, second = of_company
        job = company["defs"].resolve_job_def("company__incremental_crawl")
        work = incremental_crawl.visit_range
        with monkeypatch.context() as patch:
            patch.setattr(
                incremental_crawl,
                "visit_range",
                lambda crawler, serials: fail() if serials.key == second else work(crawler, serials),
            )
            results = [
                job.execute_in_process(instance=instance, partition_key=key, raise_on_error=False).success
                for key in (first, second)
            ]
        assert results == [True, False]
        done = instance.fetch_materializations(dg.AssetKey(["company", "changed_distribution_data"]), limit=9).records
        assert [record.partition_key for record in done] == [first]
        assert instance.fetch_materializations(dg.AssetKey("changelog"), limit=1).records == []
        assert tick(public, "new_serial_range") == of_public  # no pause after a failure of the other index

        retried = company["defs"].resolve_job_def("company__retry_failures").execute_in_process(instance=instance)
        assert retried.success
        key = dg.AssetCheckKey(dg.AssetKey(["company", "changed_distribution_data"]), "few_are_given_up")
        assert set(instance.event_log_storage.get_latest_asset_check_execution_by_key([key])) == {key}
