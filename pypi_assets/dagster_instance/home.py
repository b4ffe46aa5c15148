"""Finds and opens the Dagster instance that `DAGSTER_HOME` names. Opening it imports Dagster, which takes a second."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dagster as dg


def has_instance() -> bool:
    """Return whether `DAGSTER_HOME` has a Dagster instance. Dagster itself would create one there."""
    home = os.environ.get("DAGSTER_HOME", "")
    return bool(home) and (Path(home).expanduser() / "dagster.yaml").is_file()


def open_instance() -> "dg.DagsterInstance":
    """Return the instance, a context manager. Raises any error of the classes that `dagster.yaml` names."""
    import dagster as dg

    return dg.DagsterInstance.get()
