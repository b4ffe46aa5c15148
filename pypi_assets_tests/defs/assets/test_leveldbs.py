"""The assets of LevelDB versions: one for each dataset, and versions that are refused."""

import dagster as dg
import pytest

from pypi_assets.defs.assets.leveldbs import LEVELDBS, leveldb_key
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets_tests.defs.conftest import Pipeline, failure_text


def test_each_dataset_has_an_asset_with_its_description_and_format() -> None:
    assert [asset.key for asset in LEVELDBS] == [dg.AssetKey(leveldb_key(name)) for name in DATASETS]
    for asset, dataset in zip(LEVELDBS, DATASETS.values(), strict=True):
        [spec] = asset.specs
        assert str(spec.description).startswith(dataset.description)
        assert spec.code_version == str(dataset.format)


@pytest.mark.parametrize("dataset", DATASETS)
def test_unknown_versions_are_refused(pipeline: Pipeline, dataset: str) -> None:
    pipeline.crawled()
    pipeline.instance.add_dynamic_partitions("leveldb_versions", ["00007"])
    leveldb = pipeline.asset(leveldb_key(dataset))
    assert "version 00007 was never allocated" in failure_text(pipeline.materialize(leveldb, "00007"))
    assert pipeline.marked(leveldb_key(dataset)) == []
