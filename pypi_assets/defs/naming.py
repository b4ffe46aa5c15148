"""How the definitions of one index among several are named: the same as those of the default index, with its name.

Asset keys get a prefix, as do jobs, sensors, schedules, pools, sets of partitions, and the values by which runs exclude
each other. All of these are names of the whole Dagster instance. Groups, ops and resources belong to a code location,
and stay as they are. The default index has the names of before there were several.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import dagster as dg
from dagster._core.definitions.asset_selection import (
    AssetCheckKeysSelection,
    GroupsAssetSelection,
    KeysAssetSelection,
    OperandListAssetSelection,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster_shared.record import replace

from pypi_assets.defs.partitions import scope_names
from pypi_assets.defs.policy import ONE_AT_A_TIME_TAG, beta_parameters
from pypi_assets.defs.scope_tags import partitioned_by_scope
from pypi_assets.workspace import SEPARATOR

Job = dg.JobDefinition | UnresolvedAssetJobDefinition
_Assets = TypeVar("_Assets", bound=dg.AssetsDefinition)
_Partitions = TypeVar("_Partitions", bound=dg.PartitionsDefinition[Any] | None)


@dataclass(frozen=True)
class Naming:
    """The names of the definitions of `index`, its name with underscores for hyphens; empty for the default index.

    >>> Naming("company").name("full_crawl")
    'company__full_crawl'
    """

    index: str = ""
    _jobs: dict[str, Job] = field(default_factory=dict, compare=False, repr=False)

    def name(self, name: str) -> str:
        """The name of a job, sensor, schedule, pool or set of partitions."""
        return f"{self.index}{SEPARATOR}{name}" if self.index else name

    def key(self, key: dg.AssetKey) -> dg.AssetKey:
        """The key of an asset."""
        return key.with_prefix(self.index) if self.index else key

    def check_key(self, key: dg.AssetCheckKey) -> dg.AssetCheckKey:
        """The key of a check of an asset."""
        return key.replace_asset_key(self.key(key.asset_key))

    def partitions(self, partitions: _Partitions) -> _Partitions:
        """The set of partitions; a static one belongs to its assets, and is the same for all indexes."""
        if not self.index or not isinstance(partitions, dg.DynamicPartitionsDefinition):
            return partitions
        return dg.DynamicPartitionsDefinition(name=self.name(str(partitions.name)))  # type: ignore[return-value]

    def asset(self, asset: _Assets) -> _Assets:
        """An asset, or a check, with all that it names."""
        if not self.index:
            return asset
        named = {*asset.keys, *asset.node_keys_by_input_name.values(), *(key.asset_key for key in asset.check_keys)}
        renamed = asset.with_attributes(asset_key_replacements={key: self.key(key) for key in named})
        attributes = renamed.get_attributes_dict()
        attributes["node_def"] = self._op(asset.op)
        attributes["specs"] = [
            spec.replace_attributes(partitions_def=self.partitions(spec.partitions_def)) for spec in renamed.specs
        ]
        attributes["check_specs_by_output_name"] = {
            output: replace(spec, additional_deps=[self._dep(dep) for dep in spec.additional_deps])
            for output, spec in renamed.node_check_specs_by_output_name.items()
        }
        with beta_parameters():  # as Dagster itself does where it makes such copies
            return type(asset)(**attributes)

    def job(self, job: Job) -> Job:
        """A job; the same object each time, as sensors and schedules need it."""
        if not self.index:
            return job
        if job.name not in self._jobs:
            self._jobs[job.name] = self._renamed(job)
        return self._jobs[job.name]

    def _renamed(self, job: Job) -> Job:
        name, tags = self.name(job.name), self._tags(job.tags or {})
        if isinstance(job, UnresolvedAssetJobDefinition):
            selection, config = self._selection(job.selection), job.config
            if isinstance(config, dg.PartitionedConfig):
                config = partitioned_by_scope(self.index, self.partitions(scope_names))
            return replace(job, name=name, tags=tags, selection=selection, config=config)
        ops = [self._op(node) for node in job.graph.node_defs if isinstance(node, dg.OpDefinition)]
        graph = dg.GraphDefinition(name=name, node_defs=ops, dependencies=job.graph.dependencies)
        return graph.to_job(description=job.description, tags=tags, metadata=job.metadata)

    def _tags(self, tags: Mapping[str, str]) -> dict[str, str]:
        return {key: self.name(value) if key == ONE_AT_A_TIME_TAG else value for key, value in tags.items()}

    def _op(self, op: dg.OpDefinition) -> dg.OpDefinition:
        if op.pool is None:
            return op
        renamed = copy.copy(op)
        renamed._pool = self.name(op.pool)  # Dagster has no function that replaces it
        return renamed

    def _dep(self, dep: dg.AssetDep) -> dg.AssetDep:
        return dep._replace(asset_key=self.key(dep.asset_key))

    def _selection(self, selection: dg.AssetSelection) -> dg.AssetSelection:
        """The selection of the same assets and checks. Raises TypeError for a kind of selection that no job has yet."""
        if isinstance(selection, GroupsAssetSelection):
            return selection
        if isinstance(selection, KeysAssetSelection):
            return replace(selection, selected_keys=[self.key(key) for key in selection.selected_keys])
        if isinstance(selection, AssetCheckKeysSelection):
            keys = [self.check_key(key) for key in selection.selected_asset_check_keys]
            return replace(selection, selected_asset_check_keys=keys)
        if isinstance(selection, OperandListAssetSelection):
            return replace(selection, operands=[self._selection(one) for one in selection.operands])
        raise TypeError(f"the assets of {selection!r} cannot be renamed")


BARE = Naming()
"""The names of the default index."""
