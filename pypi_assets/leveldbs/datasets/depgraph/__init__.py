"""The dataset `depgraph`: maps a project and version to its distributions and their requirements, and back."""

from pypi_assets.leveldbs.datasets.dataset import Dataset, SideFiles
from pypi_assets.leveldbs.datasets.depgraph.depgraph_records import COLUMNS, FORMAT, change
from pypi_assets.leveldbs.datasets.depgraph.edge_building import ChangedEdges, edge_problem, write_edges
from pypi_assets.leveldbs.datasets.depgraph.edge_file import SUFFIX
from pypi_assets.leveldbs.datasets.depgraph.edges import LazyEdges, check_edges

DEPGRAPH = Dataset(
    name="depgraph",
    format=FORMAT,
    description="The requirements of a project and version: from distributions to requirements.",
    columns=COLUMNS,
    change=change,
    reader="pypi_assets.lookup.depgraph_reader",
    key_schema={
        "d PROJECT": "the files of a project by release, with their requirements; or their number, if more than 20",
        "d PROJECT RELEASE": "the files of a release",
        "d PROJECT (empty) SHARED": "the values that several files of the project share, such as their requirements",
        "f PROJECT FILENAME": "the release of a file",
        "r REQUIRED PROJECT": "the releases of PROJECT that require REQUIRED: always, or under a condition",
        "t REQUIRED": "the number of projects that require it",
    },
    tallied=("r", "t"),
    side_files=SideFiles(SUFFIX, ChangedEdges, write_edges, LazyEdges, check_edges, edge_problem),
)
