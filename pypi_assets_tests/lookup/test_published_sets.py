"""Sets of versions of equal serial, and their choice for any order of publication."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, NoVersionError
from pypi_assets.leveldbs.versions.input_lists import InputList, write_input_list
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.hashes_reader import HashesReader
from pypi_assets.lookup.modules_reader import ModulesReader
from pypi_assets.lookup.published_sets import NeededDatasets, PublishedSets, SerialsDifferError
from pypi_assets.lookup.reader import DatasetReader
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.lookup.publisher import Publisher
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.waiting import until


def listed(published: Iterable[tuple[str, int, int]]) -> Storage:
    """Return a storage that has only the input lists of these (dataset, version, serial)."""
    storage = open_storage("memory:///")
    for dataset, version, serial in published:
        write_input_list(storage, InputList(dataset, version, f"{version:05d}", "0" * 64, serial, ()))
    return storage


def everything(version: int, serial: int) -> list[tuple[str, int, int]]:
    return [(dataset, version, serial) for dataset in DATASETS]


def test_set_is_the_newest_common_to_all_datasets():
    ahead = ("modules", 2, 200)
    newest = PublishedSets(listed([*everything(1, 100), ahead])).newest()
    assert newest is not None
    assert (newest.serial, newest.versions) == (100, dict.fromkeys(DATASETS, 1))
    newest = PublishedSets(listed([*everything(1, 100), *everything(2, 200)])).newest()
    assert newest is not None
    assert (newest.serial, newest.versions) == (200, dict.fromkeys(DATASETS, 2))


def test_unbuilt_dataset_does_not_affect_the_others():
    without = [version for version in everything(1, 100) if version[0] != "hashes"]
    newest = PublishedSets(listed(without)).newest()
    assert newest is not None
    assert newest.versions.keys() == DATASETS.keys() - {"hashes"}
    assert PublishedSets(listed([])).newest() is None


def test_last_version_of_a_serial_counts_and_makes_a_new_set():
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
def test_chosen_set_has_the_most_datasets_and_the_greatest_serial(published: list[tuple[str, int, int]]):
    newest = PublishedSets(listed(published)).newest()
    of_serial = {serial: {dataset for dataset, _, one in published if one == serial} for _, _, serial in published}
    best = max(((len(datasets), serial) for serial, datasets in of_serial.items()), default=None)
    found = None if newest is None else (len(newest.versions), newest.serial)
    assert found == best


def test_readers_of_a_set_agree_and_stay_at_their_versions(publisher: Publisher):
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


def spoil(dataset: Path, damage: Callable[[bytes], bytes]) -> None:
    """Change a table that only the newest version of a dataset has."""
    [table] = max((dataset / "leveldbs").iterdir()).glob("*.ldb")
    content = damage(table.read_bytes())
    table.unlink()
    table.write_bytes(content)


def test_corrupt_version_falls_back_to_the_next_best_set(publisher: Publisher, tmp_path: Path):
    publisher.publish()
    version = build_version("commands", storage=publisher.storage, catalog=publisher.small.catalog).version
    sets = PublishedSets(publisher.storage)
    [table] = (tmp_path / "storage" / "commands").rglob("*.ldb")
    table.write_bytes(b"damaged")
    opened = sets.open_newest()
    assert opened is not None
    assert opened.readers.keys() == {"modules", "depgraph"}
    assert sets.skipped["commands", version]
    spoil(tmp_path / "storage" / "modules", lambda content: content[:-1])
    with pytest.raises(LeveldbDamagedError):
        sets.open_reader("modules", opened.published.versions["modules"])
    assert sets.is_skipped(opened.published)
    opened = sets.open_newest(opened)
    assert opened is not None
    assert opened.serial == 100
    assert opened.reader(DepgraphReader).dependents("base").results


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(DATASETS)), st.integers(1, 5)),
        max_size=12,
        unique=True,
    ),
    st.sets(st.sampled_from(sorted(DATASETS)), min_size=1),
)
def test_newest_set_of_some_datasets_has_their_greatest_common_serial(
    published: list[tuple[str, int]], needed: set[str]
):
    sets = PublishedSets(listed((dataset, version, 10 * version) for dataset, version in published))
    common = set.intersection(*({version for one, version in published if one == dataset} for dataset in needed))
    if common:
        newest = sets.newest_of(needed)
        assert (newest.serial, newest.versions) == (10 * max(common), dict.fromkeys(needed, max(common)))
    elif needed <= {dataset for dataset, _ in published}:
        with pytest.raises(SerialsDifferError):
            sets.newest_of(needed)
    else:
        with pytest.raises(NoVersionError):
            sets.newest_of(needed)


def serials(datasets: NeededDatasets, *kinds: type[DatasetReader]) -> tuple[int, ...]:
    """Return the serials of the readers that one answer gets."""
    return datasets.answered(lambda: tuple(datasets.reader(kind).serial for kind in kinds))


def test_answer_needs_only_its_datasets_and_never_mixes_serials(publisher: Publisher):
    publisher.build_next("modules")
    assert (publisher.serial, serials(NeededDatasets(PublishedSets(publisher.storage)), ModulesReader)) == (110, (110,))
    datasets = NeededDatasets(PublishedSets(publisher.storage))
    assert serials(datasets, DepgraphReader) == (100,)
    assert serials(datasets, DepgraphReader, ModulesReader) == (100, 100)
    datasets = NeededDatasets(PublishedSets(publisher.storage))
    assert serials(datasets, ModulesReader) == (110,)
    assert serials(datasets, ModulesReader, DepgraphReader) == (100, 100)
    with pytest.raises(NoVersionError, match="hashes"):
        serials(datasets, HashesReader)
    assert serials(datasets, DepgraphReader) == (100,)
    with NeededDatasets(PublishedSets(publisher.storage)).opened("modules") as modules:
        assert isinstance(modules, ModulesReader)
    datasets = NeededDatasets(PublishedSets(publisher.storage))
    assert serials(datasets, ModulesReader) == (110,)
    for missing in ("depgraph", "hashes"):  # with another serial, then deleted: an answer about modules does not change
        with datasets.opened(missing) as reader:
            assert reader is None
    assert serials(datasets, ModulesReader) == (110,)
    publisher.storage.delete("depgraph/input_lists/00002")
    with pytest.raises(NoVersionError, match="depgraph"):
        serials(NeededDatasets(PublishedSets(publisher.storage)), ModulesReader, DepgraphReader)


@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: bytes(one ^ 1 for one in content)])
def test_answer_from_a_corrupt_version_restarts_with_an_older_set(
    publisher: Publisher, tmp_path: Path, damage: Callable[[bytes], bytes]
):
    publisher.publish()
    reports: list[str] = []
    datasets = NeededDatasets(PublishedSets(publisher.storage), report=reports.append)
    newest = datasets.answered(lambda: datasets.reader(ModulesReader).module("demo"))
    assert (newest.serial, reports) == (110, [])
    spoil(tmp_path / "storage" / "modules", damage)
    other = NeededDatasets(PublishedSets(publisher.storage), report=reports.append)
    answer = other.answered(lambda: other.reader(ModulesReader).module("demo"))
    assert (answer.version, answer.serial) == (1, 100)
    assert serials(other, DepgraphReader, ModulesReader) == (100, 100)
    assert [unnamed(report, newest.version) for report in reports] == [[]]


def test_long_series_of_answers_moves_to_newer_sets(publisher: Publisher):
    datasets = NeededDatasets(PublishedSets(publisher.storage), refresh_every_s=0)
    assert serials(datasets, ModulesReader, DepgraphReader) == (100, 100)
    publisher.publish()
    until(lambda: serials(datasets, ModulesReader, DepgraphReader) == (110, 110))
    still = NeededDatasets(PublishedSets(publisher.storage), refresh_every_s=3600)
    publisher.publish()
    assert serials(still, ModulesReader) == (120,)
    publisher.publish()
    assert serials(still, ModulesReader) == (120,)
    until(lambda: serials(datasets, ModulesReader, DepgraphReader) == (130, 130))
    datasets.close()
