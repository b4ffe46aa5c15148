"""Fixtures for the service over a published index, and for published versions that grow."""

from pypi_assets_tests.lookup.conftest import publisher as publisher
from pypi_assets_tests.service.conftest import client as client
from pypi_assets_tests.service.conftest import published as published
