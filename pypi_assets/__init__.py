"""pypi-assets keeps an exact, queryable picture of a Python package index."""
