"""Dagster's view of the pipeline: policy, partitions, resources, assets, checks, jobs, sensors and schedules.

Only what Dagster has to know belongs here. What is due and what may be deleted is decided in `upkeep/`, and the work is
done by the domain packages. Plumbing of the instance, such as run launchers, is in `dagster_instance/`.
"""

import warnings

import dagster as dg

# Dagster is pinned; the warnings would appear for every asset in every process.
warnings.filterwarnings("ignore", message=".*`backfill_policy`.*", category=dg.BetaWarning)
warnings.filterwarnings("ignore", message=".*partitions_def on an AssetCheckSpec.*", category=dg.PreviewWarning)
