"""What `dagster.yaml` loads: run launchers and event-log storages. Plain Dagster: nothing of the pipeline belongs here."""
