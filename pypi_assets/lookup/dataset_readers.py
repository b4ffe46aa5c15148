"""Finds the reader of each dataset, by the module that its entry names."""

from functools import cache
from importlib import import_module

from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.registry import require_dataset
from pypi_assets.lookup.reader import Reader


@cache
def reader_of(dataset: str) -> type[Reader]:
    """Return the class that reads the dataset of this name. Raises LeveldbError."""
    return reader_class(require_dataset(dataset))


def reader_class(dataset: Dataset) -> type[Reader]:
    """Return the class that reads the dataset: `READER` of its module."""
    reader: type[Reader] = import_module(dataset.reader).READER
    return reader
