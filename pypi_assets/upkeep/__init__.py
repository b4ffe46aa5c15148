"""What is due, and what may be deleted: each computed once, for the command line, Dagster, status and metrics."""
