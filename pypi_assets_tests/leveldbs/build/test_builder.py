"""Incremental builds equal builds from scratch, and a builder reports its work."""

from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypi_assets.dumps.dump_format import Row
from pypi_assets.leveldbs.build.builder import Builder, Tallies
from pypi_assets.leveldbs.datasets.depgraph import depgraph_records as depgraph
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, LeveldbError
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.format.records import ContentHash
from pypi_assets_tests.dump_rows import dump_row, histories, tombstone_of
from pypi_assets_tests.examples import examples
from pypi_assets_tests.leveldbs.built_records import FILES, Records, build, content, rows_of
from pypi_assets_tests.naming import naming


def tallies(records: Records) -> dict[str, int]:
    return {key.decode()[2:]: int(value) for key, value in records.items() if key.startswith(b"t\0")}


def counted(records: Records) -> dict[str, int]:
    found: dict[str, int] = {}
    for key in records:
        if key.startswith(b"r\0"):
            required = key.decode().split("\0")[1]
            found[required] = found.get(required, 0) + 1
    return found


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories(FILES, rows_of, most=8))
def test_projects_have_their_dependent_count(
    tmp_path_factory: pytest.TempPathFactory, history: tuple[list[list[Row]], list[Row]]
) -> None:
    first, *others = history[0]
    path = tmp_path_factory.mktemp("dbs") / "db"
    records = build(path, "depgraph", [first])
    assert tallies(records) == counted(records)
    records = build(path, "depgraph", others, create=False)
    assert tallies(records) == counted(records)


def test_count_follows_added_and_removed_dependents(tmp_path: Path) -> None:
    rows = [
        dump_row("a", "1", "a-1.zip", requires_dist=["base", "other"]),
        dump_row("a", "2", "a-2.zip", requires_dist=["base"]),
        dump_row("b", "1", "b-1.zip", requires_dist=["base; extra == 'x'"]),
    ]
    assert tallies(build(tmp_path / "db", "depgraph", [rows])) == {"base": 2, "other": 1}
    gone = [tombstone_of(rows[0]), tombstone_of(rows[2])]
    assert tallies(build(tmp_path / "db", "depgraph", [gone], create=False)) == {"base": 1}
    assert tallies(build(tmp_path / "db", "depgraph", [[tombstone_of(rows[1])]], create=False)) == {}


def test_other_datasets_have_no_counts() -> None:
    found = Tallies(DATASETS["hashes"])
    found.add([b"r\0a\0b"])
    assert found.take(None) == ({}, {})


def test_negative_count_is_corruption(tmp_path: Path) -> None:
    with open_leveldb(tmp_path / "db", "a test", create=True) as db:
        found = Tallies(DATASETS["depgraph"])
        found.add([b"r\0a\0b", b"r\0c\0b"], -1)
        found.add([b"r\0c\0b"])
        with pytest.raises(LeveldbDamagedError, match=r"b't\\x00a'"):
            found.take(db)


@pytest.mark.parametrize("dataset", DATASETS)
@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories(FILES, rows_of, most=8), cut=st.integers(0, 5), few=st.sampled_from([0, 1, 2, 3, 100]))
def test_incremental_equals_rebuilt(
    tmp_path_factory: pytest.TempPathFactory,
    dataset: str,
    history: tuple[list[list[Row]], list[Row]],
    cut: int,
    few: int,
) -> None:
    with pytest.MonkeyPatch.context() as context:
        context.setattr(depgraph, "FEW_FILES", few)
        assert_incremental_equals_rebuilt(tmp_path_factory.mktemp("dbs"), dataset, *history, cut)


def assert_incremental_equals_rebuilt(
    folder: Path, dataset: str, dumps: list[list[Row]], live: list[Row], cut: int
) -> None:
    cut = 1 + cut % len(dumps)
    build(folder / "incremental", dataset, dumps[:cut], serial=5)
    for dump in dumps[cut:]:
        build(folder / "incremental", dataset, [dump], create=False, serial=6)
    incremental = build(folder / "incremental", dataset, [], create=False)
    rebuilt = build(folder / "rebuilt", dataset, dumps)
    assert incremental == rebuilt
    assert rebuilt == build(folder / "at once", dataset, [live])
    content_hash = ContentHash()
    for record_key, value in content(rebuilt).items():
        content_hash.add(record_key, value)
    assert orjson.loads(rebuilt[b"\0content_hash"]) == content_hash.hex


def test_unordered_rows_are_rejected(tmp_path: Path) -> None:
    rows = [dump_row("b", "1", "b-1.zip"), dump_row("a", "1", "a-1.zip")]
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        builder = Builder(db, DATASETS["modules"])
        with pytest.raises(LeveldbError, match=naming("some dump", "a", "b")):
            builder.apply(rows, "some dump")


def test_progress_is_reported_and_batch_size_is_bounded(tmp_path: Path) -> None:
    rows = [dump_row(f"p{number:05}", "1", "x.zip", modules=["m" * 5_000]) for number in range(1_000)]
    reported: list[int] = []
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        builder = Builder(db, DATASETS["modules"], flushed=reported.append)
        builder.apply(rows, "some dump", fresh=True)
        assert builder.rows == reported[-1] == 1_000
    assert len(reported) > 2
