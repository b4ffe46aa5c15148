"""Each live file with a hash has two records: one keyed by its hash, and one that names its place."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from pypi_assets.dumps.dump_format import Row
from pypi_assets.leveldbs.build.builder import Builder
from pypi_assets.leveldbs.datasets.hashes.hash_records import (
    change,
    decode_file,
    hash_prefix,
    hashes_prefix,
    split_hash_key,
)
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.format.records import as_part, key
from pypi_assets_tests.dump_rows import dump_row, histories, tombstone_of
from pypi_assets_tests.examples import examples
from pypi_assets_tests.leveldbs.built_records import FILES, Records, build, content, rows_of

SHA256 = "ab" * 32
DEMO = dump_row("demo", "1.0", "demo-1.0.zip", project="Demo", live_since=7)


def found(records: Records) -> list[tuple[tuple[str, str, str], tuple[str, str, int]]]:
    """Return the decoded hash records: hash, project and filename, and version, display name and serial."""
    hashes = sorted(record for record in records.items() if record[0].startswith(hashes_prefix("")))
    return [(split_hash_key(hash_key), decode_file(value)) for hash_key, value in hashes]


def test_hash_has_all_its_live_files(tmp_path: Path) -> None:
    same = dump_row("other", "2", "other-2.zip", sha256=SHA256.upper())
    no_hash = dump_row("demo", "2", "demo-2.zip", sha256=None)
    records = build(tmp_path / "db", "hashes", [[DEMO, no_hash, same]])
    assert content(records) == {
        key("h", SHA256, "demo", "demo-1.0.zip"): b'["1.0","Demo",7]',
        key("f", "demo", "demo-1.0.zip"): SHA256.encode(),
        key("h", SHA256, "other", "other-2.zip"): b'["2","other",1]',
        key("f", "other", "other-2.zip"): SHA256.encode(),
    }
    assert all(record.startswith(hash_prefix(SHA256)) for record in records if record.startswith(b"h"))
    assert all(hash_prefix(SHA256).startswith(hashes_prefix(SHA256[:length])) for length in (0, 1, 63, 64))
    assert found(records) == [
        ((SHA256, "demo", "demo-1.0.zip"), ("1.0", "Demo", 7)),
        ((SHA256, "other", "other-2.zip"), ("2", "other", 1)),
    ]


@pytest.mark.parametrize(
    "row", [tombstone_of(DEMO), DEMO | {"sha256": None}, DEMO | {"sha256": "cd" * 32, "version": "1"}]
)
def test_removed_or_changed_file_leaves_no_records(tmp_path: Path, row: Row) -> None:
    build(tmp_path / "db", "hashes", [[DEMO]])
    changed = content(build(tmp_path / "db", "hashes", [[row]], create=False))
    assert changed == content(build(tmp_path / "other", "hashes", [[row]]))
    assert len(changed) == (2 if row.get("sha256") else 0)


def test_last_row_of_a_file_counts() -> None:
    before, after = change(None, "demo", [DEMO, DEMO | {"version": "1"}])
    assert before == {}
    assert after[key("h", SHA256, "demo", "demo-1.0.zip")] == b'["1","Demo",7]'
    assert change(None, "demo", [DEMO, tombstone_of(DEMO)]) == ({}, {})


@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories(FILES, rows_of, most=8))
def test_hashes_match_the_live_files(
    tmp_path_factory: pytest.TempPathFactory, history: tuple[list[list[Row]], list[Row]]
) -> None:
    dumps, live = history
    expected = [
        (
            (as_part(str(row["sha256"]).lower()), row["normalized"], row["filename"]),
            (row["version"], row["project"], row["live_since"]),
        )
        for row in live
        if row["sha256"] is not None
    ]
    assert found(build(tmp_path_factory.mktemp("dbs") / "db", "hashes", dumps)) == sorted(expected)


def test_file_without_its_hash_record_is_corruption(tmp_path: Path) -> None:
    with open_leveldb(tmp_path / "db", "x", create=True) as db:
        Builder(db, DATASETS["hashes"]).apply([DEMO], "some dump")
        db.delete(key("h", SHA256, "demo", "demo-1.0.zip"))
        with pytest.raises(LeveldbDamagedError):
            Builder(db, DATASETS["hashes"]).apply([tombstone_of(DEMO)], "some dump")
