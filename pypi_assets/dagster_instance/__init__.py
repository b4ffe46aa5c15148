"""What `dagster.yaml` loads: run launchers and event-log storages.

They know Dagster alone: nothing of the pipeline belongs here.
"""
