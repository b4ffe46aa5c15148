"""Finds the reader and the look-up commands of each dataset, by the module that its entry names."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.lookup.lookup_command import LookupCommand
from pypi_assets.lookup.reader import Reader


def reader_class(dataset: Dataset) -> type[Reader]:
    """The class that reads the dataset: `READER` of its module."""
    reader: type[Reader] = import_module(dataset.reader).READER
    return reader


def lookup_commands() -> Iterator[tuple[Dataset, LookupCommand[Any]]]:
    """The sub-commands of `pypi-assets lookup`, each with the dataset that answers it, in the registry's order."""
    for dataset in DATASETS.values():
        for command in getattr(import_module(dataset.reader), "COMMANDS", ()):
            yield dataset, command
