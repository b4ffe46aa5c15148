"""The dataset `hashes`: from the sha256 of a live file to its project, version and name."""

from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.hashes.records import COLUMNS, FORMAT, change

HASHES = Dataset(
    name="hashes",
    format=FORMAT,
    description="Which file has a sha256: from hashes to projects, versions and filenames.",
    columns=COLUMNS,
    change=change,
    reader="pypi_assets.lookup.hashes_reader",
)
