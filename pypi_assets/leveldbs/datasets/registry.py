"""The datasets to build. To add one, add it to `DATASETS`; everything else is generated from its definition."""

from collections.abc import Iterable

from pypi_assets.leveldbs.datasets.commands import COMMANDS
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.depgraph import DEPGRAPH
from pypi_assets.leveldbs.datasets.hashes import HASHES
from pypi_assets.leveldbs.datasets.modules import MODULES
from pypi_assets.leveldbs.datasets.simple import SIMPLE
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError


def _by_name(datasets: Iterable[Dataset]) -> dict[str, Dataset]:
    return {dataset.name: dataset for dataset in datasets}


DATASETS = _by_name([MODULES, DEPGRAPH, COMMANDS, HASHES, SIMPLE])
"""The datasets by name, in the order in which they are built and listed."""


def require_dataset(name: str) -> Dataset:
    """Return the dataset of this name. Raises LeveldbError if there is none."""
    if name not in DATASETS:
        raise LeveldbError(f"there is no dataset {name!r}; there are {', '.join(DATASETS)}")
    return DATASETS[name]
