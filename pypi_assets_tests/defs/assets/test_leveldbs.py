"""The assets of LevelDB versions: one for each dataset, and versions that are refused."""

import pytest

from pypi_assets.defs.assets.leveldbs import LEVELDBS
from pypi_assets.defs.factories import ForIndex
from pypi_assets.defs.policy import leveldb_asset
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import leveldb_path
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets_tests.defs.conftest import Pipeline, failure_text
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_each_dataset_has_an_asset_with_its_description_and_format() -> None:
    assert [asset.name for asset in LEVELDBS] == [leveldb_asset(name) for name in DATASETS]
    for asset, dataset in zip(LEVELDBS, DATASETS.values(), strict=True):
        [spec] = asset.make(ForIndex()).specs
        assert unnamed(str(spec.description), dataset.description) == []
        assert spec.code_version == str(dataset.format)


@pytest.mark.nightly
@pytest.mark.parametrize("dataset", DATASETS)
def test_unknown_versions_are_refused(pipeline: Pipeline, dataset: str) -> None:
    pipeline.crawled()
    pipeline.instance.add_dynamic_partitions("leveldb_versions", ["00007"])
    leveldb = pipeline.asset(leveldb_asset(dataset))
    assert unnamed(failure_text(pipeline.materialize(leveldb, "00007")), "00007") == []
    assert pipeline.marked(leveldb_asset(dataset)) == []


def test_a_version_shows_where_it_lies_its_keys_and_a_few_records(index: ServedIndex, pipeline: Pipeline) -> None:
    index.wheel("evil", "1.0", requires_dist=["beta @ https://evil.example.org/a"], files={"[a](b)/__init__.py": b""})
    pipeline.crawled()
    (name,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", name).success
    for dataset in DATASETS:
        shown = pipeline.metadata(leveldb_asset(dataset), name)
        path = leveldb_path(dataset, name)
        assert shown["uri"] == pipeline.storage.uri(path)
        assert shown["manifest"].startswith(f"{shown['uri']}/")
        assert pipeline.storage.get(f"{path}/{shown['manifest'].rpartition('/')[2]}")
        schema = shown["key schema"].splitlines()[2:]
        assert len(schema) == len(DATASETS[dataset].key_schema)
        counts = [cells[3].strip() for row in schema if (cells := row.split("|")) and cells[3].strip()]
        assert sum(map(int, counts)) == shown["records"] > 0
        samples = shown["samples"].splitlines()[2:]
        assert len(samples) == max(5, len({form[0] for form in DATASETS[dataset].key_schema}))
        forms = {sample.split(" \\\\0 ")[0].removeprefix("| ") for sample in samples}
        assert forms == set(read_published(pipeline.storage, dataset, 1).manifest.counts)
    assert "| m \\\\0 MODULE \\\\0 PROJECT | " in pipeline.metadata("modules_leveldb", name)["key schema"]
    assert (
        "| m \\\\0 alpha_module \\\\0 alpha | alpha_module |" in pipeline.metadata("modules_leveldb", name)["samples"]
    )


def test_every_kind_of_key_that_is_stored_is_described(index: ServedIndex, pipeline: Pipeline) -> None:
    index.wheel("many", "1.0", entry_points="[console_scripts]\nmany = many:main\n")
    pipeline.crawled()
    (name,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", name).success
    for dataset in DATASETS.values():
        counts = read_published(pipeline.storage, dataset.name, 1).manifest.counts
        assert set(counts) <= {form[0] for form in dataset.key_schema}, dataset.name
