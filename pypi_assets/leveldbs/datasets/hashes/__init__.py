"""The dataset `hashes`: maps the sha256 of a live file to its project, version and name."""

from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.hashes.hash_records import COLUMNS, FORMAT, change

HASHES = Dataset(
    name="hashes",
    format=FORMAT,
    description="The file with a given sha256: from hashes to projects, versions and filenames.",
    columns=COLUMNS,
    change=change,
    reader="pypi_assets.lookup.hashes_reader",
    key_schema={
        "h SHA256 PROJECT FILENAME": "the version, the project's name, and the serial since which the file is live",
        "f PROJECT FILENAME": "the sha256 of a file",
    },
    update_cost=2,  # each file has its own records
)
