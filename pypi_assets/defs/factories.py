"""Declares assets, checks, jobs and sensors once, and makes them for each index, with its names and settings.

    @crawl_asset(partitions=serial_ranges, deps=["changelog"])
    def changed_distributions(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]: ...

    changed_distributions.make(ForIndex(Naming("company")))

Schedules and the sensors of notices are made by functions in their own modules.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce, wraps
from typing import Any

import dagster as dg

from pypi_assets.defs.assets import Group, group_of
from pypi_assets.defs.expected_errors import expected_errors_of_ticks
from pypi_assets.defs.naming import BARE, JobFactory, Naming
from pypi_assets.defs.policy import (
    INDEX_POOL,
    ON_FAILURE,
    PARTS_IN_ONE_RUN,
    RANGES_IN_ONE_RUN,
    RETRIES,
    beta_parameters,
    dump_shards,
    leveldb_versions,
    project_parts,
    serial_ranges,
)
from pypi_assets.sanitize import inert_markdown
from pypi_assets.settings import Settings

_Deps = Sequence[str | dg.AssetDep]
_DEFAULT_OWNERS = tuple(Settings.model_fields["owners"].default)


@dataclass(frozen=True)
class ForIndex:
    """The settings that all definitions of an index share.

    A run of a backfill takes `parts_in_one_run` partitions of a full crawl, or all of them (None). `freshness` is the
    policy of assets that are materialized again and again while an index is followed.
    """

    naming: Naming = BARE
    owners: Sequence[str] = _DEFAULT_OWNERS
    freshness: dg.FreshnessPolicy | None = None
    parts_in_one_run: int | None = PARTS_IN_ONE_RUN

    def freshness_of(self, partitions: dg.PartitionsDefinition[Any] | None) -> dg.FreshnessPolicy | None:
        """Return the freshness policy of an asset with these partitions."""
        return self.freshness if partitions in {serial_ranges, leveldb_versions} else None

    def backfills_of(self, partitions: dg.PartitionsDefinition[Any] | None) -> dg.BackfillPolicy | None:
        """Return how many of these partitions a run of a backfill takes."""
        if partitions is None:
            return None
        if partitions == project_parts:
            return dg.BackfillPolicy(self.parts_in_one_run)
        if partitions == dump_shards:
            return dg.BackfillPolicy.single_run()
        return dg.BackfillPolicy.multi_run(RANGES_IN_ONE_RUN if partitions == serial_ranges else 1)


@dataclass(frozen=True)
class AssetFactory:
    """Makes the asset `name` of each index, or all assets of one step."""

    name: str
    make: Callable[[ForIndex], dg.AssetsDefinition]


@dataclass(frozen=True, kw_only=True)
class Declared:
    """The declaration of an asset, for all indexes."""

    name: str
    kinds: set[str]
    group: Group
    deps: _Deps = ()
    partitions: dg.PartitionsDefinition[str] | None = None
    description: str | None = None
    metadata: Mapping[str, Any] | None = None
    code_version: str = "1"

    def spec(self, index: ForIndex) -> dict[str, Any]:
        """Return the arguments of `AssetSpec`, for the asset of one index."""
        return {
            "key": index.naming.key(self.name),
            "deps": [index.naming.dep(dep) for dep in self.deps],
            "description": self.description,
            "metadata": {**(self.metadata or {}), "docs": dg.MetadataValue.text(self.group.page)},
            "group_name": self.group.name,
            "code_version": self.code_version,
            "owners": list(index.owners),
            "kinds": self.kinds,
            "freshness_policy": index.freshness_of(self.partitions),
        }


def step(index: ForIndex, partitions: dg.PartitionsDefinition[str] | None, pool: str | None) -> dict[str, Any]:
    """Return the arguments of a step that makes assets with these partitions."""
    return {
        "partitions_def": index.naming.partitions(partitions),
        "backfill_policy": index.backfills_of(partitions),
        "pool": pool and index.naming.name(pool),
        "retry_policy": RETRIES,
    }


def asset(
    *,
    kinds: set[str],
    pool: str | None = None,
    name: str | None = None,
    group: Group | None = None,
    skips_verified: bool = False,
    **declared: Any,
) -> Callable[[Callable[..., Any]], AssetFactory]:
    """Return the decorator of an asset.

    Its group and its page of the docs follow from its module, unless `group` is given. `declared` has the other fields
    of `Declared`. With `skips_verified`, the function is a generator, and the asset counts as materialized only if the
    generator yields a result.
    """

    def declare(function: Callable[..., Any]) -> AssetFactory:
        asset_group = group or group_of_function(function)
        asset = Declared(name=name or function.__name__, kinds=kinds, group=asset_group, **declared)

        def make(index: ForIndex) -> dg.AssetsDefinition:
            op = step(index, asset.partitions, pool)
            with beta_parameters():
                if skips_verified:
                    specs = [dg.AssetSpec(**asset.spec(index), skippable=True)]
                    return dg.multi_asset(name=function.__name__, specs=specs, **op)(function)
                made: dg.AssetsDefinition = dg.asset(**asset.spec(index), **op)(function)
                return made

        return AssetFactory(asset.name, make)

    return declare


def group_of_function(function: Callable[..., Any]) -> Group:
    """Return the group of assets that the function's module declares."""
    return group_of(function.__module__.rpartition(".")[2])


crawl_asset = partial(asset, kinds={"python", "sqlalchemy"}, pool=INDEX_POOL)
"""The decorator of an asset whose steps send requests to the index and write to the catalog."""


@dataclass(frozen=True)
class CheckFactory:
    """Makes a check for each index. `key` is its key for the default index."""

    key: dg.AssetCheckKey
    make: Callable[[Naming], dg.AssetChecksDefinition]


def check(
    asset: str,
    *,
    name: str | None = None,
    description: str | None = None,
    additional_deps: Sequence[str] = (),
    blocking: bool = False,
) -> Callable[[Callable[..., dg.AssetCheckResult]], CheckFactory]:
    """Return the decorator of a check of an asset."""

    def declare(function: Callable[..., dg.AssetCheckResult]) -> CheckFactory:
        key = dg.AssetCheckKey(dg.AssetKey(asset), name or function.__name__)

        def make(naming: Naming) -> dg.AssetChecksDefinition:
            return dg.asset_check(
                asset=naming.key(asset),
                name=key.name,
                description=description,
                additional_deps=[naming.key(dep) for dep in additional_deps],
                blocking=blocking,
            )(function)

        return CheckFactory(key, make)

    return declare


@dataclass(frozen=True)
class AssetJob:
    """Makes the job of each index that materializes the assets of `groups` and `assets`, and runs `checks`."""

    name: str
    description: str
    groups: Sequence[str] = ()
    assets: Sequence[str] = ()
    checks: Sequence[CheckFactory] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    config: Callable[[Naming], dg.PartitionedConfig] | None = None

    def make(self, naming: Naming) -> Any:
        selections: list[dg.AssetSelection] = []
        if self.groups:
            selections.append(dg.AssetSelection.groups(*self.groups))
        if self.assets:
            selections.append(dg.AssetSelection.assets(*map(naming.key, self.assets)))
        if self.checks:
            selections.append(dg.AssetSelection.checks(*(naming.check_key(one.key) for one in self.checks)))
        return dg.define_asset_job(
            naming.name(self.name),
            selection=reduce(operator.or_, selections),
            description=self.description,
            tags=naming.tags(self.tags),
            config=None if self.config is None else self.config(naming),
        )


@dataclass(frozen=True)
class OpJob:
    """Makes the job of each index that runs one function, without an asset."""

    name: str
    description: str
    function: Callable[..., None]
    op: str
    pool: str | None
    tags: Mapping[str, str]
    on_failure: str | None

    def make(self, naming: Naming) -> dg.JobDefinition:
        step = dg.op(name=self.op, pool=self.pool and naming.name(self.pool))(self.function)

        @dg.job(
            name=naming.name(self.name),
            description=self.description,
            tags=naming.tags(self.tags),
            metadata={ON_FAILURE: self.on_failure} if self.on_failure else None,
        )
        def job() -> None:
            step()

        return job


def op_job(
    name: str,
    description: str,
    *,
    tags: Mapping[str, str],
    op: str | None = None,
    pool: str | None = None,
    on_failure: str | None = None,
) -> Callable[[Callable[..., None]], OpJob]:
    """Return the decorator of a function that a job runs. `on_failure` tells a person what to do if the job fails."""
    return lambda function: OpJob(name, description, function, op or function.__name__, pool, tags, on_failure)


@dataclass(frozen=True)
class SensorFactory:
    """Makes the sensor of each index that requests runs of `jobs`. An expected error fails its tick."""

    function: Callable[..., Any]
    jobs: Sequence[JobFactory]
    description: str

    def make(self, naming: Naming, interval_s: int, *, on: bool) -> dg.SensorDefinition:
        """Return the sensor, with a tick every `interval_s` seconds. `on` says whether it runs from the start."""

        @wraps(self.function)
        def tick(context: dg.SensorEvaluationContext, **resources: Any) -> Any:
            with expected_errors_of_ticks(interval_s):
                return self.function(context, **resources)

        # Dagster makes a sensor again if the resources of its job are known later, as for jobs of ops, and then warns
        of_ops = next((job for job in self.jobs if isinstance(job, OpJob)), None)
        targets: dict[str, Any] = {"jobs": [naming.job(job) for job in self.jobs]}
        if of_ops is not None:
            targets = {"job_name": naming.job(of_ops).name}
        made: dg.SensorDefinition = dg.sensor(
            name=naming.name(self.function.__name__),
            **targets,
            minimum_interval_seconds=interval_s,
            default_status=dg.DefaultSensorStatus.RUNNING if on else dg.DefaultSensorStatus.STOPPED,
            description=self.description,
        )(tick)
        return made


def sensor(*jobs: JobFactory, description: str) -> Callable[[Callable[..., Any]], SensorFactory]:
    """Return the decorator of a function that evaluates a tick, and requests runs of these jobs."""
    return lambda function: SensorFactory(function, jobs, description)


def factories_in(values: Iterable[object]) -> list[AssetFactory]:
    """Return the asset factories among the values of a module, including those in lists."""
    flat = (one for value in values for one in (value if isinstance(value, list) else [value]))
    return [one for one in flat if isinstance(one, AssetFactory)]


def check_result(
    *,
    passed: bool,
    description: str,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    metadata: Mapping[str, float | None] | None = None,
) -> dg.AssetCheckResult:
    """Return a check result. Its description is escaped, since it may contain text of an index or a file."""
    return dg.AssetCheckResult(
        passed=passed, severity=severity, description=inert_markdown(description), metadata=metadata
    )
