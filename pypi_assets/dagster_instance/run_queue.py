"""The queue of runs, with a daemon that looks at backfills every few seconds. Loaded by the root's dagster.yaml."""

import sys
from typing import Any, Self

import dagster as dg
from dagster._core.run_coordinator.queued_run_coordinator import QueuedRunCoordinator
from dagster._serdes import ConfigurableClassData

BACKFILL_INTERVAL_S = 5
_CONTROLLER = "dagster._daemon.controller"


class PromptRunCoordinator(QueuedRunCoordinator):
    """Dagster's own, whose daemon looks at backfills every `backfill_interval_seconds`.

    Dagster's looks every 30 seconds, and has no setting for it. A backfill of assets that follow each other waits for
    that several times.
    """

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        interval = dg.Field(dg.IntSource, default_value=BACKFILL_INTERVAL_S)
        return {**super().config_type(), "backfill_interval_seconds": interval}  # type: ignore[dict-item]

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> Self:
        if controller := sys.modules.get(_CONTROLLER):  # which the daemon alone imports
            controller.DEFAULT_DAEMON_INTERVAL_SECONDS = config_value["backfill_interval_seconds"]  # type: ignore[attr-defined]
        return super().from_config_value(inst_data, config_value)  # type: ignore[arg-type]
