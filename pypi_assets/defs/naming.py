"""The names of the definitions of each index, if there are several indexes.

The definitions of the default index have bare names. For other indexes, the index's name is a prefix of asset keys,
jobs, sensors, schedules, pools, sets of partitions, and the values by which runs exclude each other, since all of these
are names within the whole Dagster instance. Groups and resources belong to a code location, and have no prefix. The
definitions are made in `factories.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import dagster as dg

from pypi_assets.defs.policy import ONE_AT_A_TIME_TAG
from pypi_assets.workspace import SEPARATOR

_Partitions = TypeVar("_Partitions", bound=dg.PartitionsDefinition[Any] | None)


class JobFactory(Protocol):
    """Makes the job of each index."""

    @property
    def name(self) -> str: ...

    def make(self, naming: "Naming") -> Any:
        """Return the job. Its type is Any, since Dagster does not export a common class of all jobs."""


@dataclass(frozen=True)
class Naming:
    """The names of the definitions of an index.

    `index` is the index's name, with underscores instead of hyphens; empty for the default index.

    >>> Naming("company").name("full_crawl")
    'company__full_crawl'
    """

    index: str = ""
    _jobs: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def name(self, name: str) -> str:
        """Return the name of a job, sensor, schedule, pool or set of partitions."""
        return f"{self.index}{SEPARATOR}{name}" if self.index else name

    def key(self, key: dg.AssetKey | str) -> dg.AssetKey:
        """Return the key of an asset."""
        bare = dg.AssetKey(key) if isinstance(key, str) else key
        return bare.with_prefix(self.index) if self.index else bare

    def check_key(self, key: dg.AssetCheckKey) -> dg.AssetCheckKey:
        """Return the key of a check of an asset."""
        return dg.AssetCheckKey(self.key(key.asset_key), key.name)

    def dep(self, dep: dg.AssetDep | str) -> dg.AssetDep:
        """Return the dependency on an asset."""
        bare = dg.AssetDep(dep) if isinstance(dep, str) else dep
        return dg.AssetDep(self.key(bare.asset_key), partition_mapping=bare.partition_mapping)

    def partitions(self, partitions: _Partitions) -> _Partitions:
        """Return the set of partitions. A static set belongs to its assets, and is the same for all indexes."""
        if not self.index or not isinstance(partitions, dg.DynamicPartitionsDefinition):
            return partitions
        return dg.DynamicPartitionsDefinition(name=self.name(str(partitions.name)))  # type: ignore[return-value]

    def tags(self, tags: Mapping[str, str]) -> dict[str, str]:
        """Return the tags of a job."""
        return {key: self.name(value) if key == ONE_AT_A_TIME_TAG else value for key, value in tags.items()}

    def job(self, factory: JobFactory) -> Any:
        """Return the job that the factory makes. It is always the same object, as sensors and schedules need it."""
        if factory.name not in self._jobs:
            self._jobs[factory.name] = factory.make(self)
        return self._jobs[factory.name]


BARE = Naming()
"""The names of the default index."""
