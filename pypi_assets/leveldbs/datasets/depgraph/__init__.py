"""The dataset `depgraph`: from a project and version to its distributions and what they require, and back."""

from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.depgraph.records import COLUMNS, FORMAT, change

DEPGRAPH = Dataset(
    name="depgraph",
    format=FORMAT,
    description="What a project and version requires: from distributions to requirements.",
    columns=COLUMNS,
    change=change,
    reader="pypi_assets.lookup.depgraph_reader",
)
