"""Finds the instance of Dagster that `DAGSTER_HOME` names. Imports no Dagster, which takes a second."""

import os
from pathlib import Path


def has_instance() -> bool:
    """Return whether `DAGSTER_HOME` has an instance of Dagster. Dagster itself would create one there."""
    home = os.environ.get("DAGSTER_HOME", "")
    return bool(home) and (Path(home).expanduser() / "dagster.yaml").is_file()
