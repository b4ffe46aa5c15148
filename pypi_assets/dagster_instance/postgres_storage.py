"""Dagster's PostgreSQL storage with pooled connections. `deploy/dagster.yaml` loads it."""

import os
from functools import cache
from typing import Any, Self

import dagster as dg
from dagster_postgres import DagsterPostgresStorage
from sqlalchemy import Engine, create_engine

_KEPT = 5


class PooledPostgresStorage(DagsterPostgresStorage):
    """Dagster's PostgreSQL storage, with a pool of connections.

    Outside of the webserver, Dagster opens a connection for each statement, which costs more than most statements, and
    one event of a partition takes several statements. Here each process keeps up to five connections open. Each
    connection is tested before use, so PostgreSQL may be restarted in between.
    """

    def __init__(self, postgres_url: str, *, inst_data: Any = None) -> None:
        super().__init__(postgres_url, inst_data=inst_data)
        for storage in (self._run_storage, self._event_log_storage, self._schedule_storage):
            storage._engine = _engine(postgres_url)

    @classmethod
    def config_type(cls) -> dict[str, dg.Field]:
        return {"postgres_url": dg.Field(dg.StringSource)}

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> Self:
        return cls(config_value["postgres_url"], inst_data=inst_data)


@cache
def _engine(url: str) -> Engine:
    """Return the engine of this process.

    It is cached, since Dagster opens its storage again for each tick of a sensor.
    """
    engine = create_engine(url, isolation_level="AUTOCOMMIT", pool_size=_KEPT, max_overflow=-1, pool_pre_ping=True)
    os.register_at_fork(after_in_child=lambda: engine.dispose(close=False))
    return engine
