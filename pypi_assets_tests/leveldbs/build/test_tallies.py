"""What is tallied equals a count of the records, after any changes."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from pypi_assets.dumps.dump_format import Row
from pypi_assets.leveldbs.build.tallies import Tallies
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.errors import LeveldbDamagedError
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets_tests.dump_rows import dump_row, histories, tombstone_of
from pypi_assets_tests.examples import examples
from pypi_assets_tests.leveldbs.built_records import FILES, Records, build, rows_of


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
def test_each_project_has_the_count_of_its_dependents(
    tmp_path_factory: pytest.TempPathFactory, history: tuple[list[list[Row]], list[Row]]
) -> None:
    first, *others = history[0]
    path = tmp_path_factory.mktemp("dbs") / "db"
    records = build(path, "depgraph", [first])
    assert tallies(records) == counted(records)
    records = build(path, "depgraph", others, create=False)
    assert tallies(records) == counted(records)


def test_a_count_follows_who_comes_and_goes(tmp_path: Path) -> None:
    rows = [
        dump_row("a", "1", "a-1.zip", requires_dist=["base", "other"]),
        dump_row("a", "2", "a-2.zip", requires_dist=["base"]),
        dump_row("b", "1", "b-1.zip", requires_dist=["base; extra == 'x'"]),
    ]
    assert tallies(build(tmp_path / "db", "depgraph", [rows])) == {"base": 2, "other": 1}
    gone = [tombstone_of(rows[0]), tombstone_of(rows[2])]
    assert tallies(build(tmp_path / "db", "depgraph", [gone], create=False)) == {"base": 1}
    assert tallies(build(tmp_path / "db", "depgraph", [[tombstone_of(rows[1])]], create=False)) == {}


def test_other_datasets_have_none() -> None:
    found = Tallies(DATASETS["hashes"])
    found.add([b"r\0a\0b"])
    assert found.take(None) == ({}, {})


def test_a_count_below_none_is_damage(tmp_path: Path) -> None:
    with open_leveldb(tmp_path / "db", "a test", create=True) as db:
        found = Tallies(DATASETS["depgraph"])
        found.add([b"r\0a\0b", b"r\0c\0b"], -1)
        found.add([b"r\0c\0b"])
        with pytest.raises(LeveldbDamagedError, match=r"b't\\x00a'"):
            found.take(db)
