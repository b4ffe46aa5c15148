"""What tests run on an instance of Dagster."""

import dagster as dg


@dg.asset(partitions_def=dg.DynamicPartitionsDefinition(name="ranges"))
def anything() -> None:
    """Something to materialize."""
