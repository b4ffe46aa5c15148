"""Dagster's view of the pipeline: partitions, resources, assets, checks, jobs, sensors and schedules.

A thin skin. What is done is decided by the domain packages; here is only what Dagster has to know of it.
"""

import warnings

import dagster as dg

# Pinned releases hold still; the notice would come up for every asset in every process.
warnings.filterwarnings("ignore", message=".*`backfill_policy`.*", category=dg.BetaWarning)
