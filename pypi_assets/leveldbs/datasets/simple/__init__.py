"""The dataset `simple`: the content of each project's page in the Simple API."""

from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.simple.page_records import COLUMNS, FORMAT, change

SIMPLE = Dataset(
    name="simple",
    format=FORMAT,
    description="The content of a project's page: URLs, hashes, yanks and metadata of its files.",
    columns=COLUMNS,
    change=change,
    reader="pypi_assets.lookup.simple_reader",
    key_schema={
        "f PROJECT FILENAME": "the release, URL, sha256, size, Requires-Python, time of upload or first sighting,"
        " yank and metadata of a file, and the status of its project",
    },
    update_cost=2,  # each file has its own records
)
