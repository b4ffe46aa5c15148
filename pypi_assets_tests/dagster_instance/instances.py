"""What tests run on an instance of Dagster."""

from pathlib import Path

import dagster as dg


@dg.asset(partitions_def=dg.DynamicPartitionsDefinition(name="ranges"))
def anything() -> None:
    """Something to materialize."""


def open_files(folder: Path) -> list[Path]:
    """The files of `folder` that this process has open."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            path = descriptor.readlink()
        except FileNotFoundError:  # the one that lists them
            continue
        if folder in path.parents:
            found.append(path)
    return found
