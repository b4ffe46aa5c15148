"""The definitions of the pipeline in Dagster: policy, partitions, resources, assets, checks, jobs, sensors, schedules.

Only what Dagster has to know belongs here. `upkeep/` finds pending work and deletable files, and the domain
packages do the work. `dagster_instance/` has parts of the instance, such as run launchers.
"""

import warnings

import dagster as dg

# Dagster is pinned. Without these filters, each process would print the warnings for every asset.
warnings.filterwarnings("ignore", message=".*`backfill_policy`.*", category=dg.BetaWarning)
warnings.filterwarnings("ignore", message=".*partitions_def on an AssetCheckSpec.*", category=dg.PreviewWarning)
