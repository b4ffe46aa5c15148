"""Sets of versions of equal serial: which are chosen, whatever is published in which order."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.errors import NoVersionError
from pypi_assets.leveldbs.versions.input_lists import InputList, write_input_list
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.hashes_reader import HashesReader
from pypi_assets.lookup.modules_reader import ModulesReader
from pypi_assets.lookup.published_sets import PublishedSets
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.lookup.publisher import Publisher


def listed(published: Iterable[tuple[str, int, int]]) -> Storage:
    """A storage with the input lists of these (dataset, version, serial), and nothing else."""
    storage = open_storage("memory:///")
    for dataset, version, serial in published:
        write_input_list(storage, InputList(dataset, version, f"{version:05d}", "0" * 64, serial, ()))
    return storage


def everything(version: int, serial: int) -> list[tuple[str, int, int]]:
    return [(dataset, version, serial) for dataset in DATASETS]


def test_a_set_is_the_newest_that_all_datasets_have():
    ahead = ("modules", 2, 200)
    newest = PublishedSets(listed([*everything(1, 100), ahead])).newest()
    assert newest is not None
    assert (newest.serial, newest.versions) == (100, dict.fromkeys(DATASETS, 1))
    newest = PublishedSets(listed([*everything(1, 100), *everything(2, 200)])).newest()
    assert newest is not None
    assert (newest.serial, newest.versions) == (200, dict.fromkeys(DATASETS, 2))


def test_a_dataset_that_is_not_built_keeps_the_others_from_nothing():
    without = [one for one in everything(1, 100) if one[0] != "hashes"]
    newest = PublishedSets(listed(without)).newest()
    assert newest is not None
    assert newest.versions.keys() == DATASETS.keys() - {"hashes"}
    assert PublishedSets(listed([])).newest() is None


def test_of_versions_of_one_serial_the_last_counts_and_names_another_set():
    first = PublishedSets(listed(everything(1, 100))).newest()
    again = PublishedSets(listed([*everything(1, 100), ("modules", 2, 100)])).newest()
    assert first is not None
    assert again is not None
    assert again.versions == {**first.versions, "modules": 2}
    assert first.serial == again.serial
    assert first.id != again.id


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(DATASETS)), st.integers(1, 5), st.integers(1, 4)),
        max_size=12,
        unique_by=lambda one: one[:2],
    )
)
def test_no_other_set_has_more_datasets_or_as_many_and_a_greater_serial(published: list[tuple[str, int, int]]):
    newest = PublishedSets(listed(published)).newest()
    of_serial = {serial: {dataset for dataset, _, one in published if one == serial} for _, _, serial in published}
    best = max(((len(datasets), serial) for serial, datasets in of_serial.items()), default=None)
    found = None if newest is None else (len(newest.versions), newest.serial)
    assert found == best


def test_readers_of_a_set_agree_and_stay_where_they_are(publisher: Publisher):
    sets = PublishedSets(publisher.storage)
    opened = sets.open_newest()
    assert opened is not None
    assert sets.open_newest(opened) is None
    publisher.publish()
    assert opened.reader(ModulesReader).refresh() is False
    newer = sets.open_newest(opened)
    assert newer is not None
    assert {reader.serial for reader in newer.readers.values()} == {newer.serial} == {publisher.serial}
    assert {reader.serial for reader in opened.readers.values()} == {100}
    assert sets.open_named(opened.id) is not None
    assert sets.open_named("100-other") is None
    with pytest.raises(NoVersionError, match=r"hashes.*\b100\b"):
        opened.reader(HashesReader)
    with newer.opened("modules") as modules, newer.opened("hashes") as hashes:
        assert isinstance(modules, ModulesReader)
        assert hashes is None


def test_a_damaged_version_leads_to_the_next_best_set(publisher: Publisher, tmp_path: Path):
    publisher.publish()
    version = build_version("commands", storage=publisher.storage, catalog=publisher.small.catalog).version
    sets = PublishedSets(publisher.storage)
    [table] = (tmp_path / "storage" / "commands").rglob("*.ldb")
    table.write_bytes(b"damaged")
    opened = sets.open_newest()
    assert opened is not None
    assert opened.readers.keys() == {"modules", "depgraph"}
    assert sets.skipped["commands", version]
    sets.skip(opened, "modules", "a block is damaged")
    opened = sets.open_newest(opened)
    assert opened is not None
    assert opened.serial == 100
    assert opened.reader(DepgraphReader).dependents("base").results
