"""The dataset `modules`: from the name of a module to the projects and versions that provide it."""

from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.modules.records import COLUMNS, FORMAT, change

MODULES = Dataset(
    name="modules",
    format=FORMAT,
    description="Which distributions provide a module: from module names to projects.",
    columns=COLUMNS,
    change=change,
    reader="pypi_assets.lookup.modules_reader",
)
