"""Dagster's files of a stack: its instance, made from `dagster_instance/dagster.yaml`, and its workspace."""

from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import yaml

from pypi_assets.stack.layout import Layout
from pypi_assets.workspace import CodeLocation

_HEADER = "# Written by `pypi-assets up`, which replaces it at each start.\n"
_POSTGRES = {
    "custom": {
        "module": "pypi_assets.dagster_instance.postgres_storage",
        "class": "PooledPostgresStorage",
        "config": {"postgres_url": {"env": "DAGSTER_POSTGRES_URL"}},
    }
}
_OF_CODE_SERVER = {"module": "pypi_assets.dagster_instance.run_launcher", "class": "WatchedRunLauncher"}
_OF_CELERY = {
    "module": "pypi_assets.dagster_instance.celery_launcher",
    "class": "WatchedCeleryRunLauncher",
    "config": {"broker": {"env": "CELERY_BROKER_URL"}, "backend": {"env": "CELERY_RESULT_BACKEND"}},
}
CELERY_CONFIG = "from pypi_assets.dagster_instance.celery_settings import *  # noqa: F403\n"
"""The module that Dagster's app for Celery imports from the folder of a worker."""


def instance_yaml(*, on_postgres: bool, with_celery: bool) -> str:
    """The content of `dagster.yaml`: the one for one machine, with the storage and the run launcher of this stack."""
    text = files("pypi_assets.dagster_instance").joinpath("dagster.yaml").read_text(encoding="utf-8")
    instance: dict[str, Any] = yaml.safe_load(text)
    if on_postgres:
        instance["storage"] = _POSTGRES
    instance["run_launcher"] = _OF_CELERY if with_celery else _OF_CODE_SERVER
    return _HEADER + str(yaml.safe_dump(instance, sort_keys=False))


def workspace_yaml(layout: Layout, locations: Iterable[CodeLocation]) -> str:
    """The content of `workspace.yaml`: the socket of each code location's server."""
    servers = [
        {"grpc_server": {"socket": str(layout.code_socket(one.name)), "location_name": one.name}} for one in locations
    ]
    return _HEADER + str(yaml.safe_dump({"load_from": servers}, sort_keys=False))
