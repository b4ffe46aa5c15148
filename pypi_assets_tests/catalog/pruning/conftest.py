"""The tests of upkeep share a catalog and a storage that age."""

from pypi_assets_tests.upkeep.simulated_upkeep import upkeep as upkeep
