"""Commands over an index that is served, for what ends in a lock."""

from pypi_assets_tests.cli.conftest import commands, index

__all__ = ["commands", "index"]
