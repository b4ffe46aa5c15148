"""The reader of each dataset comes from the module that its entry names."""

from dataclasses import replace

import pytest

from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.lookup.commands_reader import CommandsReader
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.hashes_reader import HashesReader
from pypi_assets.lookup.latest import reader_class
from pypi_assets.lookup.modules_reader import ModulesReader
from pypi_assets.lookup.simple_reader import SimpleReader


def test_each_dataset_has_its_reader() -> None:
    assert {name: reader_class(dataset) for name, dataset in DATASETS.items()} == {
        "modules": ModulesReader,
        "depgraph": DepgraphReader,
        "commands": CommandsReader,
        "hashes": HashesReader,
        "simple": SimpleReader,
    }


def test_a_dataset_without_a_reader_module_is_an_error() -> None:
    lost = replace(DATASETS["modules"], name="lost", reader="pypi_assets.lookup.no_such_module")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        reader_class(lost)
