"""pypi-assets keeps an exact, queryable picture of a Python package index."""

from importlib.metadata import version

__version__ = version("pypi-assets")
