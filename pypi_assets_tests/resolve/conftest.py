"""Commands over a served index, for tests that end in a lock."""

from pypi_assets_tests.cli.conftest import commands, index

__all__ = ["commands", "index"]
