"""The classes that `dagster.yaml` loads: run launchers, and a storage on PostgreSQL. And the state of an instance, for
`status` and metrics.

They know Dagster alone: nothing of the pipeline belongs here.
"""
