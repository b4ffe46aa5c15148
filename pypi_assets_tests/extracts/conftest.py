"""A served index for every test of what is kept of distributions: a crawl reads them first."""

from pypi_assets_tests.crawl.conftest import index

__all__ = ["index"]
