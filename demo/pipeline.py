"""Run the same jobs and sensors as the UI, and read the answers of the published versions."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Self

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run
from dagster._core.execution.execute_in_process import merge_run_tags
from dagster._core.remote_origin import RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.workspace.load import location_origins_from_yaml_paths
from folders import ROOT

from pypi_assets.catalog.publications.dump_registry import committed_dumps
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.components import catalog_from, storage_from
from pypi_assets.definitions import build_defs
from pypi_assets.dumps.dump_manifest import read_manifest
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.leveldb_manifest import file_sha256
from pypi_assets.lookup import CommandsReader, DepgraphReader, HashesReader, ModulesReader, open_latest
from pypi_assets.settings import load_settings
from pypi_assets.storage.store import Storage

_REPOSITORY = "__repository__"
"""Dagster's name for the definitions of a module."""
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class Pipeline:
    """Dagster's instance and definitions, with the settings of the environment."""

    def __enter__(self) -> Self:
        settings = load_settings()
        self._defs = build_defs(settings)
        self._catalog = catalog_from(settings)
        self._instance = dg.DagsterInstance.get()
        return self

    def __exit__(self, *_: object) -> None:
        self._catalog.close()
        self._instance.dispose()

    @cached_property
    def _storage(self) -> Storage:
        """Return the storage for reading. The first run must have written to it."""
        return storage_from(load_settings(), read_only=True)

    def full_crawl(self) -> None:
        self._run("full_crawl")

    def full_dump(self) -> None:
        self._run("full_dump")

    def leveldb_version(self) -> str:
        return self._tick("new_leveldb_version", "update_leveldbs")

    def next_range(self) -> str:
        return self._tick("new_serial_range", "incremental_crawl")

    def describe_catalog(self) -> str:
        status = catalog_status(self._catalog)
        return (
            f"complete serial {status.complete_serial}: {status.live_distributions} distributions are live,"
            f" {status.outcomes['data']} read, {status.outcomes['error'] + status.outcomes['gave up']} failed"
        )

    def describe_dumps(self) -> str:
        manifest = read_manifest(self._storage, committed_dumps(self._catalog)[-1].directory)
        return (
            f"dump {manifest.directory}: {manifest.rows} rows in {len(manifest.files)} files, {manifest.size:,} bytes"
        )

    def describe_versions(self) -> str:
        versions = []
        for dataset in DATASETS:
            with open_latest(dataset, self._storage) as reader:
                versions.append(f"{dataset} version {reader.version}")
                serial = reader.serial
        return f"{', '.join(versions)}, at serial {serial}"

    def providers(self, module: str) -> str:
        """Return the projects that provide `module`, each with its versions, as text."""
        with open_latest(ModulesReader, self._storage) as reader:
            answers = reader.module(module).results
        return "; ".join(f"{answer['project']} {', '.join(answer['versions'])}" for answer in answers)

    def installers(self, command: str) -> str:
        """Return the projects that install `command`, each with its versions, as text."""
        with open_latest(CommandsReader, self._storage) as reader:
            answers = reader.command(command).results
        return "; ".join(f"{answer['project']} {', '.join(answer['versions'])}" for answer in answers)

    def owners(self, file: Path) -> str:
        """Return the projects and versions with a live file that has the bytes of `file`, as text."""
        with open_latest(HashesReader, self._storage) as reader:
            answers = reader.file(file_sha256(file)).results
        return "; ".join(f"{answer['project']} {answer['version']}" for answer in answers)

    def requirements(self, project: str) -> str:
        """Return the versions of `project`, each with its number of requirements."""
        with open_latest(DepgraphReader, self._storage) as reader:
            found = {row["version"]: row["requires_dist"] for row in reader.project(project).results}
        return ", ".join(f"{version} ({len(requires or ())})" for version, requires in found.items())

    def yanked(self, project: str) -> list[str]:
        with open_latest(DepgraphReader, self._storage) as reader:
            return [str(row["filename"]) for row in reader.project(project).results if row["yanked"]]

    def _tick(self, sensor: str, job: str) -> str:
        """Run a sensor once, and then the run that it requests, as the daemon does; return the partition key."""
        with dg.build_sensor_context(instance=self._instance, resources=self._defs.resources) as context:
            tick = self._defs.resolve_sensor_def(sensor)(context)
        if not isinstance(tick, dg.SensorResult) or not tick.run_requests:
            raise SystemExit(f"sensor {sensor} requests no run: {getattr(tick, 'skip_message', tick)}")
        for added in tick.dynamic_partitions_requests or ():
            self._instance.add_dynamic_partitions(added.partitions_def_name, list(added.partition_keys))
        [request] = tick.run_requests
        self._run(job, request.partition_key, request.tags)
        return str(request.partition_key)

    def _run(self, job: str, partition_key: str | None = None, tags: Mapping[str, str] | None = None) -> None:
        result = execute_run(
            InMemoryJob(self._defs.resolve_job_def(job)), self._new_run(job, partition_key, tags), self._instance
        )
        failures = [event.message for event in result.all_events if event.is_step_failure]
        if not result.success:
            raise SystemExit(f"job {job} failed: {'; '.join(failures)}")
        checks = [check for check in result.get_asset_check_evaluations() if not check.passed]
        if checks:
            raise SystemExit(f"job {job}: checks failed: {', '.join(check.check_name for check in checks)}")

    def _new_run(self, job: str, partition_key: str | None, tags: Mapping[str, str] | None) -> dg.DagsterRun:
        """Create a run that `make ui` shows under its job and in the timeline: its origin is the code location."""
        job_def = self._defs.resolve_job_def(job)
        [location] = location_origins_from_yaml_paths([str(ROOT / "workspace.yaml")])
        return self._instance.create_run_for_job(
            job_def,
            run_config=QUIET,
            tags=merge_run_tags(job_def, partition_key, tags, None, self._instance, QUIET),
            remote_job_origin=RemoteJobOrigin(RemoteRepositoryOrigin(location, _REPOSITORY), job),
        )
