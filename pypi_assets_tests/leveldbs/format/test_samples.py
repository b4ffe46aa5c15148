"""Samples show each kind of key, and cost no more in a large LevelDB."""

from pathlib import Path

from pypi_assets.leveldbs.format.open_leveldb import SampleRecord, open_leveldb, sample_records
from pypi_assets.leveldbs.format.records import key


def test_samples_take_turns_between_the_kinds_of_keys(tmp_path: Path) -> None:
    with open_leveldb(tmp_path / "db", "sampled", create=True) as db:
        for number in range(9):
            db.put(key("m", f"module{number}", "demo"), b"x" * 1_000)
        db.put(key("p", "demo"), b"[1]")
        db.put(b"\0meta", b"{}")
        assert [record.key for record in sample_records(db, "mpq")] == [
            ("m", "module0", "demo"),
            ("p", "demo"),
            ("m", "module1", "demo"),
            ("m", "module2", "demo"),
            ("m", "module3", "demo"),
        ]
        assert sample_records(db, "p") == [SampleRecord(("p", "demo"), "[1]", 3)]
        [long] = sample_records(db, "m", 1)
        assert (len(long.value), long.size) == (400, 1_000)
        assert sample_records(db, "z") == []


def test_what_is_no_text_is_shown_all_the_same(tmp_path: Path) -> None:
    with open_leveldb(tmp_path / "db", "sampled", create=True) as db:
        db.put(b"m\0\xff", "é".encode() * 300)
        [record] = sample_records(db, "m")
        assert record.key == ("m", "\ufffd")
        assert record.value.startswith("éé")
