"""Each entry of the registry is complete and documented."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from pypi_assets.catalog.publications.dump_columns import COLUMNS
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.registry import DATASETS, require_dataset
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets_tests.naming import naming

DOCS = Path(__file__).parent.parent.parent.parent / "docs"


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=DATASETS)
def test_registry_entries_are_complete(dataset: Dataset) -> None:
    reader = import_module(dataset.reader)
    assert reader.READER.dataset == dataset.name
    assert set(dataset.columns) <= set(COLUMNS)
    assert dataset.description.endswith(".")


def test_docs_list_all_datasets() -> None:
    page = (DOCS / "ask.md").read_text()
    for dataset in DATASETS.values():
        assert f"| `{dataset.name}` | {dataset.description} |" in page
        assert f"### `{dataset.name}`, format {dataset.format}\n" in (DOCS / "formats.md").read_text()


def test_format_page_names_every_dataset() -> None:
    [names] = re.findall(r"`DATASET` is ([^.]*)\.", (DOCS / "formats.md").read_text())
    assert re.findall(r"`(\w+)`", names) == list(DATASETS)


def test_unknown_dataset_is_rejected() -> None:
    with pytest.raises(LeveldbError, match=naming("modules", "depgraph")):
        require_dataset("other")
