"""The dataset `depgraph`: from a project and version to its distributions and what they require, and back."""

from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.depgraph.depgraph_records import COLUMNS, FORMAT, change

DEPGRAPH = Dataset(
    name="depgraph",
    format=FORMAT,
    description="What a project and version requires: from distributions to requirements.",
    columns=COLUMNS,
    change=change,
    reader="pypi_assets.lookup.depgraph_reader",
    key_schema={
        "d PROJECT": "the files of a project, by release, with what they require; of more than 20 files, their number",
        "d PROJECT RELEASE": "the files of a release",
        "d PROJECT (empty) SHARED": "what some files of the project have in common, such as their requirements",
        "f PROJECT FILENAME": "the release of a file",
        "r REQUIRED PROJECT": "the releases of the project that require the other one: always, or under a condition",
        "t REQUIRED": "how many projects require this one",
    },
    tallied=("r", "t"),
)
