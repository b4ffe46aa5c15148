"""The assets, one module a group, in the order in which the data flows."""
