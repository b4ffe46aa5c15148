"""Compute pending work and deletable objects once, for the command line, Dagster, status and metrics."""
