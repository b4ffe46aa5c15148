"""What `dagster.yaml` loads: run launchers, the queue of runs, and storages.

They know Dagster alone: nothing of the pipeline belongs here.
"""
