"""What `dagster.yaml` loads: run launchers, the queue of runs, and storages. And what the
instance does, for `status` and metrics.

They know Dagster alone: nothing of the pipeline belongs here.
"""
