"""The dataset `modules`: from the name of a module to the projects and versions that provide it."""

from functools import partial

from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.provided_names import COLUMNS, change_names, key_schema

MODULES = Dataset(
    name="modules",
    format=2,
    description="Which distributions provide a module: from module names to projects.",
    columns=(*COLUMNS, "modules"),
    change=partial(change_names, column="modules"),
    reader="pypi_assets.lookup.modules_reader",
    key_schema=key_schema("module"),
)
