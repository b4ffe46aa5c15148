"""The package index that is followed, as the asset that all lineage begins with. Nothing of ours materializes it."""

import dagster as dg

PACKAGE_INDEX = dg.AssetSpec(
    "package_index",
    group_name="package_index",
    description="The package index that is followed: its list of projects, their pages, its changelog and its files.",
    metadata={"docs": dg.MetadataValue.text("docs/indexes.md")},
    kinds={"python"},
)
