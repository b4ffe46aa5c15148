"""Assets and helpers for tests that use a real Dagster instance."""

from pathlib import Path

import dagster as dg


@dg.asset(partitions_def=dg.DynamicPartitionsDefinition(name="ranges"))
def anything() -> None:
    """Materialize nothing."""


def open_files(folder: Path) -> list[Path]:
    """Return the files below `folder` that this process has open."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            path = descriptor.readlink()
        except FileNotFoundError:  # the descriptor that lists the folder
            continue
        if folder in path.parents:
            found.append(path)
    return found
