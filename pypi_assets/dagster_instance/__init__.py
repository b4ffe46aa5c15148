"""Classes that `dagster.yaml` loads (run launchers and a PostgreSQL storage), and the state of an instance.

The state is for `status` and metrics. These modules depend only on Dagster: nothing of the pipeline belongs here.
"""
