"""The service over a published index, for what questions become there."""

from pypi_assets_tests.service.conftest import client as client
from pypi_assets_tests.service.conftest import published as published
