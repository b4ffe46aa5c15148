"""The upkeep tests share a catalog and a storage whose time passes on demand."""

from pypi_assets_tests.upkeep.simulated_upkeep import upkeep as upkeep
