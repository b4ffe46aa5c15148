"""What `dagster.yaml` loads: run launchers, the queue of runs, and storages. And the counts of runs, for metrics.

They know Dagster alone: nothing of the pipeline belongs here.
"""
